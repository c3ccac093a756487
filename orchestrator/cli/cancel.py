"""`eagle3-remote cancel`: end a run on its host."""

import click

from orchestrator.cli import showing
from orchestrator.cli.options import (
    Seconds,
    accept_new_option,
    host_of,
    host_option,
    json_option,
    open_session,
    tell_what_matters,
)
from orchestrator.errors import JobError


@click.command()
@click.argument("run_id", metavar="RUN")
@host_option(required=False)
@click.option("--grace-s", type=Seconds(0, 600), default=5.0, show_default=True, help="Between TERM and KILL.")
@accept_new_option
@json_option
def cancel(run_id: str, host_name: str | None, grace_s: float, *, accept_new: bool, as_json: bool) -> None:
    """End a run and everything it started: TERM, grace, KILL, until nothing of it is left."""
    from orchestrator import pipeline
    from orchestrator.store import Store

    store = Store.default()
    run_id, host_name = host_of(run_id, host_name, store)
    with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
        answer = pipeline.cancel(session, run_id, grace_s, store)
    showing.show_cancel(answer, as_json=as_json)
    if answer.survivors:
        pids = ", ".join(map(str, answer.survivors))
        raise JobError(f"these processes of {run_id} could not be killed: {pids}", hint=f"look at them on {host_name}")
    if not answer.state.is_terminal:
        raise JobError(f"{run_id} is asked to end, and has not ended yet: {answer.unproved}", hint="cancel it again")
