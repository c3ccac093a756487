"""`eagle3-remote runs`: the runs on this laptop; works without any host."""

import dataclasses
import time
from typing import TYPE_CHECKING, get_args

import click

from orchestrator.cli import console, showing
from orchestrator.cli.asked import question, step_cost_option
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.store_commands import add_store_commands
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.records import RunLabels, RunRecord
    from orchestrator.report.views import View
    from orchestrator.store.filters import RunFilter
    from orchestrator.store.summary import RunSummary

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=ToldGroup)
def runs() -> None:
    """List, show, tag, export, import and remove the runs on this laptop."""


@runs.command("list")
@click.option("--host", metavar="NAME", help="Only runs of this host.")
@click.option(
    "--job", metavar="KIND", help="Only runs of this kind: standalone, bench, capture, selftest, hold, imported."
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only runs with this tag; several: with all of them.")
@click.option("--model", metavar="TEXT", help="Only runs whose target or drafter has this in its name.")
@click.option("--verdict", metavar="WORD", help="Only runs with this verdict, e.g. mis-wired, sound, slower.")
@click.option("--since", "since_text", metavar="WHEN", help="Only runs since then: 12h, 7d, 2w, or a day, 2026-11-01.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most the N newest of them.")
@click.option("--units", is_flag=True, help="Also every unit of a sweep; else its sweep's line counts them.")
@json_option
def list_runs(
    tags: tuple[str, ...], since_text: str | None, *, units: bool, as_json: bool, **asked: "str | int | None"
) -> None:
    """Every run this laptop knows, newest first; or those that fit all that is asked for.

    A sweep is one line, --json has every unit. A verdict is what `runs show` last said of the result; a run that nobody
    looked at has none yet.
    """
    from orchestrator.report.runs_text import runs_json, runs_text
    from orchestrator.store.filters import RunFilter, chosen, since

    begins = None if since_text is None else since(since_text, time.time())
    wanted = RunFilter(tags=tags, since_unix_s=begins, **asked)  # type: ignore[arg-type] # by the options above
    known = Store.default().list()
    _require_words(wanted, known)
    if as_json:
        console.out_json(runs_json(chosen(known, wanted)))
        return
    found = chosen(known, dataclasses.replace(wanted, limit=None))
    console.out(runs_text(found, of=len(known), units=units, limit=wanted.limit))


def _require_words(wanted: "RunFilter", known: "Sequence[RunSummary]") -> None:
    """Kinds and verdicts are closed vocabularies: another word would pass for one that no run has."""
    from orchestrator.store.filters import require_word, spelt
    from orchestrator.store.summary import verdict_word

    if wanted.job not in (None, *(run.job_kind for run in known)):
        from remote_payload.schema import JOB_KINDS

        require_word("--job", wanted.job, {*JOB_KINDS, "sweep", "hold", "imported"})
    if wanted.verdict is not None:
        from orchestrator.diagnosis.served_verdict import ServedVerdict
        from orchestrator.diagnosis.verdict import TopVerdict

        words = {verdict_word(one) for one in (*_members(TopVerdict), *_members(ServedVerdict))}
        if spelt(wanted.verdict) not in [run.verdict_word for run in known]:
            require_word("--verdict", spelt(wanted.verdict), words)


def _members(kind: object) -> "Iterator[str]":
    """The words of a Literal, also of several put together."""
    for one in get_args(kind):
        if isinstance(one, str):
            yield one
        else:
            yield from _members(one)


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
    run_id = store.resolve(run_id)
    if store.is_imported(run_id):
        _require_standalone(None, view, step_cost, max_new_tokens)
        _show_imported(store, run_id, as_json=as_json)
        return
    labels = store.labels(run_id)
    record = dataclasses.replace(store.load_exact(run_id), tags=labels.tags)
    _require_standalone(record, view, step_cost, max_new_tokens)
    asked = question(step_cost, max_new_tokens)
    showing.show_run(record, store, as_json=as_json, view=view or "report", question=asked)
    if not as_json:
        _show_labels(labels)
        from orchestrator.store.telling import untold

        for sentence in untold(store.run_dir(run_id)):
            console.out(f"note: {sentence}")


def _require_standalone(
    record: "RunRecord | None", view: "View | None", step_cost: str | None, max_new_tokens: int | None
) -> None:
    """What is asked of a drafter's test has no answer in a run of another kind (None: an imported one)."""
    kind = "imported" if record is None else record.job_kind
    asked = {"--depths": view == "depths", "--rules": view == "rules", "--step-cost": step_cost is not None}
    given = [flag for flag, is_given in asked.items() if is_given]
    given += [] if max_new_tokens is None else ["--max-new-tokens"]
    if given and kind != "standalone":
        raise UsageError(
            f"{', '.join(given)}: expected a run of kind standalone, this one is: {kind}",
            hint="its report without them says all there is; --verbose has every check, --json every figure",
        )


def _show_imported(store: Store, run_id: str, *, as_json: bool) -> None:
    measured, labels = store.imported(run_id), store.labels(run_id)
    if as_json:
        told = {"tags": list(labels.tags), "note": labels.note}
        console.out_json({"run_id": run_id, **told, "measurements": dataclasses.asdict(measured)})
        return
    from orchestrator.compare.possible import asked_again
    from orchestrator.report.measured_text import measured_text

    console.out(measured_text(asked_again(measured), console.width()))
    _show_labels(labels)


def _show_labels(labels: "RunLabels") -> None:
    if labels.tags:
        console.out(f"\ntags: {' '.join(labels.tags)}")
    if labels.note:
        console.out(f"note: {labels.note}")


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--force", is_flag=True, help="Also a run that is not over: it is forgotten here and goes on there.")
def rm(run_id: str, *, force: bool) -> None:
    """Forget a run on this laptop; its whole id is asked for. The host keeps its own copy."""
    from orchestrator.cli.options import open_store

    store = open_store()
    known = next((run for run in store.list() if run.run_id == run_id), None)
    if known is not None and known.phase in ("queued", "starting", "running") and not force:
        raise InvalidRunError(
            f"expected a run that is over, the last state seen of `{run_id}` is: {known.phase}",
            hint=f"`eagle3-remote cancel {run_id}` ends it; --force forgets it on this laptop only",
        )
    store.remove(run_id)
    console.note(f"removed {run_id}")


add_store_commands(runs)
