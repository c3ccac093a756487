"""A job run in this process and its result judged as the laptop judges it."""

from pathlib import Path
from typing import Any

from orchestrator.diagnosis.diagnose import Diagnosis, diagnose
from orchestrator.diagnosis.measured import Measured, gather
from orchestrator.diagnosis.wiring import judge
from orchestrator.store.results import read_heldout, read_hits, read_standalone
from remote_payload.rundir import RunDir
from remote_payload.schema import StandaloneJob
from remote_payload.standalone.job import run


def diagnosed(folder: Path, **settings: Any) -> Diagnosis:
    """Run a job on the CPU with one thread and diagnose what it leaves in `folder`, a run's directory."""
    found = measured(folder, **settings)
    return diagnose(found, judge(found))


def measured(folder: Path, **settings: Any) -> Measured:
    """Run a job on the CPU with one thread; what it left in `folder`, a run's directory."""
    home = RunDir(folder)
    home.result.mkdir(parents=True)
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    run(StandaloneJob(threads=1, device="cpu", **texts), home.result, lambda _: None)
    return gather(read_standalone(home), read_hits(home), read_heldout(home))
