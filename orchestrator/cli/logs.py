"""`eagle3-remote logs`: what a job printed."""

from typing import TYPE_CHECKING

import click

from orchestrator.cli import console
from orchestrator.cli.options import accept_new_option, host_of, host_option, open_session, tell_what_matters
from orchestrator.updates import LogArrived, Update

if TYPE_CHECKING:
    from remote_payload.rundir import RunDir
    from remote_payload.schema import Cursor


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
    shown = _show_local(store.run_dir(run_id))
    with open_session(host_name, _tell, accept_new=accept_new) as session:
        pipeline.logs(session, run_id, store, _tell, shown=shown, wait=follow)


def _show_local(run_dir: "RunDir") -> "Cursor":
    """Print what is here already; returns how much that was, so that the host goes on exactly there."""
    from orchestrator.store.files import translated
    from remote_payload.schema import Cursor

    sizes = {}
    for stream in ("stdout", "stderr"):
        path = getattr(run_dir, stream)
        with translated("read", path):
            data = path.read_bytes() if path.exists() else b""
        console.raw(data, stream)
        sizes[stream] = len(data)
    return Cursor(**sizes)


def _tell(update: Update) -> None:
    if isinstance(update, LogArrived):
        console.raw(update.data, update.stream)
    else:
        tell_what_matters(update)
