"""A group put together from what its hosts tell: on another laptop, and with the shares that another one made since."""

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, Eagle3Error, NotFoundError, ProtocolError
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.several_hosts import Answers, Several
from orchestrator.store import Store
from orchestrator.store.groups import is_group, keep_group, load_group
from orchestrator.sweep_groups.members import first_hosts
from orchestrator.sweep_groups.planning import share_of
from orchestrator.sweep_groups.telling import tell
from remote_payload.schema import SchemaError, SweepJob, job_from_json
from remote_payload.schema.group import ToldShare


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What one host says of a group."""

    own: tuple[GroupShare, ...]
    """Shares that are its runs."""
    others: tuple[GroupShare, ...]
    """Those that it was told of."""
    place: str | None


def found_on(group_id: str, hosts: Several, store: Store) -> tuple[SweepGroup, dict[str, Eagle3Error]]:
    """The group as its hosts tell it, over what is known here; by host what kept one from telling.

    Kept here, so that from now on this laptop knows it. Raises NotFoundError where no host has a share or was told of
    one, ClaimedError as `newest` does.
    """
    known_here = load_group(store.home, group_id) if is_group(store.home, group_id) else None
    answers = _each(hosts, group_id, store, hosts.names, () if known_here is None else known_here.shares)
    shares = gathered(() if known_here is None else known_here.shares, answers.found)
    if not shares:
        if answers.errors:
            raise next(iter(answers.errors.values()))
        raise NotFoundError(f"none of the hosts {', '.join(hosts.names)} has a share of a sweep: {group_id}")
    first = first_hosts(shares)
    numbers = {share.number for share in shares if not share.is_hearsay}
    missing = tuple(
        f"share {number} of {len(first)}, launched on `{name}`: none of the hosts asked has it"
        for number, name in enumerate(first, start=1)
        if number not in numbers
    )
    if known_here is None:
        group = SweepGroup(group_id=group_id, created_unix_s=time.time(), shares=shares, missing=missing)
    else:
        group = dataclasses.replace(known_here, shares=shares, missing=missing)
    keep_group(store.home, group)
    return group, dict(answers.errors)


def newest(group: SweepGroup, hosts: Several, store: Store, but: Collection[str] = ()) -> SweepGroup:
    """The group with the shares that another laptop made since, as the hosts that are dialled tell them; kept here.

    `but`: hosts that are not asked, besides those that were said to be dead.
    Raises ClaimedError where two laptops gave one name to two shares: whoever goes on would measure their points twice.
    """
    dead = {share.host for share in group.shares if share.is_dead} | {*but}
    names = [name for name in hosts.names if name not in dead]
    answers = _each(hosts, group.group_id, store, names, group.shares)
    shares = gathered(group.shares, answers.found)
    if shares != group.shares:
        group = dataclasses.replace(group, shares=shares)
        keep_group(store.home, group)
    return group


def _each(
    hosts: Several, group_id: str, store: Store, names: Sequence[str], known: Sequence[GroupShare]
) -> Answers[Heard]:
    answers = hosts.each(lambda session: _heard(session, group_id, store, known), names)
    hosts.places |= {name: heard.place for name, heard in answers.found.items()}
    return answers


def gathered(known_here: Sequence[GroupShare], heard: Mapping[str, Heard]) -> tuple[GroupShare, ...]:
    """What is known of each share, and what the hosts say, by their names here.

    A share that no host has yet is taken over from those that were told of it. Raises ClaimedError as `newest` does.
    """
    names = {one.place: name for name, one in heard.items()}
    found = merged(known_here, [share for one in heard.values() for share in one.own])
    ids = {share.share_id for share in found}
    told: dict[str, GroupShare] = {}
    for share in (share for one in heard.values() for share in one.others if share.share_id not in ids):
        here = None if share.place is None else names.get(share.place)
        told.setdefault(share.share_id, share if here is None else dataclasses.replace(share, host=here))
    return _sorted((*found, *told.values()))


def merged(known_here: Sequence[GroupShare], told: Sequence[GroupShare]) -> tuple[GroupShare, ...]:
    """What is known of each share holds over what its host tells of it. Raises ClaimedError as `newest` does."""
    found = {share.share_id: share for share in known_here}
    for share in told:
        known = found.setdefault(share.share_id, share)
        if _are_two(known, share):
            raise ClaimedError(
                f"two machines have a share `{share.share_id}` of this sweep: {_where(known)} and {_where(share)}",
                hint="two laptops made it, or call two machines by one name; `eagle3-remote sweep cancel` with the "
                "share's name and one of the hosts ends the one that is too many",
            )
        if known.is_hearsay:  # here it is
            found[share.share_id] = dataclasses.replace(share, is_dead=known.is_dead)
        elif known.place is None and share.place is not None:
            found[share.share_id] = dataclasses.replace(known, place=share.place)
    return _sorted(found.values())


def _are_two(known: GroupShare, told: GroupShare) -> bool:
    if known.place is not None and told.place is not None:
        return known.place != told.place
    return known.host != told.host and known.destination != told.destination


def _where(share: GroupShare) -> str:
    return f"{share.host} ({share.destination.split()[0]})" if share.destination else share.host


def _sorted(shares: Collection[GroupShare]) -> tuple[GroupShare, ...]:
    return tuple(sorted(shares, key=lambda share: share.number))


def _heard(session: HostSession, group_id: str, store: Store, known: Sequence[GroupShare]) -> Heard:
    certain = {share.share_id: share for share in known if not share.is_hearsay}
    frame = tell(session, group_id, known=tuple(certain))
    destination = f"{session.destination} {session.host.root}"
    own = {
        name: dataclasses.replace(certain[name], host=session.name, destination=destination, place=frame.place)
        for name in frame.here
        if name in certain
    }
    is_told_of_all = bool(known) and all(share.place is not None for share in known)  # not of an earlier version's
    specs = () if is_told_of_all else pipeline.status(session, None, store, prefix=f"{group_id}.h").specs
    for spec in specs:
        job = _job_of(spec.job_json, group_id) if spec.job_kind == "sweep" else None
        if job is not None:
            share = share_of(job, session.name, destination, spec.settings, spec.run_id)
            own[spec.run_id] = dataclasses.replace(share, place=frame.place, is_launched=True)
    others: dict[str, GroupShare] = {}
    for told in frame.shares:
        if told.run_id in own or (job := _job_of(told.job_json, group_id)) is None:
            continue
        if told.run_id in frame.here:  # one share that was gone on with by itself
            share = share_of(job, session.name, destination, told.settings, told.run_id)
            own[told.run_id] = dataclasses.replace(share, place=frame.place, is_launched=True)
        elif told.host:
            others[told.run_id] = _hearsay(told, job)
    return Heard(own=tuple(own.values()), others=tuple(others.values()), place=frame.place)


def _hearsay(told: ToldShare, job: SweepJob) -> GroupShare:
    share = share_of(job, told.host, told.destination, told.settings, told.run_id)
    return dataclasses.replace(share, place=told.place, is_launched=True, is_hearsay=True)


def _job_of(job_json: str, group_id: str) -> SweepJob | None:
    """None = nothing of this group's. Raises ProtocolError."""
    try:
        job = job_from_json(job_json)
    except SchemaError as error:
        raise ProtocolError(f"the host tells of a share that cannot be read: {error}") from None
    is_ours = isinstance(job, SweepJob) and job.share is not None and job.share.group_id == group_id
    return job if isinstance(job, SweepJob) and is_ours and job.confirms is None else None
