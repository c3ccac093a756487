"""Who goes on with a sweep: one other at a time, and only once nothing of it drives on.

Its folder has a `resumed_by`, a line for each sweep that was launched to go on with it, written under a lock: two
laptops that ask at the same moment are told apart by the host. One that measured nothing and is over frees it again.
Of a sweep that was cleaned away the others tell: what they say that they go on with, and what they have of it as done.
"""

import fcntl
import os
import re
import time
from pathlib import Path

from remote_payload import leftovers
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import RUN_ID_PATTERN, RunDir
from remote_payload.runstate import read_spec, read_state
from remote_payload.schema import SchemaError, SweepAttempt, SweepJob, job_from_json
from remote_payload.sweep.ledger import read_ledger

NAME = "resumed_by"
EXIT_PATIENCE_S, LOOK_S = 1.0, 0.05
"""A sweep that has just written its end is about to exit by itself."""
UNIT = re.compile(r"\.u\d+\.\d+$")
"""How the id of a unit's run ends, behind its sweep's."""
Pairs = frozenset[tuple[str, int]]
"""Points, each in one block."""


def drivers(sweep: RunDir) -> tuple[int, ...]:
    """Processes that still drive a sweep, whatever its state says; its units have supervisors of their own."""
    alive = set(leftovers.alive(sweep))
    if alive:  # a unit's supervisor is a fork of the sweep's worker, and may outlive it
        for path in sweep.path.parent.glob(f"{sweep.path.name}.*"):
            alive -= {*leftovers.supervisors(RunDir(path))} if _may_live(RunDir(path)) else set()
    return tuple(sorted(alive))


def claim_rest(job: SweepJob, run_id: str, runs: Path) -> None:
    """Enter sweep `run_id` as the one that goes on with the sweep that `job` names, if that is on this host.

    Raises Refusal `sweep_goes_on` while that one lives, and where another has the same points.
    """
    earlier = RunDir(runs / (job.resumes or job.confirms or ""))
    if earlier.path == runs:
        return
    if not earlier.spec.is_file():  # on another host, or cleaned away
        if job.resumes is not None and job.share is None:  # who has which share, the group's ledger knows
            _require_free(job, earlier, run_id)
        return
    try:
        descriptor = os.open(earlier.path / NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise disk_refusal(error, f"write {earlier.path / NAME}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        require_over(earlier)
        if job.resumes is None:  # it measures the points afresh
            return
        _require_free(job, earlier, run_id)
        os.write(descriptor, f"{run_id}\n".encode("ascii"))
        os.fsync(descriptor)
    except OSError as error:
        raise disk_refusal(error, f"write {earlier.path / NAME}") from None
    finally:
        os.close(descriptor)


def require_over(earlier: RunDir) -> None:
    """Raises Refusal `sweep_goes_on` where anything drives that sweep on, or is about to."""
    until_s = time.monotonic() + EXIT_PATIENCE_S
    state = current_state(earlier)
    while (left := drivers(earlier)) and state is not None and state.is_terminal and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    if left or state is None or not state.is_terminal:
        name = earlier.path.name
        raise Refusal(
            "sweep_goes_on",
            f"sweep `{name}` still measures: alive of it: {', '.join(map(str, left)) or 'its supervisor'}",
            f"`eagle3-remote sweep cancel {name}` ends it",
        )


def _require_free(job: SweepJob, earlier: RunDir, run_id: str) -> None:
    """Raises Refusal `sweep_goes_on` where another sweep has points of this one."""
    holder = _Search(earlier.path.parent, _pairs(job), {run_id}).holder(earlier)
    if holder is not None:
        raise Refusal(
            "sweep_goes_on",
            f"sweep `{holder}` goes on with sweep `{job.resumes}`, and has the same points",
            f"`eagle3-remote sweep resume {holder}` measures what that one leaves",
        )


class _Search:
    """Of the sweeps that go on with one, that which has some of the wanted points: it may measure them, or did some."""

    def __init__(self, runs: Path, wanted: Pairs, seen: set[str]) -> None:
        self._runs, self._wanted, self._seen = runs, wanted, seen
        self._told: dict[str, list[str]] | None = None

    def holder(self, earlier: RunDir) -> str | None:
        """Its id; also of those that go on with such a one in turn."""
        for run_id in self._later(earlier):
            if run_id in self._seen:
                continue
            self._seen.add(run_id)
            later = RunDir(self._runs / run_id)
            job = _job_of(later)
            if job is not None and _pairs(job) & self._wanted and _counts(later):
                return run_id
            if (next_one := self.holder(later)) is not None:
                return next_one
        return None

    def _later(self, earlier: RunDir) -> list[str]:
        if earlier.spec.is_file():
            return _entered(earlier)
        if self._told is None:
            self._told = _told_of_earlier(self._runs)
        return self._told.get(earlier.path.name, [])


def _told_of_earlier(runs: Path) -> dict[str, list[str]]:
    """By sweep those on this host that go on with it by their own word, or have runs of it as done."""
    found: dict[str, list[str]] = {}
    for path in sorted(runs.iterdir()):
        if UNIT.search(path.name):
            continue
        job = _job_of(RunDir(path))
        if job is not None and job.resumes is not None:
            for earlier in {job.resumes, *(UNIT.sub("", done.run_id) for done in job.done)}:
                found.setdefault(earlier, []).append(path.name)
    return found


def _entered(earlier: RunDir) -> list[str]:
    try:
        lines = (earlier.path / NAME).read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []
    return [line for line in lines if RUN_ID_PATTERN.fullmatch(line)]


def _job_of(run: RunDir) -> SweepJob | None:
    """None = it is not there (any more), or was never started."""
    try:
        job = job_from_json(read_spec(run).job_json)
    except (OSError, Refusal, SchemaError):
        return None
    return job if isinstance(job, SweepJob) else None


def _counts(later: RunDir) -> bool:
    """Whether more may come of it, or something did."""
    try:
        state = current_state(later)
        is_open = state is None or not state.is_terminal  # None: entered, and about to start
    except Refusal:
        is_open = False
    return is_open or bool(drivers(later)) or any(_measured(one, later) for one in read_ledger(later))


def _measured(attempt: SweepAttempt, sweep: RunDir) -> bool:
    if any(outcome.end == "measured" for outcome in attempt.points):
        return True
    unit = RunDir(sweep.path.parent / attempt.run_id)  # it may have outlived its sweep
    return attempt.finished_unix_s is None and _may_live(unit)


def _may_live(run: RunDir) -> bool:
    try:
        state = read_state(run)
    except Refusal:
        return True
    return state is not None and (not state.is_terminal or state.phase == "succeeded")


def _pairs(job: SweepJob) -> Pairs:
    return frozenset((point, unit.block) for unit in job.units for point in unit.points)
