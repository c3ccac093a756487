"""Which share of a group has which points, as this host was told: `<root>/groups/<id>.jsonl`, under a lock.

A sweep over several hosts is nobody's but its laptops', and two of them may go on with it at the same moment, each on
a host that the other does not know. They meet on the hosts that both ask: a share is told to every host of the group
that answers before it is launched, and a host that was told of another with the same points refuses it. Whoever knows
what became of that other says so (`over`).
"""

import functools
import os
import time
from collections.abc import Mapping
from pathlib import Path

from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.place import place_of
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import EndFrame, RunSpec, SchemaError, SweepJob, job_from_json
from remote_payload.schema.group import TellFrame, TellRequest, ToldShare
from remote_payload.sweep.group_file import Ledger, Line, append, locked, path_of, read
from remote_payload.sweep.succession import require_over


def tell(request: TellRequest, send: Send) -> None:
    """Take in what is told, then answer with a TellFrame. Raises Refusal `sweep_goes_on` where it meets another."""
    root = absolute_root(request.root)
    path = path_of(root, request.group_id)
    if request.shares or request.withdrawn:
        with locked(path) as descriptor:
            found = _taken_in(request, root, path, descriptor)
    else:
        found = read(path)
    here = tuple(one for one in found.shares if RunDir(root / "runs" / one).spec.is_file())
    gone = tuple(sorted(found.gone.difference(here)))
    shares = tuple(share for name, share in found.shares.items() if name not in request.known)
    send(TellFrame(shares=shares, here=here, gone=gone, place=place_of(root)))
    send(EndFrame())


def _taken_in(request: TellRequest, root: Path, path: Path, descriptor: int) -> Ledger:
    found = read(path)
    if request.shares and not any(one.over for one in request.shares) and not _has_runs(root, request.group_id):
        os.ftruncate(descriptor, 0)  # of an earlier sweep of that name, which is gone
        found = Ledger()
    shares = found.shares
    lines = [Line(withdrawn=one) for one in request.withdrawn if shares.pop(one, None) is not None]
    for share in request.shares:
        _require_free(share, found, root)
        if shares.get(share.run_id, share).job_json != share.job_json:
            raise _refusal(shares[share.run_id])
        if share.run_id not in shares:
            shares[share.run_id] = _dated(share)
            lines.append(Line(share=shares[share.run_id]))
    append(descriptor, path, lines)
    return found


def enter(job: SweepJob, spec: RunSpec, runs: Path) -> None:
    """A share is about to begin here, whether this host was told of it or not.

    Raises Refusal `sweep_goes_on` where it was told meanwhile that another has its points.
    """
    if job.share is None or job.confirms is not None:  # measured afresh, whoever has the points
        return
    path = path_of(runs.parent, job.share.group_id)
    with locked(path) as descriptor:
        found = read(path)
        share = found.shares.get(spec.run_id) or ToldShare(
            group_id=job.share.group_id,
            run_id=spec.run_id,
            host="",
            destination="",
            job_json=spec.job_json,
            settings=spec.settings,
            over=() if job.resumes is None else (job.resumes,),
            told_by=spec.launched_by,
        )
        if share.job_json != spec.job_json:
            raise _refusal(share)
        _require_free(share, found, runs.parent)
        if spec.run_id not in found.shares:
            append(descriptor, path, [Line(share=_dated(share))])


def note_gone(spec: RunSpec, runs: Path) -> None:
    """A run is about to be taken away: where it is a share that was told, it must not pass for one that never began.

    Raises Refusal where that cannot be written.
    """
    job = job_from_json(spec.job_json)
    if isinstance(job, SweepJob) and job.share is not None:
        path = path_of(runs.parent, job.share.group_id)
        if path.is_file():
            with locked(path) as descriptor:
                append(descriptor, path, [Line(gone=spec.run_id)])


def take_away(root: Path, group_id: str, last_s: float) -> None:
    """Remove what this host was told of a group, if nothing was told since `last_s`. Raises Refusal, OSError."""
    path = path_of(root, group_id)
    if not path.is_file():  # another `gc` was quicker
        return
    with locked(path) as descriptor:
        if os.fstat(descriptor).st_mtime > last_s:
            raise Refusal("bad_request", f"somebody goes on with it just now: {group_id}")
        path.unlink()


def _require_free(share: ToldShare, found: Ledger, root: Path) -> None:
    own, known = _points(share.job_json), _known_to(share, found.shares)
    for other in found.shares.values():
        if other.run_id == share.run_id or not own & _points(other.job_json):
            continue
        if other.run_id not in known or share.run_id in _known_to(other, found.shares):
            raise _refusal(other)
        run = RunDir(root / "runs" / other.run_id)
        if other.run_id in share.never_begun and (run.spec.is_file() or other.run_id in found.gone):
            raise Refusal(
                "sweep_goes_on",
                f"share `{other.run_id}` began here, and has the same points",
                f"`eagle3-remote sweep resume {share.group_id}` once more asks the hosts anew",
            )
        if run.spec.is_file():
            require_over(run)


def _refusal(other: ToldShare) -> Refusal:
    where = f" on {other.host} ({other.destination.split()[0]})" if other.destination else " here"
    return Refusal(
        "sweep_goes_on",
        f"share `{other.run_id}`{where} has the same points; {other.told_by} made it",
        f"`eagle3-remote sweep resume {other.group_id}` once more takes it in, and measures what it leaves",
    )


def _known_to(share: ToldShare, found: Mapping[str, ToldShare]) -> set[str]:
    """The shares whose points it may have: those it names, and whose rest these took."""
    known: set[str] = set()
    left = [*share.over]
    while left:
        name = left.pop()
        if name not in known:
            known.add(name)
            left += found[name].over if name in found else ()
    return known


@functools.cache
def _points(job_json: str) -> frozenset[tuple[str, int]]:
    """What a share measures, each in one block; not plain decoding, which every host has of its own."""
    try:
        job = job_from_json(job_json)
    except SchemaError:
        return frozenset()
    if not isinstance(job, SweepJob):
        return frozenset()
    changes = {point.point_id: point.changes_json for point in job.points if not point.is_baseline}
    return frozenset((changes[one], unit.block) for unit in job.units for one in unit.points if one in changes)


def _has_runs(root: Path, group_id: str) -> bool:
    return any((root / "runs").glob(f"{group_id}.h*"))


def _dated(share: ToldShare) -> ToldShare:
    return ToldShare(**{**share.__dict__, "told_unix_s": time.time()})
