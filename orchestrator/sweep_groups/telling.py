"""Every host of a group is told of its shares before they are launched: two laptops meet on any that both reach."""

import dataclasses
import getpass
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import ClaimedError, Eagle3Error, HostError, HostNotReadyError, ProtocolError
from orchestrator.following import ANSWER_S
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.several_hosts import Several
from remote_payload.schema.group import TellFrame, TellRequest, ToldShare


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the laptop that makes new shares knows of those before them."""

    over: tuple[str, ...] = ()
    """Shares whose points the new ones may have."""
    never_begun: tuple[str, ...] = ()
    """Those among them that no host has."""


def tell(
    session: HostSession,
    group_id: str,
    shares: Sequence[ToldShare] = (),
    withdrawn: Sequence[str] = (),
    known: Sequence[str] = (),
) -> TellFrame:
    """What the host was told of the group, with these. Raises SweepGoesOnError where another share has their points.

    `known`: shares that it need not tell of.
    """
    request = TellRequest(
        nonce=new_nonce(),
        root=session.host.root,
        group_id=group_id,
        shares=tuple(shares),
        withdrawn=tuple(withdrawn),
        known=tuple(known),
    )
    frame = session.ask("tell", request, TellFrame, ANSWER_S)
    if any(share.group_id != group_id for share in frame.shares):
        raise ProtocolError(f"the host tells of a sweep it was not asked about, instead of: {group_id}")
    return frame


def elsewhere(share: GroupShare, heard: TellFrame) -> HostNotReadyError | None:
    """Whether the host of that name is not the one that the share was launched on; None = it is, or nobody knows."""
    if None in (share.place, heard.place) or heard.place == share.place:
        return None
    return HostNotReadyError(
        f"another root than the one that has {share.share_id} ({share.destination}): two machines by one name, "
        "or its folder was emptied"
    )


def placed(group: SweepGroup, hosts: Several) -> SweepGroup:
    """The group with what tells the roots of its hosts apart, of those that answer now."""
    ids = [share.share_id for share in group.shares]
    found = hosts.each(lambda session: tell(session, group.group_id, known=ids).place).found
    shares = (dataclasses.replace(one, place=found.get(one.host) or one.place) for one in group.shares)
    return dataclasses.replace(group, shares=tuple(shares))


def as_told(shares: Sequence[GroupShare], group_id: str, known: Known) -> tuple[ToldShare, ...]:
    """The shares as they are told to every host."""
    return tuple(
        ToldShare(
            group_id=group_id,
            run_id=share.share_id,
            host=share.host,
            destination=share.destination,
            place=share.place,
            job_json=share.job_json,
            settings=share.settings,
            over=known.over,
            never_begun=known.never_begun,
            told_by=f"{getpass.getuser()}@{platform.node()}",
        )
        for share in shares
    )


def claim(
    group: SweepGroup, shares: Sequence[GroupShare], known: Known, hosts: Several, silent: Collection[str]
) -> tuple[str, ...]:
    """Tell every host of the group that answers, and those that take a share; returns those that took part before.

    One after the other, and in the same order on every laptop, so that of two that do this at once one goes on.
    Raises SweepGoesOnError where another share has the same points, ClaimedError where another laptop has just
    launched the very same, the error of a host that takes a share; then no host holds on to what it was told.
    """
    told = as_told(shares, group.group_id, known)
    takers = {share.host for share in shares}
    done: list[str] = []
    for name in dict.fromkeys((*group.hosts, *sorted(takers))):
        if name in silent or name not in hosts.names:
            continue
        answer = hosts.each(lambda session: tell(session, group.group_id, told, known=known.over), [name])
        error = answer.errors.get(name) or _begun(told, answer.found, name)
        if isinstance(error, HostError) and name not in takers:  # it fell silent: another laptop may reach it, or not
            continue
        if error is not None:
            withdraw(told, group.group_id, hosts, done)
            raise error
        done.append(name)
    return tuple(name for name in done if name in group.hosts)


def withdraw(shares: Sequence[ToldShare], group_id: str, hosts: Several, names: Sequence[str]) -> None:
    """Free the points again; a host that does not answer is asked about them by whoever finds the share there."""
    if not shares:
        return
    ids = [share.run_id for share in shares]
    hosts.each(lambda session: tell(session, group_id, withdrawn=ids, known=ids), names)


def _begun(told: Sequence[ToldShare], found: Mapping[str, TellFrame], name: str) -> Eagle3Error | None:
    here = [share.run_id for share in told if share.run_id in found[name].here]
    if not here:
        return None
    return ClaimedError(
        f"another laptop has just launched the same on {name}: share `{here[0]}`",
        hint=f"`eagle3-remote sweep follow {told[0].group_id}` once more takes it in",
    )
