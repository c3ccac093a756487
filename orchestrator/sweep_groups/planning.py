"""Points and hosts -> the shares of a group: what each host is, whether they go together, who gets what."""

import dataclasses
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import (
    Eagle3Error,
    HostNotReadyError,
    JobFileError,
    UsageError,
)
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order
from orchestrator.pipeline import python_for
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.several_hosts import Several
from orchestrator.store import Store
from orchestrator.sweep.classes import host_class
from orchestrator.sweep.plan import Circumstances, paths_of, plan
from orchestrator.sweep.points import Expanded
from orchestrator.sweep.same_models import Found, others
from orchestrator.sweep.shares import split
from orchestrator.sweep.software import Installed, other_versions
from orchestrator.sweeping.going_on import installed_now
from orchestrator.sweeping.identity import identify
from orchestrator.sweeping.launching import MOST_TAG
from orchestrator.sweeping.planning import Wanted
from remote_payload.schema import PathIdentity, SweepJob, to_json
from remote_payload.schema.sweep import SweepShare

LONGEST_GROUP_ID = MOST_TAG - len(".h999-ffff")


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What a host is, and what lies under the sweep's paths there."""

    destination: str
    host_class: str
    around: Circumstances
    deadline_s: float | None
    installed: dict[str, str] = dataclasses.field(default_factory=dict)
    """For the jobs of the sweep; empty = nobody can tell."""


def look(session: HostSession, paths: tuple[str, ...]) -> Looked:
    """Ask the host; not what is installed. Raises HostNotReadyError where it cannot say what GPUs it has."""
    facts = session.facts()
    kind = host_class(facts)
    if kind is None:
        raise HostNotReadyError(
            f"host `{session.name}` cannot say which GPUs it has: {facts.gpu_problem or facts.gpu_answer}",
            hint="`eagle3-remote hosts check` shows more; leave the host out of `--host` meanwhile",
        )
    identity = identify(session, paths, content=True)
    return Looked(
        destination=f"{session.destination} {session.host.root}",
        host_class=kind,
        around=Circumstances(payload_sha256=session.payload_sha256, identity=identity),
        deadline_s=session.host.deadline_s,
    )


def require_same_points(wanted: Mapping[str, Wanted]) -> None:
    """Raise JobFileError where the hosts' settings leave each another set of points: they could not be split."""
    changes = {json.dumps([dict(point.changes) for point in one.expanded.points]) for one in wanted.values()}
    if len(changes) > 1:
        source = next(iter(wanted.values())).file.source
        raise JobFileError(f"{source}: the hosts' settings in eagle3.toml leave each another set of points")


