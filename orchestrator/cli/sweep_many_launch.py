"""Launch a sweep over several hosts, and go on with one: what is measured where is written down before."""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console
from orchestrator.cli.live import watching
from orchestrator.cli.options import open_store
from orchestrator.cli.sweep_hosts import dialled, named, opened, sessions
from orchestrator.cli.sweep_many import follow_home, require_none, show_end
from orchestrator.errors import Eagle3Error

if TYPE_CHECKING:
    from orchestrator.cli.live import Tell
    from orchestrator.config import Config
    from orchestrator.records.group import GroupShare, SweepGroup
    from orchestrator.several_hosts import Several
    from orchestrator.sweep_groups.going_on import Again
    from orchestrator.sweep_groups.members import Member
    from orchestrator.sweeping.planning import Wanted
    from orchestrator.waiting import Wish


def run(
    wanted: "Mapping[str, Wanted]", settings: "Config", run_id: str | None, wish: "Wish", asked: Mapping[str, Any]
) -> None:
    """`sweep run --host a,b,c`."""
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.pipeline import new_run_id
    from orchestrator.store.groups import is_group, keep_group
    from orchestrator.sweep_groups import members, planning, telling

    planning.require_same_points(wanted)
    if asked["dry_run"]:
        show_plans(planning.shares_of(wanted), as_json=asked["as_json"])
        return
    waits = {name: wish.waiting(settings.host(name).leases) for name in wanted}  # a mistake in it is said before all
    store, group_id = open_store(), checked_run_id(run_id) or new_run_id("sweep", time.gmtime())
    with (
        watching(as_json=asked["as_json"]) as tell,
        opened(tuple(wanted), settings, tell, accept_new=asked["accept_new"]) as hosts,
    ):
        left_out: dict[str, Eagle3Error] = {}
        if is_group(store.home, group_id):
            group = members.again(group_id, planning.asked_sha256(wanted), tuple(wanted), store)
        else:
            mix = {key: asked[key] for key in ("mix_classes", "mix_models")}
            group, left_out = planning.planned(wanted, hosts, group_id, store, **mix)
            members.begin(group, store)
        for name, error in left_out.items():
            console.warn(f"{name} is left out, the others measure all points: {error.message}")
        group = telling.placed(group, hosts)
        keep_group(store.home, group)
        waiting = {one.share_id: waits[one.host] for one in group.shares}
        _launch_and_follow(group, group.shares, hosts, tell, waiting, asked)


def resume(run_id: str, host_name: str | None, *, dead: Sequence[str], **asked: Any) -> None:
    """`sweep resume`: what is left as new shares, on the hosts named, or on those of the group that answer."""
    from orchestrator import config
    from orchestrator.store.groups import keep_group
    from orchestrator.sweep_groups import going_on, members, telling

    store, settings = open_store(), config.load(config.here())
    takers = () if host_name is None else named(host_name)
    wish = going_on.Again(
        hosts=takers,
        dead=tuple(dead),
        skip_failed=asked["skip_failed"],
        allow_drift=asked["allow_drift"],
        mix_classes=asked["mix_classes"],
        mix_models=asked["mix_models"],
    )
    with (
        watching(as_json=asked["as_json"]) as tell,
        _whole(run_id, wish, settings, tell, accept_new=asked["accept_new"]) as (group, hosts),
    ):
        found = members.unreached(members.ask(group, hosts, store), hosts.names)
        found = going_on.declared_dead(found, dead)
        for member in found:
            if member.part.is_dead:
                console.note(_what_is_moved(member))
        taken = going_on.given(found, wish)
        shares = going_on.new_shares(group, found, taken, hosts, (settings, wish))
        silent = {member.share.host for member in found if member.part.problem is not None}
        if not telling.claim(group, shares, going_on.known_of(group, found), hosts, silent):
            console.warn(
                "no host of this sweep answers, so nobody can see whether another laptop moves the same to another "
                "host; `sweep status` of both hosts tells what was measured twice"
            )
        grown = dataclasses.replace(group, shares=(*(member.share for member in found), *shares))
        keep_group(store.home, grown)
        waiting = {share.share_id: going_on.waiting_of(share, found, settings) for share in shares}
        _launch_and_follow(grown, shares, hosts, tell, waiting, asked)


