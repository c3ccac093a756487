"""`eagle3-remote schedule`: what a host's own clockwork launches again and again."""

import dataclasses
from typing import TYPE_CHECKING

import click

from orchestrator.cli import console
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.notify import notify_end, notify_option
from orchestrator.cli.options import accept_new_option, host_option, json_option, open_session, tell_what_matters
from orchestrator.errors import UsageError
from remote_payload.schema.schedule import MOST_COMING

if TYPE_CHECKING:
    from remote_payload.schema.frames import ScheduleFrame


@click.group(cls=ToldGroup)
def schedule() -> None:
    """List, explain and remove what a host launches at its times; bring home what it ran.

    `run ... --every CRON` makes one. The host's own cron or systemd does the rest: no laptop is needed.
    """


@schedule.command("list")
@host_option(required=True)
@accept_new_option
@json_option
def list_(host_name: str, *, accept_new: bool, as_json: bool) -> None:
    """The schedules of a host: when, by whom, the next time, what became of the last, what keeps one from running."""
    from orchestrator.report.schedule_text import list_text

    answer = _look(host_name, None, accept_new=accept_new)
    _show(answer, list_text(host_name, answer), as_json=as_json)


@schedule.command("next")
@click.argument("schedule_id", metavar="SCHEDULE")
@host_option(required=True)
@click.option("--count", type=click.IntRange(1, MOST_COMING), default=5, show_default=True, help="So many times.")
@accept_new_option
@json_option
def next_(schedule_id: str, host_name: str, count: int, *, accept_new: bool, as_json: bool) -> None:
    """The next times of a schedule, by the host's clock and in UTC."""
    from orchestrator.report.schedule_text import next_text

    answer = _look(host_name, schedule_id, accept_new=accept_new, coming=count)
    _show(answer, next_text(answer), as_json=as_json)


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE")
@host_option(required=True)
@accept_new_option
@json_option
def history(schedule_id: str, host_name: str, *, accept_new: bool, as_json: bool) -> None:
    """What became of each time: fired, skipped, missed or failed, and why; also when the host's clock was set."""
    from orchestrator.report.schedule_text import history_text

    answer = _look(host_name, schedule_id, accept_new=accept_new, history=True)
    _show(answer, history_text(answer), as_json=as_json)


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE")
@host_option(required=True)
@accept_new_option
@json_option
def rm(schedule_id: str, host_name: str, *, accept_new: bool, as_json: bool) -> None:
    """Take a schedule off its host, from any laptop. Runs it has launched stay, and go on."""
    from orchestrator import scheduling

    with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
        scheduling.remove(session, _checked(schedule_id))
    if as_json:
        console.out_json({"removed": schedule_id, "host": host_name})
    else:
        console.out(f"removed from {host_name}: {schedule_id}")


@schedule.command()
@click.argument("schedule_id", metavar="SCHEDULE")
@host_option(required=True)
@notify_option
@accept_new_option
@json_option
def collect(schedule_id: str, host_name: str, *, accept_new: bool, as_json: bool) -> None:
    """Bring home what a schedule's runs have measured, each with the schedule's id as its tag. May be repeated."""
    from orchestrator import scheduling
    from orchestrator.cli.live import watching
    from orchestrator.cli.options import open_store
    from orchestrator.report.schedule_text import going_words

    store = open_store()
    with watching(as_json=as_json) as tell, open_session(host_name, tell, accept_new=accept_new) as session:
        found = scheduling.collect(session, _checked(schedule_id), store, tell)
    for problem in found.problems:
        console.warn(problem)
    for record in found.home:
        notify_end(record, store)
    going = [state.run_id for state in found.going]
    if as_json:
        home = {record.run_id: record.phase for record in found.home}
        told = {"home": home, "going": going, "known": found.known, "problems": list(found.problems)}
        console.out_json(told)
        return
    for record in found.home:
        console.out(f"{record.run_id}  {record.phase}")
    console.note(f"{len(found.home)} came home, {found.known} were here: eagle3-remote runs list --tag {schedule_id}")
    if going:
        console.note(going_words(going))


def _look(
    host_name: str, schedule_id: str | None, *, accept_new: bool, coming: int = 1, history: bool = False
) -> "ScheduleFrame":
    from orchestrator import scheduling

    name = None if schedule_id is None else _checked(schedule_id)
    with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
        return scheduling.look(session, name, coming=coming, history=history)


def _checked(schedule_id: str) -> str:
    from remote_payload.schema.schedule import require_schedule_id

    try:
        require_schedule_id(schedule_id)
    except ValueError as error:
        raise UsageError(f"SCHEDULE: {error}") from None
    return schedule_id


def _show(answer: "ScheduleFrame", text: str, *, as_json: bool) -> None:
    if as_json:
        console.out_json(dataclasses.asdict(answer))
    else:
        console.out(text)