def shares_of(wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
    """What each host has to do; hosts with nothing are not among them. What is skipped is told with the first."""
    names = sorted(wanted)
    first = wanted[names[0]]
    places = {id(point): at for at, point in enumerate(first.expanded.points)}
    found: dict[str, Wanted] = {}
    for name, some in zip(names, split(first.file, first.expanded.points, len(names)), strict=True):
        if some:
            own = wanted[name].expanded.points
            skipped = () if found else first.expanded.skipped
            expanded = Expanded(points=tuple(own[places[id(point)]] for point in some), skipped=skipped)
            found[name] = dataclasses.replace(wanted[name], expanded=expanded)
    return found


def asked_sha256(wanted: Mapping[str, Wanted]) -> str:
    """Of what is asked for, whatever the hosts are."""
    one = wanted[min(wanted)]
    file = one.file
    told = [
        [[point.is_baseline, dict(point.changes)] for point in one.expanded.points],
        [file.repeats, file.blocks, file.seed, file.order, file.retries, file.stop_after_failures],
        json.loads(to_json(one.base)),
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def planned(
    wanted: Mapping[str, Wanted], hosts: Several, group_id: str, store: Store, *, mix_classes: bool, mix_models: bool
) -> tuple[SweepGroup, dict[str, Eagle3Error]]:
    """Look at the hosts and split the points among those that answer; the others are returned with their errors.

    Raises the error of the first host where none answers, UsageError for hosts that cannot share a sweep.
    """
    if len(group_id) > LONGEST_GROUP_ID:
        raise UsageError(f"the id of a sweep over several hosts has at most {LONGEST_GROUP_ID} characters: {group_id}")
    answers = hosts.each(lambda session: _looked(session, wanted[session.name], group_id, store))
    if not answers.found:
        raise next(iter(answers.errors.values()))
    require_apart(answers.found)
    require_alike(answers.found, mix_classes=mix_classes)
    require_same_models({name: one.around.identity for name, one in answers.found.items()}, mix_models=mix_models)
    require_same_software({name: one.installed for name, one in answers.found.items()}, mix_classes=mix_classes)
    own = shares_of({name: wanted[name] for name in answers.found})
    shares = []
    for number, (name, one) in enumerate(own.items(), start=1):
        looked = answers.found[name]
        job = plan(one.file, one.base, one.expanded, looked.around)
        share = SweepShare(group_id=group_id, number=number, hosts=tuple(own), host_class=looked.host_class)
        job = dataclasses.replace(job, unit_deadline_s=looked.deadline_s, share=share, installed=looked.installed)
        shares.append(share_of(job, name, looked.destination, one.settings))
    group = SweepGroup(
        group_id=group_id,
        asked_sha256=asked_sha256(wanted),
        source=wanted[min(wanted)].file.source,
        created_unix_s=time.time(),
        shares=tuple(shares),
    )
    return group, dict(answers.errors)


def _looked(session: HostSession, asked: Wanted, group_id: str, store: Store) -> Looked:
    found = look(session, paths_of(asked.base, asked.expanded.points))
    order = Order(planned=PlannedJob(job=asked.base, settings=asked.settings), run_id=group_id)
    python = python_for(order, session, store, lambda _: None, trust=True)  # told when it is launched
    return dataclasses.replace(found, installed=installed_now(session, to_json(asked.base), python))


def share_of(
    job: SweepJob, host: str, destination: str, settings: tuple[Any, ...], share_id: str | None = None
) -> GroupShare:
    """The record of a share; one of the first is called by its number."""
    assert job.share is not None
    return GroupShare(
        share_id=share_id or f"{job.share.group_id}.h{job.share.number}",
        number=job.share.number,
        host=host,
        destination=destination,
        host_class=job.share.host_class,
        job_json=to_json(job),
        settings=settings,
    )


def later_id(job: SweepJob, where: str) -> str:
    """What a share is called that was made of others' rest: two laptops that move the same to one host say the same.

    Two that move it to two hosts do not. `where` tells the host's root from every other.
    """
    assert job.share is not None
    changes = {point.point_id: point.changes_json for point in job.points}
    points = sorted((changes[one], unit.block) for unit in job.units for one in unit.points)
    word = hashlib.sha256(json.dumps([where, points]).encode()).hexdigest()
    return f"{job.share.group_id}.h{job.share.number}-{word[:4]}"


def require_apart(looked: Mapping[str, Looked]) -> None:
    """Two names of one machine would measure each other. Raises UsageError."""
    seen: dict[str, str] = {}
    for name, one in looked.items():
        if (other := seen.setdefault(one.destination, name)) != name:
            raise UsageError(f"--host: `{other}` and `{name}` are one host, {one.destination.split()[0]}")


def require_alike(looked: Mapping[str, Looked], *, mix_classes: bool) -> None:
    """Of one class, and the models on all or none of them. Raises UsageError, HostNotReadyError."""
    classes = {name: one.host_class for name, one in looked.items()}
    if len(set(classes.values())) > 1 and not mix_classes:
        told = "; ".join(f"{name}: {words}" for name, words in classes.items())
        raise UsageError(
            f"--host: these hosts are not alike, and what one measures cannot be held against the others: {told}",
            hint="take hosts of one class, or --mix-classes: the points are split all the same, with a table a class",
        )
    found: dict[str, dict[str, PathIdentity]] = {}
    for name, one in looked.items():
        for path in one.around.identity:
            found.setdefault(path.path, {})[name] = path
    for where, there in found.items():
        lacking = [name for name, path in there.items() if path.digest is None]
        if lacking and len(lacking) < len(there):
            having = next(name for name in there if name not in lacking)
            raise HostNotReadyError(
                f"expected {where} on every host, `{having}` has it, and not: {', '.join(lacking)}",
                hint="copy it there, or leave these hosts out of --host",
            )


def require_same_models(found: Found, *, mix_models: bool) -> None:
    """Whoever measures another drafter measures another thing. Raises UsageError."""
    if (told := others(found)) and not mix_models:
        raise UsageError(
            "--host: these hosts have other models or data under the sweep's paths, and what one measures cannot be "
            f"held against the others: {'; '.join(told)}",
            hint="copy the same there, or --mix-models: the points are split all the same, with a table for each",
        )


def require_same_software(found: Installed, *, mix_classes: bool) -> None:
    """Whoever measures with another SGLang measures another thing. Raises UsageError."""
    if (told := other_versions(found)) and not mix_classes:
        raise UsageError(
            "--host: other versions are installed on these hosts, and what one measures cannot be held against the "
            f"others: {'; '.join(told)}",
            hint="install the same, or --mix-classes: the points are split all the same, with a table for each",
        )
