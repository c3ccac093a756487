"""`eagle3-remote runs`: the runs on this laptop; works without any host."""

from typing import TYPE_CHECKING

import click

from orchestrator.cli import console
from orchestrator.cli.asked import question, step_cost_option
from orchestrator.errors import InvalidRunError
from orchestrator.store import Store

if TYPE_CHECKING:
    from orchestrator.report.views import View

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
@click.option(
    "--verbose", "view", flag_value="verbose", help="Every check with its evidence, every reading, all figures."
)
@click.option("--depths", "view", flag_value="depths", help="Accept length and speed-up for every number of steps.")
@click.option("--rules", "view", flag_value="rules", help="The figures as each trainer logs them.")
@step_cost_option
@json_option
def show(run_id: str, max_new_tokens: int | None, view: "View | None", step_cost: str | None, *, as_json: bool) -> None:
    """The report on a run: an id, the beginning of one, or `last`. With --json everything of every view."""
    store = Store.default()
    record = store.load(run_id)
    asked = question(step_cost, max_new_tokens)
    console.show_run(record, store, as_json=as_json, view=view or "report", question=asked)


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
