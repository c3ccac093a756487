"""Peak memory of the worker with ten times the rows: rows are streamed, so it must not grow."""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks import example_data
from benchmarks.interleave import Spread
from benchmarks.lines import Line, Options, Skipped
from remote_payload.rundir import RunDir
from remote_payload.schema import RunSpec, StandaloneJob, to_json
from tests.support.laptop import CHECKOUT

TIMES = 10
MIB = 1 << 20


def measure(options: Options) -> list[Line | Skipped]:
    """Largest resident size of `work RUNDIR`, each time a new process, with the rows once and ten times."""
    data = example_data.find(options.data)
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        folder = Path(name)
        few, many = (example_data.repeated(data.rows, folder / str(times), times) for times in (1, TIMES))
        pairs = []
        for number in range(max(3, options.runs // 3)):
            pairs.append([_peak_bytes(data, rows, folder / f"run{number}-{rows.name}") for rows in (few, many)])
            sys.stderr.write(".")
        sys.stderr.write("\n")
        counts = [len(list(rows.rglob("data_*"))) for rows in (few, many)]
    return [
        Line(
            what=f"peak memory of the worker, {counts[1]} rows",
            against=f"{counts[0]} rows",
            ratio=Spread.of([many_bytes / few_bytes for few_bytes, many_bytes in pairs]),
            aim=("<=", 1.05),
            ours=f"{Spread.of([pair[1] / MIB for pair in pairs]).median:.0f} MiB",
            theirs=f"{Spread.of([pair[0] / MIB for pair in pairs]).median:.0f} MiB",
        )
    ]


def _peak_bytes(data: example_data.ExampleData, rows: Path, folder: Path) -> int:
    run = RunDir(folder)
    run.result.mkdir(parents=True)
    job = StandaloneJob(
        draft=str(data.draft),
        target=str(data.target),
        rows=str(rows),
        steps=example_data.STEPS,
        device="cpu",
        threads=1,
    )
    spec = RunSpec(
        run_id="standalone-memory",
        job_kind="standalone",
        job_json=to_json(job),
        settings=(),
        python=sys.executable,
        payload_sha256="0" * 64,
        environment={},
        launched_by="benchmark",
        created_unix_s=0.0,
    )
    run.spec.write_text(to_json(spec), encoding="utf-8")
    code = "import sys; from remote_payload.worker import work; sys.exit(work(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(CHECKOUT))}
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", code, str(folder)], environment)
    _, status, used = os.wait4(child, 0)
    if status != 0:
        raise RuntimeError(f"the worker ended with {os.waitstatus_to_exitcode(status)}: {folder}")
    return used.ru_maxrss * 1024  # Linux counts in KiB
