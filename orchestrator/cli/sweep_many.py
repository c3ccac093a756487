"""The commands of a sweep where several hosts share it: `--host a,b,c`, or a sweep that this laptop knows as such."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.cli import console, showing
from orchestrator.cli.live import watching
from orchestrator.cli.notify import notify_end_of, notify_group_end
from orchestrator.cli.options import open_store, tell_what_matters
from orchestrator.cli.sweep_ending import tell_problems
from orchestrator.cli.sweep_hosts import grouped
from orchestrator.errors import ClaimedError, DetachedError, Eagle3Error, JobError, PartialError

if TYPE_CHECKING:
    from orchestrator.cli.live import Tell
    from orchestrator.records.group import SweepGroup
    from orchestrator.several_hosts import Several
    from orchestrator.sweep_groups.members import Member


def is_many(run_id: str, host_name: str | None) -> bool:
    """Whether a sweep is, or is asked of, several hosts."""
    from orchestrator.store.groups import is_group

    return (host_name is not None and "," in host_name) or is_group(open_store().home, run_id)


def require_free(run_id: str) -> None:
    """Raises ClaimedError where a sweep over several hosts has that id."""
    from orchestrator.store.groups import is_group

    if is_group(open_store().home, run_id):
        raise ClaimedError(f"a sweep over several hosts has this id: {run_id}", hint="take another --run-id")


def status(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """`sweep status`."""
    with grouped(run_id, host_name, tell_what_matters, accept_new=accept_new) as (group, hosts, errors):
        members = _asked(group, hosts, is_whole=host_name is None)
    show(group, members, as_json=as_json)
    _require_all(members, errors)


def follow(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """`sweep follow`."""
    with (
        watching(as_json=as_json) as tell,
        grouped(run_id, host_name, tell, accept_new=accept_new) as (group, hosts, errors),
    ):
        members = follow_home(group, hosts, tell, errors, is_whole=host_name is None)
    show_end(group, members, errors, as_json=as_json)


def follow_home(
    group: "SweepGroup", hosts: "Several", tell: "Tell", errors: "dict[str, Eagle3Error]", *, is_whole: bool = True
) -> "tuple[Member, ...]":
    """To its end, and everything home; what did not come is added to the `errors` of its host.

    `is_whole`: not of the hosts alone that the user named. Raises DetachedError at Ctrl-C: the sweep goes on.
    """
    from orchestrator.sweep_groups.homecoming import until_over

    try:
        until_over(group, hosts, open_store(), tell)
        return _bring_home(group, hosts, tell, errors, is_whole=is_whole)
    except (DetachedError, KeyboardInterrupt):
        hint = f"follow with: eagle3-remote sweep follow {group.group_id} --host {','.join(group.hosts)}"
        raise DetachedError("detached; the sweep goes on, and what came home stays", hint=hint) from None


def collect(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """`sweep collect`."""
    with (
        watching(as_json=as_json) as tell,
        grouped(run_id, host_name, tell, accept_new=accept_new) as (group, hosts, errors),
    ):
        members = _bring_home(group, hosts, tell, errors, is_whole=host_name is None)
    show(group, members, as_json=as_json)
    _require_all(members, errors)


def cancel(run_id: str, host_name: str | None, grace_s: float, *, accept_new: bool, as_json: bool) -> None:
    """`sweep cancel`: every share on the hosts asked; the others go on."""
    from orchestrator.sweep_groups.cancelling import cancel_on
    from orchestrator.sweep_groups.members import known, unreached

    store = open_store()
    with grouped(run_id, host_name, tell_what_matters, accept_new=accept_new) as (group, hosts, errors):
        answers = hosts.each(lambda session: cancel_on(session, group, grace_s, store))
        missed = () if host_name else unreached(known(group, store), hosts.names)
    found = [answer for some in answers.found.values() for answer in some]
    for answer in found:
        showing.show_cancel(answer, as_json=as_json)
    alive = [f"{pid} of {answer.state.run_id}" for answer in found for pid in answer.survivors]
    if alive:
        raise JobError(f"these processes could not be killed: {', '.join(alive)}")
    not_dialled = {one.share.host: Eagle3Error(one.part.problem) for one in missed if one.part.problem is not None}
    dead = {share.host for share in group.shares if share.is_dead}  # nothing runs there, as the user said
    silent = {name: error for name, error in answers.errors.items() if name not in dead}
    require_none({**not_dialled, **errors, **silent})


def report(run_id: str, *, as_json: bool) -> None:
    """`sweep report`."""
    from orchestrator.store.groups import load_group
    from orchestrator.sweep_groups.members import known

    store = open_store()
    group = load_group(store.home, run_id)
    show_report(group, known(group, store), as_json=as_json)


def show(group: "SweepGroup", members: "Sequence[Member]", *, as_json: bool) -> None:
    """How far it is."""
    from orchestrator.report.sweep_group import group_json, group_text

    parts = [member.part for member in members]
    if as_json:
        console.out_json(group_json(group.group_id, parts, group.missing))
    else:
        console.out(group_text(group.group_id, parts, group.missing, console.width()))


def show_report(group: "SweepGroup", members: "Sequence[Member]", *, as_json: bool) -> None:
    """The tables of its points, one a class of hosts."""
    from orchestrator.report.sweep_group import report_json, report_text
    from orchestrator.sweeping.tables import tables_of

    parts = [member.part for member in members]
    classes = tables_of(group.group_id, parts, open_store())
    if as_json:
        console.out_json(report_json(group.group_id, parts, classes, group.missing))
    else:
        console.out(report_text(group.group_id, parts, classes, group.missing, console.width()))


def _asked(group: "SweepGroup", hosts: "Several", *, is_whole: bool) -> "tuple[Member, ...]":
    from orchestrator.sweep_groups.members import ask, unreached

    members = ask(group, hosts, open_store())
    return unreached(members, hosts.names) if is_whole else members


def _bring_home(
    group: "SweepGroup", hosts: "Several", tell: "Tell", errors: "dict[str, Eagle3Error]", *, is_whole: bool
) -> "tuple[Member, ...]":
    from orchestrator.sweep_groups.homecoming import bring_home

    store = open_store()
    members = _asked(group, hosts, is_whole=is_whole)
    for name, problems in bring_home(group, members, hosts, store, tell).items():
        tell_problems([f"{name}: {problem}" for problem in problems])
        errors.setdefault(name, Eagle3Error(f"so many runs did not come home, as told above: {len(problems)}"))
    for member in members:
        notify_end_of(member.part.share_id, store)
    notify_group_end(group, members, store)
    return members


def show_end(
    group: "SweepGroup", members: "Sequence[Member]", errors: "Mapping[str, Eagle3Error]", *, as_json: bool
) -> None:
    """The report, then the error that the end means: hosts that did not answer, or points that are not measured."""
    from orchestrator.sweep.group import counts

    show_report(group, members, as_json=as_json)
    _require_all(members, errors)
    found = counts([member.part for member in members])
    if (lacking := found.total() - found["measured"]) > 0:
        raise JobError(
            f"sweep {group.group_id}: {lacking} of {found.total()} points are not measured",
            hint=f"`eagle3-remote sweep resume {group.group_id}` tries them again; "
            f"`eagle3-remote runs list --tag {group.group_id}` lists its runs",
        )


def _require_all(members: "Sequence[Member]", errors: "Mapping[str, Eagle3Error]") -> None:
    """Raises PartialError where a host did not answer of which more may come, or a share was never launched."""
    from orchestrator.errors import NotFoundError

    told = dict(errors)
    for member in members:
        if member.part.problem is not None and not member.part.is_dead:
            told.setdefault(member.part.host, Eagle3Error(member.part.problem))
        elif not member.part.launched:
            told.setdefault(member.part.host, NotFoundError(f"{member.part.share_id} was never launched there"))
    require_none(told)


def require_none(errors: "Mapping[str, Eagle3Error]") -> None:
    """Raises PartialError where a host failed, with what each said."""
    if errors:
        told = "; ".join(f"{name}: {error.message}" for name, error in sorted(errors.items()))
        raise PartialError(f"{len(errors)} of the hosts did not do what they were asked: {told}", hint=_hint(errors))


def _hint(errors: "Mapping[str, Eagle3Error]") -> str | None:
    return next((error.hint for error in errors.values() if error.hint), None)
