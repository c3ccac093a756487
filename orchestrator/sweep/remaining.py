"""A sweep that goes on with another: only what was not measured, and what still runs is waited for. Pure."""

import dataclasses
import json
from collections.abc import Mapping, Sequence

from orchestrator.sweep.points import LOADS
from orchestrator.sweep.software import installed_anew
from orchestrator.sweep.standing import Progress, Standing
from remote_payload.schema import PathIdentity, SkippedPoint, SweepDone, SweepJob, SweepUnit


def remaining(
    earlier: SweepJob,
    sweep_id: str,
    progress: Progress,
    *,
    skip_failed: bool = False,
    hopeless: Mapping[str, str] | None = None,
) -> SweepJob:
    """The units of what is left, in their order; no unit: nothing is left.

    `skip_failed` leaves out what failed; that, and `hopeless` points, by id, are skipped with their reason. Of these
    one that runs stays: nobody else would wait for it, and the next start would be measured beside it.
    """
    running_now = {one.point_id for one in progress.standings if one.word == "running"}
    pruned = {point: reason for point, reason in (hopeless or {}).items() if point not in running_now}
    standings = {(one.point_id, one.block): one for one in progress.standings}
    failed: list[tuple[str, Standing]] = []
    units: list[SweepUnit] = []
    for unit in earlier.units:
        left = []
        for point in unit.points:
            word = standings[point, unit.block].word
            if skip_failed and word == "failed" and point not in pruned:
                failed.append((point, standings[point, unit.block]))
            elif word != "measured" and point not in pruned:
                left.append(point)
        if not left:
            continue
        running = {
            run_id
            for point in left
            if (one := standings[point, unit.block]).word == "running" and (run_id := one.run_id)
        }
        units.append(_only(unit, left, adopt=next(iter(running), None)))
    done = tuple(
        SweepDone(point_id=one.point_id, block=one.block, run_id=one.run_id)
        for one in progress.standings
        if one.word == "measured" and one.run_id is not None
    )
    changes = {point.point_id: point.changes_json for point in earlier.points}
    skipped = tuple(SkippedPoint(changes_json=changes[point], reason=reason) for point, reason in pruned.items())
    skipped += tuple(SkippedPoint(changes_json=changes[point], reason=_why_failed(one)) for point, one in failed)
    return dataclasses.replace(
        earlier, units=tuple(units), resumes=sweep_id, done=done, skipped=(*earlier.skipped, *skipped)
    )


def _why_failed(one: Standing) -> str:
    failure = "" if one.failure is None else f": {one.failure.message}"
    return f"it failed in block {one.block}{failure} ({one.run_id}); left out by --skip-failed"


def _only(unit: SweepUnit, points: Sequence[str], adopt: str | None) -> SweepUnit:
    """The unit for some of its points; of a served benchmark these are loads."""
    changes = json.loads(unit.changes_json)
    if all(key in changes for key in LOADS):
        loads = [(key, value) for key in LOADS for value in changes[key]]
        kept = [load for point, load in zip(unit.points, loads, strict=True) if point in points]
        changes |= {key: [value for name, value in kept if name == key] for key in LOADS}
    return dataclasses.replace(unit, changes_json=json.dumps(changes), points=tuple(points), adopt=adopt)


def drifted(
    earlier: SweepJob,
    identity: Sequence[PathIdentity],
    payloads: tuple[str, str],
    environments: tuple[object, object],
    pythons: tuple[str, str],
    software: tuple[Sequence[Mapping[str, str]], Mapping[str, str]] = ((), {}),
) -> tuple[str, ...]:
    """What is not as it was when the earlier sweep was planned, a sentence each; pairs are (then, now).

    `pythons`: the interpreter that ran it, and the one that would now. `software`: versions by package, of everything
    that was measured; where they are known and all as they were, another path of the interpreter is no drift.
    """
    then = {one.path: one.digest for one in earlier.identity}
    found = [
        f"what lies under {one.path} on the host is another than it was"
        for one in identity
        if then.get(one.path) != one.digest
    ]
    if payloads[0] != payloads[1]:
        found.append(f"the tool's payload is another: {payloads[0][:12]} then, {payloads[1][:12]} now")
    if environments[0] != environments[1]:
        found.append("the host's `environment` in eagle3.toml is another")
    ran, runs = pythons
    others = installed_anew(*software)
    is_known = bool(software[1]) and any(software[0])
    is_another = "/" in runs and not ran.endswith(runs.removeprefix("~"))
    if is_another and (others or not is_known):
        found.append(f"the interpreter is another: {ran} then, {runs} now")
    return (*found, *others)
