"""Launch a sweep over several hosts, and go on with one: what is measured where is written down before."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console
from orchestrator.cli.live import watching
from orchestrator.cli.options import open_store
from orchestrator.cli.sweep_many import follow_home, grouped, named, opened, require_none, show_end
from orchestrator.errors import Eagle3Error

if TYPE_CHECKING:
    from orchestrator.cli.live import Tell
    from orchestrator.config import Config
    from orchestrator.records.group import GroupShare, SweepGroup
    from orchestrator.several_hosts import Several
    from orchestrator.sweeping import Wanted
    from orchestrator.waiting import Wish


def run(
    wanted: "Mapping[str, Wanted]", settings: "Config", run_id: str | None, wish: "Wish", asked: Mapping[str, Any]
) -> None:
    """`sweep run --host a,b,c`."""
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.pipeline import new_run_id
    from orchestrator.store.groups import is_group
    from orchestrator.sweep_groups import members, planning

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
            group, left_out = planning.planned(wanted, hosts, group_id, mix_classes=asked["mix_classes"])
            members.begin(group, store)
        for name, error in left_out.items():
            console.warn(f"{name} is left out, the others measure all points: {error.message}")
        waiting = {one.share_id: waits[one.host] for one in group.shares}
        _launch_and_follow(group, group.shares, hosts, tell, waiting, asked)


def resume(run_id: str, host_name: str | None, *, dead: Sequence[str], **asked: Any) -> None:
    """`sweep resume`: what is left as new shares, on the hosts named, or on those of the group that answer."""
    from orchestrator import config
    from orchestrator.store.groups import keep_group, load_group
    from orchestrator.sweep_groups import going_on, members
    from orchestrator.sweep_groups.finding import newest

    store, settings = open_store(), config.load(config.here())
    takers = () if host_name is None else named(host_name)
    wish = going_on.Again(
        hosts=takers,
        dead=tuple(dead),
        skip_failed=asked["skip_failed"],
        allow_drift=asked["allow_drift"],
        mix_classes=asked["mix_classes"],
    )
    load_group(store.home, run_id)
    with (
        watching(as_json=asked["as_json"]) as tell,
        grouped(run_id, None, tell, accept_new=asked["accept_new"], more=takers) as (kept, hosts, _),
    ):
        group = newest(kept, hosts, store, but=dead)
        found = going_on.declared_dead(members.ask(group, hosts, store), dead)
        for member in found:
            if member.part.is_dead:
                console.note(
                    f"{member.share.host}: told last that {member.part.progress.counts['measured']} of its "
                    f"{len(member.part.progress.standings)} are measured; the rest is moved, also what it may have "
                    "measured since"
                )
        taken = going_on.given(found, wish)
        shares = going_on.new_shares(group, found, taken, hosts, (settings, wish))
        known = tuple(member.share for member in found)
        grown = dataclasses.replace(group, shares=(*known, *shares))
        keep_group(store.home, grown)
        waiting = {share.share_id: going_on.waiting_of(share, found, settings) for share in shares}
        _launch_and_follow(grown, shares, hosts, tell, waiting, asked)


def _launch_and_follow(
    group: "SweepGroup",
    shares: "Sequence[GroupShare]",
    hosts: "Several",
    tell: "Tell",
    waiting: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> None:
    """What could not be launched is told, and the others go on."""
    from orchestrator.sweep_groups.members import begun, launch, not_begun

    store, before = open_store(), group
    group = begun(group, shares, store)
    errors = launch(shares, hosts, store, tell, waiting)
    group = not_begun(group, errors, before, store)
    for name, error in errors.items():
        console.warn(f"{name}: {error.message}")
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
