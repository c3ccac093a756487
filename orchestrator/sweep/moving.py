"""What one host left, as a share of another: the same points, their ids by what lies on that host. Pure."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import UsageError
from orchestrator.sweep.confirmation import configuration, unit_of
from orchestrator.sweep.group import Left, Part, told
from orchestrator.sweep.plan import Circumstances, cost_of, point_id
from orchestrator.sweep.points import as_json
from orchestrator.sweep.pruning import settings_over
from orchestrator.sweep.shares import rest, shared_out
from remote_payload.schema import JOB_KINDS, SweepJob, SweepPoint, SweepUnit, UnitJob, to_json
from remote_payload.schema.record import from_value
from remote_payload.schema.sweep import MOST_UNITS, SweepShare


@dataclass(frozen=True, kw_only=True)
class Target:
    """The host that goes on: how its jobs are based, what they find there, which share it gets."""

    base: UnitJob
    around: Circumstances
    share: SweepShare


def given_to(left: Sequence[Left], hosts: Sequence[str]) -> dict[str, list[Left]]:
    """What each of the hosts takes: its own, and of the others' the dearest configurations first, as at the start.

    Plain decoding stays where it was: it is measured with the points that need it.
    """
    found: dict[str, list[Left]] = {host: [one for one in left if one.part.host == host] for host in hosts}
    others: dict[str, list[Left]] = {}
    for one in left:
        if one.part.host not in found and not one.key.is_baseline and one.adopt is None:
            others.setdefault(configuration(one.point), []).append(one)
    costs = [sum(_cost(one) for one in some) for some in others.values()]
    for some, at in zip(others.values(), shared_out(costs, [()] * len(costs), {}, len(hosts)), strict=True):
        found[hosts[at]] += some
    return {host: some for host, some in found.items() if some}


def moved(left: Sequence[Left], parts: Sequence[Part], host: str, to: Target) -> SweepJob:
    """The share that measures it there, with the plain decoding that it needs and the host neither has nor will have.

    `parts` are the group's shares. A point that the host has measured before keeps the id it had.
    Raises UsageError where it would have more starts than a sweep may.
    """
    ids = {
        (point.changes_json, point.is_baseline): point.point_id
        for part in parts
        if part.host == host
        for point in part.job.points
    }
    points: dict[tuple[str, bool], SweepPoint] = {}
    units: list[SweepUnit] = []
    for block, some in sorted(_blocks(left, parts, host).items()):
        starts: dict[str, list[SweepPoint]] = {}
        adopted: dict[str, str | None] = {}
        for point, adopt in some:
            own = _own(point, to, ids)
            points[own.changes_json, own.is_baseline] = own
            starts.setdefault(configuration(own), []).append(own)
            adopted[configuration(own)] = adopt
        units += [
            dataclasses.replace(unit_of(f"u{len(units) + at:04d}", block, loads), adopt=adopted[name])
            for at, (name, loads) in enumerate(starts.items())
        ]
    if len(units) > MOST_UNITS:
        raise UsageError(
            f"`{host}` would take {len(units)} starts, and a sweep has at most {MOST_UNITS}",
            hint="name more hosts with --host",
        )
    return dataclasses.replace(
        left[0].part.job,
        base_json=to_json(to.base),
        units=tuple(units),
        points=tuple(points.values()),
        skipped=(),
        identity=to.around.identity,
        resumes=left[0].part.share_id,
        done=(),
        share=to.share,
    )


def _blocks(left: Sequence[Left], parts: Sequence[Part], host: str) -> dict[int, list[tuple[SweepPoint, str | None]]]:
    """By block what is to be measured, each point with the start that it takes over; before it the plain decoding."""
    blocks: dict[int, list[tuple[SweepPoint, str | None]]] = {}
    for one in left:
        blocks.setdefault(one.key.block, []).append((one.point, one.adopt))
    has = {
        (key.changes_json, key.block)
        for key, some in told(parts).items()
        if key.host == host and any(one.holds for one in some)
    }
    for block, some in blocks.items():
        some[:0] = [(point, None) for point in _plain(some, parts) if (point.changes_json, block) not in has]
    return blocks


def _plain(some: Sequence[tuple[SweepPoint, str | None]], parts: Sequence[Part]) -> list[SweepPoint]:
    """The plain decoding that these are held against and that is not among them."""
    there = {point.changes_json for point, _ in some if point.is_baseline}
    wanted = {rest(json.loads(point.changes_json)) for point, _ in some if not point.is_baseline}
    known: Mapping[str, SweepPoint] = {
        rest(json.loads(point.changes_json)): point for part in parts for point in part.job.points if point.is_baseline
    }
    return [known[one] for one in sorted(wanted & known.keys()) if known[one].changes_json not in there]


def _own(point: SweepPoint, to: Target, ids: Mapping[tuple[str, bool], str]) -> SweepPoint:
    known = ids.get((point.changes_json, point.is_baseline))
    return dataclasses.replace(point, point_id=known or point_id(_job(to.base, point), to.around))


def _job(base: UnitJob, point: SweepPoint) -> UnitJob:
    return from_value(JOB_KINDS[base.kind], settings_over(as_json(base), point))


def _cost(one: Left) -> float:
    base = json.loads(one.part.job.base_json)
    return cost_of(_job(from_value(JOB_KINDS[base["kind"]], base), one.point))
