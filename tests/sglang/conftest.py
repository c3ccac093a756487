"""A real SGLang on this machine's CPU: its environment, the pair it serves, and jobs that run on it.

`make test-sglang` builds the environment. One server at a time: a start takes half a minute of both cores.
"""

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.report.bench_content import BenchReport, report_bench
from orchestrator.store.results import read_bench, read_harness, read_machine, read_requests
from remote_payload.rundir import RunDir
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event
from remote_payload.sglang_bench import job as bench_job
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.starting import start
from tests.support.served_models import (
    served_truth,
    write_draft,
    write_prompts,
    write_target,
    write_unloaded_draft,
)

CHECKOUT = Path(__file__).parents[2]
STUBS = Path(__file__).parent / "stubs"
ENVIRONMENT = {
    "PYTHONPATH": str(STUBS),
    "SGLANG_USE_CPU_ENGINE": "1",
    "OMP_NUM_THREADS": "1",  # two threads on two busy cores are many times slower than one
    "TORCHDYNAMO_DISABLE": "1",  # compiling would take longer than all tests
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
# torch_native cannot draft, intel_amx is refused on a CPU without it; SGLang looks at the first flag alone.
ARGUMENTS = (
    *("--device", "cpu", "--max-total-tokens", "8192", "--max-running-requests", "8", "--attention-backend"),
    *("torch_native", "--prefill-attention-backend", "intel_amx", "--decode-attention-backend", "intel_amx"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the real thing."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.sglang)
            item.add_marker(pytest.mark.timeout(900))


@dataclass(frozen=True)
class Models:
    """Folders of what is served."""

    target: Path
    std: Path
    embed: Path
    mis_wired: Path
    """drafter_embed, its ids where SGLang does not look for them: it takes the default layers."""
    unloaded: Path
    prompts: Path


@pytest.fixture(scope="session")
def truth() -> dict[str, Any]:
    return served_truth()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, truth: dict[str, Any]) -> Models:
    folder = tmp_path_factory.mktemp("models")
    return Models(
        target=write_target(folder / "target"),
        std=write_draft(folder / "std", "drafter_std"),
        embed=write_draft(folder / "embed", "drafter_embed"),
        mis_wired=write_draft(folder / "mis_wired", "drafter_embed", top_level=True),
        unloaded=write_unloaded_draft(folder / "unloaded"),
        prompts=write_prompts(folder / "prompts.jsonl", truth["prompts"]),
    )


@pytest.fixture(scope="session")
def sglang_python() -> str:
    """The interpreter of the environment that has SGLang."""
    found = os.environ.get("EAGLE3_SGLANG_PYTHON") or str(CHECKOUT / ".sglang-venv" / "bin" / "python")
    assert shutil.which(found), f"no SGLang here: {found}; `make test-sglang` builds its environment"
    return found


def write_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


@dataclass(frozen=True)
class Measured:
    """A job that ran to its end, and what the laptop makes of it."""

    report: BenchReport
    events: list[Event]
    folder: Path
    """What it left."""

    def histograms(self, side: str = "spec") -> list[list[int]]:
        """Of the first repeat's requests, prompt by prompt."""
        points = {point.point for point in self.report.result.points if point.side == side and point.repeat == 0}
        mine = sorted((item for item in self.report.requests if item.point in points), key=lambda item: item.prompt)
        return [list(item.histogram or ()) for item in mine]

    def outputs(self, side: str = "spec") -> list[list[int]]:
        """The same for output ids."""
        points = {point.point for point in self.report.result.points if point.side == side and point.repeat == 0}
        mine = sorted((item for item in self.report.requests if item.point in points), key=lambda item: item.prompt)
        return [list(item.output_ids or ()) for item in mine]

    def finding(self, words: str) -> str:
        """The severity of the one finding that says so."""
        found = [item for item in self.report.diagnosis.findings if words in item.summary]
        assert len(found) == 1, [item.summary for item in self.report.diagnosis.findings]
        return str(found[0].severity)


@pytest.fixture(scope="session")
def asked(models: Models, sglang_python: str) -> Callable[..., BenchJob]:
    """A job as the recorded truth was served: float32, greedy, 64 tokens past any end, one user; plus changes."""

    def make(**changes: Any) -> BenchJob:
        values: dict[str, Any] = {
            "model": str(models.target),
            "dtype": "float32",
            "context_length": 1024,
            "server_args": ARGUMENTS,
            "server_environment": tuple(f"{name}={value}" for name, value in ENVIRONMENT.items()),
            "server_python": sglang_python,
            "prompts": str(models.prompts),
            "max_new_tokens": 64,
            "ignore_eos": True,
            "ready_timeout_s": 600.0,
            "request_timeout_s": 120.0,
        }
        return BenchJob(**{**values, **changes})

    return make


@pytest.fixture(scope="session")
def chain(models: Models) -> dict[str, Any]:
    """drafter_std as a chain of three steps."""
    return {"draft": str(models.std), "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}


Bench = Callable[[BenchJob], Measured]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Run a job here as the worker does on a host."""
    runs: list[int] = []

    def run(job: BenchJob) -> Measured:
        runs.append(1)
        run_dir = RunDir(tmp_path / f"run{len(runs)}")
        write_folder(run_dir.result)
        events: list[Event] = []
        bench_job.run(job, run_dir.result, events.append)
        result = read_bench(run_dir)
        told = read_harness(run_dir, [one.result_file for one in result.harness if one.result_file is not None])
        report = report_bench(result, read_requests(run_dir), read_machine(run_dir), told)
        return Measured(report, events, run_dir.result)

    return run


@pytest.fixture(scope="module")
def serving(
    asked: Callable[..., BenchJob], chain: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server with the chain that is up before a job comes."""
    folder = tmp_path_factory.mktemp("serving")
    job = dataclasses.replace(asked(), **chain)
    running = start(job, "spec", 0, folder, lambda _: None)
    yield running
    running.stop()
