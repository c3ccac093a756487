"""The shares of a group as their hosts tell them: launched, and asked."""

import contextlib
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import (
    ClaimedError,
    Eagle3Error,
    HostNotReadyError,
    NotFoundError,
    ProtocolError,
)
from orchestrator.following import Tell
from orchestrator.jobfile import PlannedJob
from orchestrator.order import Order
from orchestrator.outcome import error_of
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.several_hosts import Several, told_by
from orchestrator.store import Store
from orchestrator.store.groups import keep_group, load_group
from orchestrator.sweep.group import Part
from orchestrator.sweep.standing import progress_of
from orchestrator.sweep_groups import telling
from orchestrator.sweeping import asking, launching
from orchestrator.sweeping.asking import Asked
from remote_payload.schema import SweepJob, job_from_json, to_json
from remote_payload.schema.group import ToldShare
from remote_payload.schema.waiting import Waiting

THINKS_S = 20.0
"""How long one host may keep the answers of the others waiting."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One share and what is known of it now; `asked` is None where nothing ever was."""

    share: GroupShare
    part: Part
    asked: Asked | None


def begin(group: SweepGroup, store: Store) -> None:
    """Write it down before anything is launched. Raises ClaimedError where a run of this laptop has that id."""
    if store.run_dir(group.group_id).path.is_dir():
        raise ClaimedError(f"this laptop has a run of this id: {group.group_id}", hint="take another --run-id")
    keep_group(store.home, group)


def again(group_id: str, asked_sha256: str, hosts: Collection[str], store: Store) -> SweepGroup:
    """The group that was written down before, if the same is asked of its hosts: it was split once.

    Raises ClaimedError.
    """
    known_here = load_group(store.home, group_id)
    if known_here.asked_sha256 != asked_sha256:
        raise ClaimedError(f"this laptop knows another sweep of this id: {group_id}", hint="take another --run-id")
    if lacking := [name for name in known_here.hosts if name not in hosts]:
        raise ClaimedError(
            f"sweep `{group_id}` was split once, and `{lacking[0]}` has a share of it",
            hint=f"--host {','.join(known_here.hosts)}, or take another --run-id",
        )
    if any(share.number > len(first_hosts(known_here.shares)) for share in known_here.shares):
        raise ClaimedError(  # a share that was never launched may have been moved
            f"sweep `{group_id}` was gone on with, and its shares are not launched again",
            hint=f"`eagle3-remote sweep follow {group_id}` follows it, `sweep resume {group_id}` measures what is left",
        )
    return known_here


def first_hosts(shares: Sequence[GroupShare]) -> tuple[str, ...]:
    """Those that the points were split among, as the laptop that did it named them."""
    share = job_of(shares[0]).share
    return () if share is None else share.hosts


def launch(
    shares: Sequence[GroupShare],
    hosts: Several,
    store: Store,
    tell: Tell,
    waiting: Mapping[str, Waiting | None],
    told: Sequence[ToldShare] = (),
) -> dict[str, Eagle3Error]:
    """Launch each share on its host, by name of the share's id; returns by host what kept one from it.

    `told`: what each host is told of before, unless it knows.
    """

    def begin(session: HostSession) -> None:
        if told:
            telling.tell(session, told[0].group_id, told, known=[one.run_id for one in told])
        for share in shares:
            if share.host == session.name:
                job = job_from_json(share.job_json)
                order = Order(
                    planned=PlannedJob(job=job, settings=share.settings),
                    run_id=share.share_id,
                    waiting=waiting.get(share.share_id),
                )
                record = launching.launch(order, session, store, told_by(session.name, tell, hosts.lock))
                if record.state is not None:  # it may have ended at once, as for want of GPUs
                    error = error_of(record.state, job_kind=record.job_kind, host=session.name)
                    if error is not None:
                        raise error

    return dict(hosts.each(begin, tuple(dict.fromkeys(share.host for share in shares))).errors)


def begun(group: SweepGroup, shares: Sequence[GroupShare], store: Store) -> SweepGroup:
    """The group with these shares launched, as far as anybody knows; kept, so that it is known whatever comes."""
    ids = {share.share_id for share in shares}
    told = (dataclasses.replace(one, is_launched=True) if one.share_id in ids else one for one in group.shares)
    group = dataclasses.replace(group, shares=tuple(told))
    keep_group(store.home, group)
    return group


