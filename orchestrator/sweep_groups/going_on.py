"""What a sweep over several hosts left, as new shares: where it was, or on another host; nothing knowingly twice."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.config import Config
from orchestrator.errors import ClaimedError, Eagle3Error, InvalidRunError, UsageError
from orchestrator.jobfile import PlannedJob
from orchestrator.order import at_host
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.several_hosts import Several
from orchestrator.sweep.group import Left, left
from orchestrator.sweep.moving import Target, given_to, moved
from orchestrator.sweep.remaining import drifted
from orchestrator.sweep.software import measured_with
from orchestrator.sweep_groups.members import Member, first_hosts, job_of
from orchestrator.sweep_groups.planning import Looked, later_id, look, require_same_models, share_of
from orchestrator.sweep_groups.telling import Known
from orchestrator.sweeping.going_on import drift_of, installed_now
from orchestrator.waiting import same_gpus
from remote_payload.schema import SweepJob, job_from_json
from remote_payload.schema.sweep import SweepShare
from remote_payload.schema.waiting import Waiting

OF_HOST = "eagle3.toml [hosts."
"""How the source of a setting begins that the host's configuration added."""


@dataclass(frozen=True, kw_only=True)
class Again:
    """How to go on."""

    hosts: tuple[str, ...] = ()
    """Those that take what is left; empty = those of the group that answer."""
    dead: tuple[str, ...] = ()
    """Hosts of which the user says that nothing more comes."""
    skip_failed: bool = False
    allow_drift: bool = False
    mix_classes: bool = False
    mix_models: bool = False


def declared_dead(members: Sequence[Member], dead: Sequence[str]) -> tuple[Member, ...]:
    """The shares with what the user says of their hosts. Raises UsageError for a host that answers, or has none."""
    for name in dead:
        own = [member for member in members if member.share.host == name]
        if not own:
            names = ", ".join(dict.fromkeys(member.share.host for member in members))
            raise UsageError(
                f"--host-is-dead: no share of this sweep is on: {name}", hint=f"the hosts of its shares: {names}"
            )
        if any(member.part.problem is None for member in own):
            raise UsageError(f"--host-is-dead: `{name}` answers", hint="what it left is moved without this flag")
    return tuple(
        dataclasses.replace(
            member,
            share=dataclasses.replace(member.share, is_dead=True),
            part=dataclasses.replace(member.part, is_dead=True),
        )
        if member.share.host in dead
        else member
        for member in members
    )


def known_of(group: SweepGroup, members: Sequence[Member]) -> Known:
    """What new shares may take up: every share, for this laptop knows what became of each."""
    return Known(
        over=tuple(share.share_id for share in group.shares),
        never_begun=tuple(member.share.share_id for member in members if not member.part.launched),
    )


def given(members: Sequence[Member], wish: Again) -> dict[str, list[Left]]:
    """Which host takes what. Raises ClaimedError where it may still be measured, InvalidRunError where none is left."""
    parts = [member.part for member in members]
    found = left(parts, skip_failed=wish.skip_failed)
    if not found:
        raise _nothing_left(members)
    silent = {part.host for part in parts if part.problem is not None}
    hosts = wish.hosts or tuple(dict.fromkeys(part.host for part in parts if part.host not in silent))
    if not hosts:
        raise UsageError("no host of this sweep answers: `--host NAME` names one that takes what is left")
    taken = given_to(found, hosts)
    if not taken:
        where = ", ".join(sorted({one.part.host for one in found}))
        raise InvalidRunError(f"what is left can be measured only where it was: {where}")
    return taken


def new_shares(
    group: SweepGroup,
    members: Sequence[Member],
    taken: Mapping[str, list[Left]],
    hosts: Several,
    of: tuple[Config, Again],
) -> tuple[GroupShare, ...]:
    """The share of each host that takes something.

    Raises the error of a host that does not answer, InvalidRunError on drift, UsageError for a host of another class
    or with other models.
    """
    config, wish = of
    paths = tuple(one.path for one in next(iter(taken.values()))[0].part.job.identity)
    answers = hosts.each(lambda session: (look(session, paths), *_drift(session, members)), tuple(taken))
    if answers.errors:
        raise next(iter(answers.errors.values()))
    number = max(share.number for share in group.shares)
    shares = []
    for name, some in taken.items():
        looked, drift, installed = answers.found[name]
        _require_fit(name, looked, [one for one in some if one.part.host != name], wish)
        if drift and not wish.allow_drift:
            raise InvalidRunError(
                f"what is left of sweep `{group.group_id}` would not be measured on {name} as the rest was: "
                f"{'; '.join(drift)}",
                hint="--allow-drift goes on all the same; else launch the sweep file anew",
            )
        number += 1
        share = SweepShare(
            group_id=group.group_id, number=number, hosts=first_hosts(group.shares), host_class=looked.host_class
        )
        base = based_at(some[0], members, name, config)
        target = Target(base=base.job, around=looked.around, share=share)  # type: ignore[arg-type]
        job = moved(some, [member.part for member in members], name, target)
        job = dataclasses.replace(job, drift=drift, installed=installed, unit_deadline_s=looked.deadline_s)
        place = hosts.places.get(name)
        share_id = later_id(job, place or looked.destination)
        new = share_of(job, name, looked.destination, base.settings, share_id)
        shares.append(dataclasses.replace(new, place=place))
    return tuple(shares)


