"""`eagle3-remote baseline`: names for runs and numbers to compare with."""

import getpass
import platform
import time

import click

from orchestrator.cli import console
from orchestrator.cli.runs import json_option
from orchestrator.errors import UsageError
from orchestrator.store import Store


@click.group()
def baseline() -> None:
    """Name a run or a number to compare with."""


@baseline.command("set")
@click.argument("name")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--metric", "metrics", metavar="METRIC=VALUE", multiple=True, help="A typed number instead of a run.")
@click.option("--unit", help="Unit of the typed numbers, e.g. tok/s.")
@click.option("--note", default="", help="Where it comes from, for whoever reads it later.")
def set_baseline(name: str, run_id: str | None, metrics: tuple[str, ...], unit: str | None, note: str) -> None:
    """Let NAME mean a run that succeeded, or typed numbers; what it meant before stays in its history.

    Metrics of a standalone run, each behind `declared.` or `best.`: first_step_accuracy and step2_acceptance,
    step3_acceptance, ... (shares, 0 to 1), accept_length_walk and accept_length_mean (1 and more).
    """
    from orchestrator.compare.baseline import (
        METRIC_NAMES,
        entry_of_numbers,
        entry_of_run,
        metric_kind,
        number_of_text,
    )

    if (run_id is None) == (not metrics):
        raise UsageError("expected a run or --metric METRIC=VALUE, one of the two")
    store = Store.default()
    source, now = f"{getpass.getuser()}@{platform.node()}", time.time()
    if run_id is not None:
        record = store.load(run_id)
        problems = store.verify(record.run_id) if record.phase == "succeeded" else ()
        entry = entry_of_run(record, problems, source=source, note=note, now=now)
    else:
        numbers = tuple(number_of_text(text, unit) for text in metrics)
        entry = entry_of_numbers(numbers, source=source, note=note, now=now)
    store.set_baseline(name, entry)
    console.note(f"baseline {name} set")
    for unknown in (number.metric for number in entry.numbers if metric_kind(number.metric) is None):
        console.note(
            f"no run reports `{unknown}` yet, so nothing can be compared with it; known, behind `declared.` or "
            f"`best.`: {METRIC_NAMES}"
        )


@baseline.command("list")
@json_option
def list_baselines(*, as_json: bool) -> None:
    """Every baseline and what it means now."""
    import dataclasses

    store = Store.default()
    baselines, unreadable = store.baselines(), store.names.unreadable()
    if as_json:
        console.out_json(
            {
                "baselines": [dataclasses.asdict(item) for item in baselines],
                "unreadable": [{"name": item, "problem": problem} for item, problem in unreadable],
            }
        )
        return
    from orchestrator.report.baseline_text import baselines_text

    console.out(baselines_text(baselines, unreadable))


@baseline.command()
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """One baseline with everything it ever meant."""
    import dataclasses

    found = Store.default().baseline(name)
    if as_json:
        console.out_json(dataclasses.asdict(found))
        return
    from orchestrator.report.baseline_text import baseline_text

    console.out(baseline_text(found))


@baseline.command()
@click.argument("name")
def rm(name: str) -> None:
    """Forget a baseline and its history; its runs stay."""
    Store.default().names.remove(name)
    console.note(f"removed baseline {name}")
