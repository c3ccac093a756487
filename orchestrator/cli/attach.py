"""`eagle3-remote attach`: go on following a run."""

from pathlib import Path

import click

from orchestrator.cli.asked import question
from orchestrator.cli.ending import end
from orchestrator.cli.expect import junit_option
from orchestrator.cli.live import watching
from orchestrator.cli.notify import notify_option
from orchestrator.cli.options import accept_new_option, host_of, host_option, json_option, open_session, open_store


@click.command()
@click.argument("run_id", metavar="RUN")
@host_option(required=False)
@accept_new_option
@junit_option
@notify_option
@json_option
def attach(run_id: str, host_name: str | None, junit: Path | None, *, accept_new: bool, as_json: bool) -> None:
    """Follow a run that goes on on a host, and bring its result home.

    Works from any laptop: the run id and the host are all it needs.
    """
    from orchestrator import pipeline

    store = open_store()
    run_id, host_name = host_of(run_id, host_name, store)
    asked = question(None)
    with (
        watching(as_json=as_json) as tell,
        open_session(host_name, tell, accept_new=accept_new) as session,
    ):
        record = pipeline.attach(session, run_id, store, tell)
    end(record, store, as_json=as_json, question=asked, junit=junit)