def based_at(one: Left, members: Sequence[Member], host: str, config: Config) -> PlannedJob:
    """What all points share, as that host's configuration completes it: not as the host that left them had it."""
    member = next(member for member in members if member.share.share_id == one.part.share_id)
    base = job_from_json(one.part.job.base_json)
    settings = member.share.settings
    others = tuple(setting for setting in settings if not setting.source.startswith(OF_HOST))
    if len(others) < len(settings):
        cleared = {"exec_prefix": ()}
        base = dataclasses.replace(base, **cleared)  # type: ignore[arg-type]
    return at_host(PlannedJob(job=base, settings=others), host, config.host(host))


def waiting_of(share: GroupShare, members: Sequence[Member], config: Config) -> Waiting | None:
    """What a new share waits for: as many GPUs as the share whose rest it takes, by the leases of its own host."""
    job = job_of(share)
    asked = next((member.asked for member in members if member.share.share_id == job.resumes), None)
    adopts = any(unit.adopt is not None for unit in job.units)
    waiting = None if asked is None else same_gpus(asked.record.spec.waiting, adopts=adopts)
    return None if waiting is None else dataclasses.replace(waiting, leases=config.host(share.host).leases)


def _require_fit(name: str, looked: Looked, others: Sequence[Left], wish: Again) -> None:
    """Raises UsageError where what others left would be measured on another class of host, or of other models."""
    for one in others:
        if one.part.host_class != looked.host_class and not wish.mix_classes:
            raise UsageError(
                f"`{name}` ({looked.host_class}) is another class than `{one.part.host}` ({one.part.host_class}), and "
                "what the one measures cannot be held against the other",
                hint="name a host of that class, or --mix-classes: it is measured all the same, in a table of its own",
            )
    for host, identity in {one.part.host: one.part.job.identity for one in others}.items():
        require_same_models({host: identity, name: looked.around.identity}, mix_models=wish.mix_models)


def _drift(session: HostSession, members: Sequence[Member]) -> tuple[tuple[str, ...], dict[str, str]]:
    """What is not as it was for this host's latest share, and what is installed there now.

    Of a host that had none, the tool's payload and the software count, the latter as the other hosts measured with it:
    figures of a class of hosts are held against each other.
    """
    earlier = [member for member in members if member.asked is not None]
    own = [member for member in earlier if member.share.host == session.name]
    if not earlier:
        return (), {}
    asked = (own or earlier)[-1].asked
    assert asked is not None
    spec = asked.record.spec
    python = session.host.python or spec.python
    if own:
        return drift_of(asked, session, python)[1:]
    payloads = (spec.payload_sha256, session.payload_sha256)
    then = measured_with(asked.job, asked.attempts)
    now = installed_now(session, asked.job.base_json, python)
    nothing = SweepJob(base_json="{}", units=(), points=())
    return drifted(nothing, (), payloads, (None, None), ("", ""), (then, now)), now


def _nothing_left(members: Sequence[Member]) -> Eagle3Error:
    silent = [member.part for member in members if member.part.may_measure and member.part.problem is not None]
    if silent:
        told = "; ".join(f"{part.share_id} on {part.host} ({part.problem})" for part in silent)
        return ClaimedError(
            f"nothing is left that may be moved: hosts that do not answer may still measure their shares: {told}",
            hint=f"once it is sure that nothing runs there any more: --host-is-dead {silent[0].host}",
        )
    running = [member.part for member in members if member.part.may_measure]
    if running:
        told = ", ".join(f"{part.share_id} on {part.host}" for part in running)
        return ClaimedError(f"nothing is left but what still runs: {told}")
    return InvalidRunError("nothing is left of this sweep: what it asked for is measured or left out")
