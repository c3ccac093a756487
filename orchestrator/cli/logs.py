"""`eagle3-remote logs`: what a job printed."""

import click

from orchestrator.cli import console
from orchestrator.cli.options import accept_new_option, host_of, host_option, open_session
from orchestrator.updates import LogArrived, Reconnecting, Update


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run is over.")
@host_option(required=False)
@accept_new_option
def logs(run_id: str, host_name: str | None, *, follow: bool, accept_new: bool) -> None:
    """Show what a job printed: its standard output on stdout, its standard error on stderr."""
    from orchestrator import pipeline
    from orchestrator.store import Store

    store = Store.default()
    run_id, host_name = host_of(run_id, host_name, store)
    run_dir = store.run_dir(run_id)
    for stream in ("stdout", "stderr"):
        path = getattr(run_dir, stream)
        if path.exists():
            console.raw(path.read_bytes(), stream)
    with open_session(host_name, _tell, accept_new=accept_new) as session:
        pipeline.attach(session, run_id, store, _tell, wait=follow)


def _tell(update: Update) -> None:
    if isinstance(update, LogArrived):
        console.raw(update.data, update.stream)
    elif isinstance(update, Reconnecting):
        console.note(f"link: {update.reason} - the job goes on, reconnecting (try {update.attempt})")