@contextmanager
def _whole(
    run_id: str, wish: "Again", settings: "Config", tell: "Tell", *, accept_new: bool
) -> "Iterator[tuple[SweepGroup, Several]]":
    """The group as all its hosts tell it now, and sessions on them and on those that take what is left."""
    from orchestrator.store.groups import is_group, load_group
    from orchestrator.sweep_groups.finding import found_on, newest

    store = open_store()
    known = load_group(store.home, run_id) if is_group(store.home, run_id) or not wish.hosts else None
    names = () if known is None else dialled(known, settings)
    with opened(tuple(dict.fromkeys((*names, *wish.hosts))), settings, tell, accept_new=accept_new) as hosts:
        group = found_on(run_id, hosts, store)[0] if known is None else newest(known, hosts, store, but=wish.dead)
        more = [name for name in dialled(group, settings) if name not in hosts.names]
        if more:
            hosts.add(sessions(more, settings, tell, hosts.lock, accept_new=accept_new))
            group = newest(group, hosts, store, but=wish.dead)
        yield group, hosts


def _what_is_moved(member: "Member") -> str:
    part = member.part
    if member.asked is None:
        return f"{part.host}: nothing is known of what it measured of {part.share_id}; all of it is moved"
    return (
        f"{part.host}: told last that {part.progress.counts['measured']} of its {len(part.progress.standings)} are "
        "measured; the rest is moved, also what it may have measured since"
    )


def _launch_and_follow(
    group: "SweepGroup",
    shares: "Sequence[GroupShare]",
    hosts: "Several",
    tell: "Tell",
    waiting: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> None:
    """What could not be launched is told, and the others go on."""
    from orchestrator.sweep_groups import telling
    from orchestrator.sweep_groups.members import begun, launch, not_begun

    _tell_unknown_models(group)
    store, before = open_store(), group
    is_new = len(shares) == len(group.shares)
    told = telling.as_told(shares, group.group_id, telling.Known())
    group = begun(group, shares, store)
    errors = launch(shares, hosts, store, tell, waiting, told if is_new else ())
    group = not_begun(group, errors, before, store)
    for name, error in errors.items():
        console.warn(f"{name}: {error.message}")
    if not is_new:
        ids = {one.share_id for one in group.shares if not one.is_launched}
        lost = [one for one in told if one.run_id in ids]
        telling.withdraw(lost, group.group_id, hosts, [name for name in hosts.names if name in hosts.places])
    if len(errors) == len({share.host for share in shares}):
        raise next(iter(errors.values()))
    if asked["detach"]:
        console.note(
            "detached; the sweep goes on. follow with: "
            f"eagle3-remote sweep follow {group.group_id} --host {','.join(group.hosts)}"
        )
        show_launched(group, as_json=asked["as_json"])
        require_none(errors)
        return
    show_end(group, follow_home(group, hosts, tell, errors), errors, as_json=asked["as_json"])


def _tell_unknown_models(group: "SweepGroup") -> None:
    from orchestrator.sweep.same_models import unknown
    from orchestrator.sweep_groups.members import job_of

    for words in unknown({share.host: job_of(share).identity for share in group.shares}):
        console.note(words)


def show_launched(group: "SweepGroup", *, as_json: bool) -> None:
    """The group's id is the data."""
    if as_json:
        shares = [{"run_id": one.share_id, "host": one.host, "host_class": one.host_class} for one in group.shares]
        console.out_json({"run_id": group.group_id, "shares": shares})
    else:
        console.out(group.group_id)


def show_plans(shares: "Mapping[str, Wanted]", *, as_json: bool) -> None:
    """What each host would do; no host is asked, so they are taken to be of one class."""
    from orchestrator.cli.sweep_shown import show_plan

    store = open_store()
    for name, one in shares.items():
        if not as_json:
            console.out(f"{name}:")
        show_plan(one, name, store, as_json=as_json)
