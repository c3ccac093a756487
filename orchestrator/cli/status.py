"""`eagle3-remote status`: where runs are, asked of the host itself."""

import click

from orchestrator.cli import showing
from orchestrator.cli.options import (
    accept_new_option,
    host_of,
    host_option,
    json_option,
    open_session,
    tell_what_matters,
)
from orchestrator.errors import UsageError


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@host_option(required=False)
@click.option("--units", is_flag=True, help="Also every unit of a sweep; else its sweep's line counts them.")
@accept_new_option
@json_option
def status(run_id: str | None, host_name: str | None, *, units: bool, accept_new: bool, as_json: bool) -> None:
    """Show the state of runs on a host: of one run, or of every run the host keeps.

    A sweep is one line, --json has every unit.
    """
    from orchestrator import pipeline
    from orchestrator.store import Store

    if run_id is None and host_name is None:
        raise UsageError("name a run, or a host with --host", hint="`eagle3-remote runs list` shows what is known here")
    store = Store.default()
    if run_id is not None:
        run_id, host_name = host_of(run_id, host_name, store)
    assert host_name is not None
    with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
        answer = pipeline.status(session, run_id, store)
    showing.show_status(answer, host_name, units=units, as_json=as_json)
