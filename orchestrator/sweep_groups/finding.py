"""A group put together from what its hosts tell: on another laptop, and with the shares that another one made since."""

import dataclasses
import time
from collections.abc import Collection, Sequence

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, Eagle3Error, NotFoundError
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.several_hosts import Several
from orchestrator.store import Store
from orchestrator.store.groups import is_group, keep_group, load_group
from orchestrator.sweep_groups.members import first_hosts
from orchestrator.sweep_groups.planning import share_of
from remote_payload.schema import SweepJob, job_from_json


def found_on(group_id: str, hosts: Several, store: Store) -> tuple[SweepGroup, dict[str, Eagle3Error]]:
    """The group as its hosts tell it, over what is known here; by host what kept one from telling.

    Kept here, so that from now on this laptop knows it. Raises NotFoundError where no host has a share.
    """
    answers = hosts.each(lambda session: _shares_on(session, group_id, store))
    known_here = load_group(store.home, group_id) if is_group(store.home, group_id) else None
    found = {share.share_id: share for share in (() if known_here is None else known_here.shares)}
    for some in answers.found.values():
        for share in some:
            found.setdefault(share.share_id, share)
    if not found:
        if answers.errors:
            raise next(iter(answers.errors.values()))
        raise NotFoundError(f"none of the hosts {', '.join(hosts.names)} has a share of a sweep: {group_id}")
    shares = tuple(sorted(found.values(), key=lambda share: share.number))
    first = first_hosts(shares)
    numbers = {share.number for share in shares}
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
    answers = hosts.each(lambda session: _shares_on(session, group.group_id, store), names)
    shares = merged(group.shares, [share for some in answers.found.values() for share in some])
    if shares != group.shares:
        group = dataclasses.replace(group, shares=shares)
        keep_group(store.home, group)
    return group


def merged(known_here: Sequence[GroupShare], told: Sequence[GroupShare]) -> tuple[GroupShare, ...]:
    """What is known of each share holds over what a host tells of it. Raises ClaimedError as `newest` does."""
    found = {share.share_id: share for share in known_here}
    for share in told:
        known = found.setdefault(share.share_id, share)
        if known.host != share.host and known.destination != share.destination:
            raise ClaimedError(
                f"two laptops made a share `{share.share_id}` of this sweep, on {known.host} and on {share.host}",
                hint="`eagle3-remote sweep cancel` with that name and one of the hosts ends the one that is too many",
            )
    return tuple(sorted(found.values(), key=lambda share: share.number))


def _shares_on(session: HostSession, group_id: str, store: Store) -> list[GroupShare]:
    answer = pipeline.status(session, None, store, prefix=f"{group_id}.h")
    found = []
    for spec in answer.specs:
        job = job_from_json(spec.job_json) if spec.job_kind == "sweep" else None
        if isinstance(job, SweepJob) and job.share is not None and job.share.group_id == group_id:
            one = share_of(job, session.name, f"{session.destination} {session.host.root}", spec.settings)
            found.append(dataclasses.replace(one, is_launched=True))
    return found
