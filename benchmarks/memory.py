"""Peak memory: of the worker with ten times the rows, and of one reading's evaluation against the peers' own.

Rows are streamed, so the first must not grow. The second is told beyond what a process has after its imports, where the
evaluations differ, and in all, which is what a machine must have. Each time a new process. Linux only.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks import example_data, made_up
from benchmarks.evaluations import PEERS, SPECFORGE, SPECULATORS, ours, specforge, speculators
from benchmarks.interleave import Spread
from benchmarks.lines import Line, Options, Skipped
from benchmarks.resident import DriverError, Resident
from remote_payload.rundir import RunDir
from remote_payload.schema import RunSpec, StandaloneJob, to_json
from tests.support.laptop import CHECKOUT

TIMES = 10
LARGER = made_up.sizes(hidden=512, vocab=32000, draft_vocab=8000)
LENGTHS = (2048, 512)
MIB = 1 << 20
OURS = "ours"


def measure(options: Options) -> list[Line | Skipped]:
    """The worker's largest resident size with the rows once and ten times; an evaluation's against the peers'."""
    runs = max(3, options.runs // 3)
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        lines = [_with_rows(example_data.find(options.data), Path(name) / "rows", runs)]
        if options.peers_python is None:
            return [*lines, Skipped(what="peak memory against the peers", why="needs a Python with them: --peers")]
        return [*lines, *_against_peers(options.peers_python, Path(name) / "peers", runs)]


def _with_rows(data: example_data.ExampleData, folder: Path, runs: int) -> Line:
    few, many = (example_data.repeated(data.rows, folder / str(times), times) for times in (1, TIMES))
    pairs = []
    for number in range(runs):
        pairs.append([_worker_peak_bytes(data, rows, folder / f"run{number}-{rows.name}") for rows in (few, many)])
        _dot()
    counts = [len(list(rows.rglob("data_*"))) for rows in (few, many)]
    return Line(
        what=f"peak memory of the worker, {counts[1]} rows",
        against=f"{counts[0]} rows",
        ratio=Spread.of([many_bytes / few_bytes for few_bytes, many_bytes in pairs]),
        aim=("<=", 1.05),
        ours=_words([pair[1] for pair in pairs]),
        theirs=_words([pair[0] for pair in pairs]),
    )


def _worker_peak_bytes(data: example_data.ExampleData, rows: Path, folder: Path) -> int:
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
    code = (
        "import sys; from benchmarks.answering import peak_bytes; from remote_payload.worker import work; "
        "status = work(sys.argv[1]); print(peak_bytes()); sys.exit(status)"
    )
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(CHECKOUT))}
    argv = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the worker ended with {done.returncode}: {done.stdout} {done.stderr}")
    return int(done.stdout.split()[-1])


def _against_peers(python: Path, folder: Path, runs: int) -> list[Line | Skipped]:
    data = made_up.write(folder, LARGER, LENGTHS)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in (OURS, *PEERS)}
    failed: dict[str, str] = {}
    for _ in range(runs):
        for name, party in _parties(data, python, folder / "speculators").items():
            try:
                with party as one:
                    found[name].append(one.ask("one"))
            except DriverError as error:
                failed[name] = str(error)
        _dot()
    lines: list[Line | Skipped] = [
        Skipped(what=f"peak memory against {name}", why=f"it did not run: {why}") for name, why in failed.items()
    ]
    for peer in [name for name in PEERS if name not in failed]:
        lines += [_line(peer, found, imports) for imports in (False, True)]
    return lines


def _parties(data: example_data.ExampleData, python: Path, folder: Path) -> dict[str, AbstractContextManager[Resident]]:
    return {
        OURS: ours(data, "bfloat16"),
        SPECFORGE: specforge(data, python),
        SPECULATORS: speculators(data, python, folder),
    }


def _line(peer: str, found: dict[str, list[dict[str, float]]], imports: bool) -> Line:
    mine, theirs = ([_own_bytes(one, imports) for one in found[name]] for name in (OURS, peer))
    rows = f"hidden {LARGER.hidden}, vocabulary {LARGER.vocab}, rows of {' and '.join(map(str, LENGTHS))}"
    return Line(
        what=f"peak memory of one reading {'in all' if imports else 'beyond imports'}, bfloat16, {rows}",
        against=f"{peer}, bfloat16",
        ratio=Spread.of([a / b for a, b in zip(mine, theirs, strict=True)]),
        aim=("<=", 1.0),
        ours=_words(mine),
        theirs=_words(theirs),
    )


def _own_bytes(one: dict[str, float], imports: bool) -> float:
    return one["peak_bytes"] - (0 if imports else one["imported_bytes"])


def _words(sizes: Sequence[float]) -> str:
    spread = Spread.of([size / MIB for size in sizes])
    return f"{spread.median:.0f} MiB ({spread.low:.0f}-{spread.high:.0f})"


def _dot() -> None:
    sys.stderr.write(".")
    sys.stderr.flush()
