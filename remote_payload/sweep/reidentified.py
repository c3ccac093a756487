"""A sweep that is launched long after it was planned, as by a schedule: known by what lies under its paths now."""

import dataclasses
import hashlib

from remote_payload.schema import PathIdentity, SweepJob
from remote_payload.sweep.identity import digest_of


def as_it_lies(job: SweepJob) -> tuple[SweepJob, tuple[str, ...]]:
    """The job with the identity of now, and which paths hold something else than when it was planned.

    Where any does, every point is another one, and gets an id of its own: made of the planned one and of what lies
    there, so that the same models give the same ids, and no id stands for points of two.
    """
    now = tuple(PathIdentity(path=one.path, digest=digest_of(one.path)) for one in job.identity)
    changed = tuple(one.path for one, planned in zip(now, job.identity, strict=True) if one.digest != planned.digest)
    if not changed:
        return job, ()
    there = "\0".join(f"{one.path}\0{one.digest}" for one in now)
    ids = {point.point_id: _id(point.point_id, there) for point in job.points}
    renamed = dataclasses.replace(
        job,
        identity=now,
        points=tuple(dataclasses.replace(point, point_id=ids[point.point_id]) for point in job.points),
        units=tuple(dataclasses.replace(unit, points=tuple(ids[point] for point in unit.points)) for unit in job.units),
    )
    return renamed, changed


def _id(point_id: str, there: str) -> str:
    return hashlib.sha256(f"{point_id}\0{there}".encode()).hexdigest()[: len(point_id)]
