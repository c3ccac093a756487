"""One question to Slurm for all runs of this user on a host, at most every `poll_s`: login nodes are shared.

The answer is kept in `<root>/slurm/jobs.json` for whoever asks next, in this process or another. Who asks while
somebody else is at it takes the last answer.
"""

import contextlib
import dataclasses
import fcntl
import functools
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from remote_payload.rundir import write_atomically
from remote_payload.schema.slurm import SlurmJob
from remote_payload.slurm.texts import GONE, SACCT_FIELDS, SQUEUE_FORMAT, JobView, read_sacct, read_squeue
from remote_payload.slurm.tools import SlurmError, ask

FORGET_S = 7 * 86400.0
"""A job that has ended and that nobody asked about for so long is dropped from the file."""


@dataclass(frozen=True)
class Known:
    """The last word on one job, when it was first said, and when somebody last asked."""

    view: JobView | None
    since_unix_s: float
    asked_unix_s: float


@dataclass(frozen=True)
class Answer:
    """What Slurm said at the last poll."""

    polled_unix_s: float = 0.0
    problem: str | None = None
    """Why there was no answer at the last poll; the jobs are then as they were at the last answer."""
    jobs: dict[str, Known] = field(default_factory=dict)

    def elements(self, array_id: str) -> dict[int, JobView]:
        """What is known of the elements of an array, by index."""
        found = {}
        for job_id, known in self.jobs.items():
            owner, _, index = job_id.partition("_")
            if owner == array_id and index.isdigit() and known.view is not None:
                found[int(index)] = known.view
        return found


def look(root: Path, job: SlurmJob, *, fresh: bool = False, wait_s: float | None = None) -> Answer:
    """What Slurm says of the job and of all others that were ever asked for; asks it only where that is due.

    `fresh`: ask now, whatever the file says. `wait_s`: who cannot wait longer gets the last answer; the question goes
    on meanwhile, and who looks next finds what came of it.
    """
    folder = root / "slurm"
    path = folder / "jobs.json"
    answer = _read(path)
    is_due = time.time() - answer.polled_unix_s >= job.poll_s or answer.polled_unix_s > time.time()
    if not (fresh or is_due):
        return _watched(path, answer, job)
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    if wait_s is None:
        return _ask_in_turn(folder, answer, job, fresh=fresh)
    asking = threading.Thread(target=_ask_in_turn, args=(folder, answer, job), daemon=True)
    asking.start()
    asking.join(wait_s)
    return _read(path)


def _ask_in_turn(folder: Path, answer: Answer, job: SlurmJob, *, fresh: bool = False) -> Answer:
    """Ask, and write down what came of it; the last answer where somebody else is at it."""
    path = folder / "jobs.json"
    with _turn(folder / "poll.lock", wait=fresh) as is_ours:
        if not is_ours:
            return answer
        answer = _poll(_with(_read(path), job), job.answer_s)
        with contextlib.suppress(OSError):  # a full disk: asked again next time
            write_atomically(path, _text(answer), durable=False)
    return answer


def _watched(path: Path, answer: Answer, job: SlurmJob) -> Answer:
    """A job that nobody has asked about yet goes into the file, so that the next poll is about it, too."""
    if job.job_id not in answer.jobs:
        answer = _with(answer, job)
        with contextlib.suppress(OSError):
            write_atomically(path, _text(answer), durable=False)
    return answer


def _with(answer: Answer, job: SlurmJob) -> Answer:
    """The job as one that is asked for, and each element of an array: one that Slurm has forgotten is not told."""
    now_s = time.time()
    first = Known(view=None, since_unix_s=now_s, asked_unix_s=0.0)
    asked = [job.job_id, *(f"{job.job_id}_{at}" for at in range(job.elements or 0))]
    jobs = {name: dataclasses.replace(answer.jobs.get(name, first), asked_unix_s=now_s) for name in asked}
    return dataclasses.replace(answer, jobs={**answer.jobs, **jobs})


def _poll(before: Answer, answer_s: float) -> Answer:
    now_s = time.time()
    try:
        told = _ask_all(before, answer_s)
    except SlurmError as problem:
        return dataclasses.replace(before, polled_unix_s=now_s, problem=str(problem))
    jobs = {}
    for job_id in {*before.jobs, *told}:
        known = before.jobs.get(job_id) or Known(view=None, since_unix_s=now_s, asked_unix_s=now_s)
        view = told.get(job_id, known.view)
        if view is not None and view.is_over and now_s - known.asked_unix_s > FORGET_S:
            continue
        was_over = known.view is not None and known.view.is_over
        since_s = known.since_unix_s if view == known.view or (was_over and view and view.is_over) else now_s
        jobs[job_id] = Known(view=view, since_unix_s=since_s, asked_unix_s=known.asked_unix_s)
    return Answer(polled_unix_s=now_s, jobs=jobs)


def _ask_all(before: Answer, answer_s: float) -> dict[str, JobView]:
    """Every job of this user that Slurm has in mind; those it has not any more as the data base has them."""
    squeue = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}", f"--format={SQUEUE_FORMAT}"]
    told = read_squeue(ask(squeue, answer_s))
    # This user's other jobs are no business of ours.
    told = {job_id: view for job_id, view in told.items() if {job_id, job_id.partition("_")[0]} & before.jobs.keys()}
    arrays = {job_id.partition("_")[0] for job_id in told}
    missing = sorted(
        job_id
        for job_id, known in before.jobs.items()
        if job_id not in told and job_id not in arrays and not (known.view is not None and known.view.is_over)
    )
    if missing:
        told |= {job_id: JobView(state=GONE) for job_id in missing}
        with contextlib.suppress(SlurmError):  # no data base there, or it does not answer
            told |= _from_data_base(missing, answer_s)
    return told


def _from_data_base(job_ids: list[str], answer_s: float) -> dict[str, JobView]:
    words = ["sacct", "-X", "-n", "-P", "-o", SACCT_FIELDS, "-j", ",".join(job_ids)]
    return read_sacct(ask(words, answer_s))


@contextlib.contextmanager
def _turn(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether it is ours to ask now; on a file system without locks it always is."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield True
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True
    finally:
        os.close(descriptor)


def _text(answer: Answer) -> bytes:
    return json.dumps(dataclasses.asdict(answer)).encode("ascii")


def _read(path: Path) -> Answer:
    """The file; as if nobody had asked yet where it is not there or damaged."""
    try:
        found = path.stat()
        return _parsed(path, (found.st_ino, found.st_mtime_ns, found.st_size))
    except OSError:
        return Answer()


@functools.lru_cache(maxsize=1)  # a listing looks at it once for every run
def _parsed(path: Path, _stamp: tuple[int, int, int]) -> Answer:
    try:
        value = json.loads(path.read_bytes())
        jobs = {}
        for job_id, known in value["jobs"].items():
            view = None if known["view"] is None else JobView(**known["view"])
            jobs[job_id] = Known(view, float(known["since_unix_s"]), float(known["asked_unix_s"]))
        return Answer(float(value["polled_unix_s"]), value["problem"], jobs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Answer()
