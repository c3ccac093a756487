"""From a run's flags to its report: what every kind of job's command shares."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console, showing
from orchestrator.cli.asked import question
from orchestrator.cli.ending import end, require_going
from orchestrator.cli.every import every_options, make_schedule, take_every
from orchestrator.cli.expect import junit_option
from orchestrator.cli.live import watching
from orchestrator.cli.notify import notify_option
from orchestrator.cli.options import Decorator, accept_new_option, host_option, open_session, open_store
from orchestrator.cli.waiting import take_wish, tell_start, waiting_options

if TYPE_CHECKING:
    from orchestrator.jobfile import EarlierRun, PlannedJob
    from orchestrator.store import Store


def launch_options() -> Decorator:
    """The options that say where and how a job is run, whatever its kind."""
    options = [
        host_option(required=True),
        click.option("--job", "job_file", type=click.Path(path_type=Path), help="A job file of your own (TOML)."),
        click.option("--run-id", help="Name the run yourself. The same command again goes on with that run."),
        click.option("--detach", is_flag=True, help="Return as soon as the job runs on its own."),
        click.option("--find-python", is_flag=True, help="Look for the host's interpreter again."),
        accept_new_option,
        junit_option,
        notify_option,
        click.option("--json", "as_json", is_flag=True, help="One JSON object a line: updates, then the result."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return waiting_options()(every_options()(command))

    return decorate


def launch(kind: str, flags: dict[str, Any]) -> None:
    """Take the launch options out of the flags; what is left are settings of the job."""
    from orchestrator import config
    from orchestrator.errors import UsageError
    from orchestrator.pipeline import Order, new_run_id
    from orchestrator.pipeline import run as run_job

    host_name, as_json, detach = flags.pop("host_name"), flags.pop("as_json"), flags.pop("detach")
    asked = question(flags.pop("step_cost", None))  # a mistake in it is said before anything is launched
    junit = flags.pop("junit")
    if detach and junit is not None:
        raise UsageError("--junit waits for the run's end, --detach does not", hint="give it to `attach`")
    every = take_every(flags)
    if every is not None and (detach or junit is not None):
        raise UsageError("--every launches nothing now: it goes with neither --detach nor --junit")
    waiting = take_wish(flags).waiting(config.load(config.here()).host(host_name).leases)
    tell_start(waiting)
    run_id, accept_new, find = flags.pop("run_id"), flags.pop("accept_new"), flags.pop("find_python")
    store = open_store()
    order = Order(
        planned=_plan(kind, flags, host_name, store),
        run_id=checked_run_id(run_id) or new_run_id(kind, time.gmtime()),
        detach=detach,
        fresh_python=find,
        waiting=waiting,
    )
    with (
        watching(as_json=as_json) as tell,
        open_session(host_name, tell, accept_new=accept_new) as session,
    ):
        if every is not None:
            make_schedule(order, every, session, as_json=as_json)
            return
        record = run_job(order, session, store, tell)
    if detach:
        require_going(record)
        console.note(f"detached; job goes on. attach with: eagle3-remote attach {record.run_id} --host {host_name}")
        showing.show_launched(record, as_json=as_json)
    else:
        end(record, store, as_json=as_json, question=asked, junit=junit)


def _plan(kind: str, flags: dict[str, Any], host_name: str, store: "Store") -> "PlannedJob":
    from orchestrator import config, jobfile
    from orchestrator.errors import JobFileError, NotFoundError

    own_file, wanted = flags.pop("job_file"), flags.get("resume")
    earlier = None if wanted is None else _earlier(wanted, kind, host_name, store)
    if earlier is not None:
        flags["resume"] = earlier.run_id
    try:
        planned = jobfile.plan(kind, config.load(config.here()), own_file, flags, earlier)
        if any(setting.key.startswith(jobfile.EXPECT) for setting in planned.settings):
            from orchestrator.expectations import conditions_of

            conditions_of(planned.settings)  # a mistake in one is said before anything is launched
        return planned
    except JobFileError as incomplete:
        if wanted is None or earlier is not None:
            raise
        # Without the run's own settings this is the mistake, and not the flag that is missing because of it.
        raise NotFoundError(
            f"--resume: no run of this laptop is called, or begins with: {wanted}",
            hint="`eagle3-remote runs list` shows those it knows; a run that only its host knows needs its whole id "
            f"and its settings again ({incomplete.message})",
        ) from None


def _earlier(name: str, kind: str, host_name: str, store: "Store") -> "EarlierRun | None":
    """The run to go on with, and what it was asked to do; None for one that only its host knows."""
    from orchestrator.errors import NotFoundError, UsageError
    from orchestrator.jobfile import EarlierRun

    try:
        record = store.load(name)
    except NotFoundError:
        return None
    if (record.job_kind, record.host.name) != (kind, host_name):
        raise UsageError(
            f"--resume: expected a run of {kind} on {host_name}, `{record.run_id}` is one of: "
            f"{record.job_kind} on {record.host.name}"
        )
    return EarlierRun(run_id=record.run_id, job_json=record.spec.job_json)


def checked_run_id(run_id: str | None) -> str | None:
    """The id as it was given. Raises UsageError where it can be none."""
    from orchestrator.errors import UsageError
    from remote_payload.schema.run import require_run_id

    if run_id is not None:
        try:
            require_run_id(run_id)
        except ValueError as error:
            raise UsageError(f"--run-id: {error}") from None
    return run_id