def not_begun(group: SweepGroup, failed: Collection[str], before: SweepGroup, store: Store) -> SweepGroup:
    """The group once it was launched: of the hosts that `failed`, what certainly reached none of them is as before."""
    then = {share.share_id: share for share in before.shares}
    told = (
        then[one.share_id] if one.host in failed and not store.run_dir(one.share_id).path.is_dir() else one
        for one in group.shares
    )
    group = dataclasses.replace(group, shares=tuple(told))
    keep_group(store.home, group)
    return group


def ask(group: SweepGroup, hosts: Several, store: Store, only: Collection[str] | None = None) -> tuple[Member, ...]:
    """Every share as it is now; of a host that does not answer as it was told last, with the reason.

    `only`: the hosts to ask, where it is not all that there are sessions for.
    """

    def work(session: HostSession) -> dict[str, Asked | Eagle3Error]:
        found: dict[str, Asked | Eagle3Error] = {}
        for share in group.shares:
            if share.host == session.name:
                found[share.share_id] = _asked(session, share, group.group_id, store)
        return found

    names = [name for name in group.hosts if name in hosts.names and (only is None or name in only)]
    answers = hosts.each(work, names)
    members = []
    for share in group.shares:
        told = answers.found.get(share.host, {}).get(share.share_id) or answers.errors.get(share.host)
        members.append(_member(share, told, store))
    return tuple(members)


def unreached(members: Sequence[Member], names: Collection[str]) -> tuple[Member, ...]:
    """The shares, those on hosts that were not dialled as silent: nobody knows what these still measure."""
    return tuple(
        member
        if member.share.host in names
        else dataclasses.replace(
            member,
            part=dataclasses.replace(
                member.part,
                problem=f"no host of this laptop's eagle3.toml is called `{member.share.host}`, as the laptop that "
                f"launched it calls {member.share.destination.split()[0]}",
            ),
        )
        for member in members
    )


def _asked(session: HostSession, share: GroupShare, group_id: str, store: Store) -> Asked | Eagle3Error:
    """One share as its host tells it; what it says is no such sweep only where it is the host that was launched on."""
    try:
        asked = asking.ask(session, share.share_id, store, THINKS_S)
    except NotFoundError as error:
        heard = telling.tell(session, group_id, known=[share.share_id])
        if share.share_id in heard.gone:
            return HostNotReadyError(
                f"{share.share_id} was on it, and `gc` took it away: the laptop that brought it home goes on with it"
            )
        return telling.elsewhere(share, heard) or error
    if to_json(asked.job) != share.job_json:
        return ProtocolError(f"the host has another sweep by this name: {share.share_id}")
    return asked


def known(group: SweepGroup, store: Store) -> tuple[Member, ...]:
    """Every share as its host told it last, without asking."""
    return tuple(_member(share, None, store) for share in group.shares)


def _member(share: GroupShare, told: Asked | Eagle3Error | None, store: Store) -> Member:
    """`told`: what its host said of it, NotFoundError: that there is no such sweep; None: nobody asked."""
    asked = told if isinstance(told, Asked) else None
    if asked is None:
        with contextlib.suppress(NotFoundError):
            asked = asking.known(share.share_id, store)
    is_gone = isinstance(told, NotFoundError)
    launched = asked is not None or (share.is_launched and not is_gone)
    job = job_of(share)
    if asked is None:
        progress = progress_of(job, (), "unknown" if launched else "never launched")
    elif is_gone:
        progress = progress_of(job, asked.attempts, "lost")
    else:
        progress = asked.progress
    failed = isinstance(told, Eagle3Error) and not is_gone
    part = Part(
        share_id=share.share_id,
        number=share.number,
        host=share.host,
        host_class=share.host_class,
        job=job,
        progress=progress,
        launched=launched,
        is_dead=share.is_dead and not isinstance(told, Asked),
        problem=told.message if failed and isinstance(told, Eagle3Error) else None,
        told_unix_s=None if asked is None else asked.told_unix_s,
        is_recalled=told is None,
    )
    return Member(share=share, part=part, asked=asked)


def job_of(share: GroupShare) -> SweepJob:
    """What a share measures."""
    job = job_from_json(share.job_json)
    assert isinstance(job, SweepJob)
    return job
