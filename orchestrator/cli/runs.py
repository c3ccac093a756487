"""`eagle3-remote runs`: the runs on this laptop; works without any host."""

import click

from orchestrator.cli import console
from orchestrator.errors import InvalidRunError
from orchestrator.store import Store

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def runs() -> None:
    """List, show and remove the runs on this laptop."""


@runs.command("list")
@json_option
def list_runs(*, as_json: bool) -> None:
    """Every run this laptop knows, newest first."""
    from orchestrator.report.runs_text import runs_json, runs_text

    known = Store.default().list()
    if as_json:
        console.out_json(runs_json(known))
    else:
        console.out(runs_text(known))


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--max-new-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop each request of the serving walk once N tokens are out, as the server was told to. "
    "With --json this gives the server's accept histogram request by request.",
)
@json_option
def show(run_id: str, max_new_tokens: int | None, *, as_json: bool) -> None:
    """The report on a run: an id, the beginning of one, or `last`."""
    store = Store.default()
    console.show_run(store.load(run_id), store, as_json=as_json, max_new_tokens=max_new_tokens)


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--force", is_flag=True, help="Also a run that is not over: it is forgotten here and goes on there.")
def rm(run_id: str, *, force: bool) -> None:
    """Forget a run on this laptop; its whole id is asked for. The host keeps its own copy."""
    store = Store.default()
    known = next((run for run in store.list() if run.run_id == run_id), None)
    if known is not None and known.phase in ("queued", "starting", "running") and not force:
        raise InvalidRunError(
            f"expected a run that is over, the last state seen of `{run_id}` is: {known.phase}",
            hint=f"`eagle3-remote cancel {run_id}` ends it; --force forgets it on this laptop only",
        )
    store.remove(run_id)
    console.note(f"removed {run_id}")
