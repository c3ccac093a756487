"""`eagle3-remote baseline`: names for runs and numbers to compare with."""

import getpass
import platform
import time
from typing import Any

import click

from orchestrator.cli import console
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.options import json_option, open_store
from orchestrator.errors import UsageError
from orchestrator.store import Store


@click.group(cls=ToldGroup)
def baseline() -> None:
    """Name a run or a number to compare with.

    Baselines lie in `baselines/` beside eagle3.toml where that folder exists, or where its `[baselines] directory` says
    (keep it in git: a baseline needs nothing else), and else in the user's data folder.
    """


@baseline.command("set")
@click.argument("name")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC=VALUE",
    multiple=True,
    help="A typed number instead of a run; `=90 tok/s` too.",
)
@click.option("--unit", help="Unit of the typed numbers, e.g. tok/s, s, tokens, share, ratio.")
@click.option(
    "--load",
    metavar="KEY=VALUE",
    multiple=True,
    help="The load of typed numbers, which alone is compared with them: concurrency=1, request_rate=2.5, side=plain, "
    "split=held-out.",
)
@click.option("--source", help="Where typed numbers come from: a paper, a dashboard. Default: whoever types them.")
@click.option("--note", default="", help="What it is, for whoever reads it later.")
def set_baseline(name: str, run_id: str | None, note: str, **typed: Any) -> None:
    """Let NAME mean a valid run, own or imported, or typed numbers; what it meant before stays in its history.

    A run's measurements are kept beside the name and never change. Metrics and their units: output_throughput_tok_s
    (tok/s), accept_length_pooled (tokens), tpot_s, ttft_s, e2e_s (s), accept_rate (share), speedup (ratio), ...; of a
    drafter test, behind `declared.` or `best.`: first_step_accuracy and step2_acceptance, ... (share, 0 to 1),
    accept_length_walk and accept_length_mean (tokens, 1 and more).
    """
    if (run_id is None) == (not typed["metrics"]):
        raise UsageError("expected a run or --metric METRIC=VALUE, one of the two")
    if run_id is None:
        _set_numbers(open_store(), name, note, **typed)
        return
    if any(typed.values()):
        raise UsageError("expected --unit, --load and --source with --metric only: a run knows its own")
    _set_run(open_store(), name, run_id, note)


def _set_run(store: Store, name: str, run_id: str, note: str) -> None:
    from orchestrator.promotion import promote

    done = promote(store, run_id, name, source=_who(), note=note, now=time.time())
    console.note(f"baseline {name} set")
    if done.older_record:
        console.note(
            f"`records/{done.measured.run_id}.json` was kept when this run was first promoted, with other measurements "
            f"({done.measured.tool}); a record never changes, so it is what {name} means"
        )


def _set_numbers(
    store: Store,
    name: str,
    note: str,
    *,
    metrics: tuple[str, ...],
    unit: str | None,
    load: tuple[str, ...],
    source: str | None,
) -> None:
    from orchestrator.compare.baseline import entry_of_numbers, load_of_texts, number_of_text, unknown_metrics

    numbers, at = tuple(number_of_text(text, unit) for text in metrics), load_of_texts(load)
    entry = entry_of_numbers(numbers, load=at, source=source or _who(), note=note, now=time.time())
    store.set_baseline(name, entry)
    console.note(f"baseline {name} set")
    for unknown, close in unknown_metrics(numbers):
        guess = f"; did you mean: {', '.join(close)}" if close else ""
        console.note(f"no run reports `{unknown}` yet, so nothing can be compared with it{guess}")


def _who() -> str:
    return f"{getpass.getuser()}@{platform.node()}"


@baseline.command("list")
@click.option("--published", is_flag=True, help="What others published, with its source; never measured by this tool.")
@click.option("--model", metavar="TEXT", help="With --published: only where target or drafter has this in its name.")
@json_option
def list_baselines(*, published: bool, model: str | None, as_json: bool) -> None:
    """Every baseline and what it means now; or published numbers to hold one's own against."""
    if published:
        _list_published(model, as_json=as_json)
        return
    if model is not None:
        raise UsageError("expected --model with --published: a baseline of one's own is found by its name")
    import dataclasses

    from orchestrator.report.baseline_text import baselines_text

    store = open_store()
    baselines, unreadable = store.baselines(), store.names.unreadable()
    if as_json:
        console.out_json(
            {
                "baselines": [dataclasses.asdict(item) for item in baselines],
                "unreadable": [{"name": item, "problem": problem} for item, problem in unreadable],
                "folder": str(store.names.folder),
                "orphans": [str(path) for path in store.names.orphans()],
            }
        )
        return
    elsewhere = {item.name for item in baselines if store.names.where(item.name) != store.names.folder}
    console.out(baselines_text(baselines, unreadable, elsewhere, console.width()))
    for path in store.names.orphans():
        console.note(f"no baseline needs this record any more, as a merge may leave it: {path}")


def _list_published(model: str | None, *, as_json: bool) -> None:
    from orchestrator.published import published_points
    from orchestrator.report.published_text import published_json, published_text

    points = published_points(model)
    if as_json:
        console.out_json(published_json(points))
    else:
        console.out(published_text(points, model, console.width()))


@baseline.command()
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """What a baseline means now: its figures, each with its n and interval; also of `published:NAME`."""
    import dataclasses

    from orchestrator.operands import baseline_set

    if name.startswith("published:"):
        from orchestrator.published import published_set

        measured, found = published_set(name.removeprefix("published:")), None
    else:
        store = open_store()
        found = store.baseline(name)
        measured = baseline_set(store, name)
    if as_json:
        history = [] if found is None else [dataclasses.asdict(entry) for entry in found.history]
        console.out_json({"name": name, "history": history, "measurements": dataclasses.asdict(measured)})
        return
    from orchestrator.report.baseline_text import baseline_text

    console.out(baseline_text(found, measured, console.width()))


@baseline.command()
@click.argument("name")
@json_option
def history(name: str, *, as_json: bool) -> None:
    """Everything a baseline ever meant, newest first; one line a move."""
    import dataclasses

    found = open_store().baseline(name)
    if as_json:
        console.out_json(dataclasses.asdict(found))
        return
    from orchestrator.report.baseline_text import history_text

    console.out(history_text(found, console.width()))


@baseline.command()
@click.argument("name")
def rm(name: str) -> None:
    """Forget a baseline, its history and the records that only it names; runs stay.

    A project's baseline hides one's own of the same name; what the name means afterwards is told.
    """
    names = open_store().names
    gone = names.remove(name)
    console.note(f"removed baseline {name}" + (f" and the records of {', '.join(gone)}" if gone else ""))
    if name in names.names():
        console.note(f"`{name}` means another baseline from now on, that in {names.where(name)}: baseline show {name}")
