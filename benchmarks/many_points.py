"""A sweep of 5,000 points: planning, how far it is, its table, and going on, and how large its state is.

The points are launched and cancelled at once; what the host would have written down of them is made up, half of it
measured, so that what is read, sent and kept is of the real size. Whole processes, against a sweep of 20 points.
"""

import itertools
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.interleave import Cost, Subject, interleaved, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.overhead import HOSTS, laptop_and_hosts, sweep_file
from benchmarks.scene import Scene
from orchestrator.records import read_record
from orchestrator.records.run import RunRecord
from orchestrator.sweeping.asking import sweep_job
from remote_payload.schema import PointOutcome, SweepAttempt, SweepJob, to_json

SIZES = (5000, 20)
HOST = HOSTS[0]


def measure(options: Options) -> list[Line | Skipped]:
    """Each command on the large sweep and on the small one."""
    runs = max(3, options.runs // 3)
    with (
        tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name,
        laptop_and_hosts(Path(name), (HOST,)) as (scene, homes),
    ):
        files = {size: sweep_file(scene.folder, size) for size in SIZES}
        sizes = {size: _half_done(scene, homes[HOST], files[size], size) for size in SIZES}
        lines: list[Line | Skipped] = []
        for what in ("plan", "status", "report", "resume"):
            subjects: dict[str, Subject] = {
                str(size): partial(_command, scene, what, files[size], size) for size in SIZES
            }
            costs = interleaved(subjects, runs)
            large, small = (str(size) for size in SIZES)
            lines.append(
                Line(
                    what=f"{WORDS[what]}, {SIZES[0]} points{sizes[SIZES[0]] if what == 'status' else ''}",
                    against=f"the same, {SIZES[1]} points",
                    ratio=ratios(costs, large, small),
                    ours=cost_words(costs[large]),
                    theirs=cost_words(costs[small]),
                )
            )
    return lines


WORDS = {
    "plan": "`sweep run --dry-run`",
    "status": "`sweep status`",
    "report": "`sweep report`",
    "resume": "`sweep resume --detach`",
}
ANEW = itertools.count()


def _command(scene: Scene, what: str, file: Path, size: int) -> Cost:
    sweep = f"sweep{size}"
    if what == "plan":
        return scene.ours("sweep", "run", str(file), "--host", HOST, "--dry-run")
    if what == "resume":
        again = f"again{next(ANEW)}"
        cost = scene.ours("sweep", "resume", sweep, "--run-id", again, "--detach", "--allow-drift")
        scene.ours("sweep", "cancel", again)
        return cost
    return scene.ours("sweep", what, sweep)


def _half_done(scene: Scene, home: Path, file: Path, size: int) -> str:
    """Launch it, end it, and let the host have written half of it. Returns how large its state is, in words."""
    sweep = f"sweep{size}"
    scene.ours("sweep", "run", str(file), "--host", HOST, "--run-id", sweep, "--detach")
    scene.ours("sweep", "cancel", sweep)
    record = scene.folder / "store" / "runs" / sweep / "run.json"
    job = sweep_job(read_record(RunRecord, record.read_text(encoding="utf-8")))
    ledger = home / ".eagle3-remote" / "runs" / sweep / "result" / "units.jsonl"
    ledger.write_text("".join(f"{to_json(one)}\n" for one in _attempts(job, sweep)), encoding="utf-8")
    scene.ours("sweep", "status", sweep)
    attempts = record.with_name("attempts.jsonl")
    told = (record.stat().st_size / size, ledger.stat().st_size / (size / 2), attempts.stat().st_size / (size / 2))
    return " (bytes a point: {:.0f} what is asked; {:.0f} an attempt on the host, {:.0f} here)".format(*told)


def _attempts(job: SweepJob, sweep: str) -> list[SweepAttempt]:
    return [
        SweepAttempt(
            unit_id=unit.unit_id,
            attempt=0,
            run_id=f"{sweep}.{unit.unit_id}.0",
            block=unit.block,
            phase="succeeded",
            points=tuple(PointOutcome(point_id=point, end="measured") for point in unit.points),
            started_unix_s=1796000000.0,
            finished_unix_s=1796000001.0,
        )
        for unit in job.units[: len(job.units) // 2]
    ]
