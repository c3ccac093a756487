"""`eagle3-remote expect`: whether a run does what was expected of it."""

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli import console
from orchestrator.cli.options import json_option, open_store
from orchestrator.errors import Eagle3Error, ExpectationError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.compare.condition import Condition
    from orchestrator.compare.expect import Judgment
    from orchestrator.records import RunRecord
    from orchestrator.store import Store

junit_option = click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the judgments as JUnit XML, for CI."
)


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--job", "job_file", type=click.Path(path_type=Path), help="The job file whose [expect] counts.")
@click.option("--that", "thats", metavar="TEXT", multiple=True, help="An expectation: 'METRIC CONDITION'.")
@junit_option
@json_option
def expect(reference: str, job_file: Path | None, thats: tuple[str, ...], junit: Path | None, *, as_json: bool) -> None:
    """Judge what was expected of a run; RUN is all that `diff` takes.

    What is expected stands in --that and the [expect] of --job, else in what the run was launched with, else in
    [jobs.KIND.expect] of eagle3.toml.

    'METRIC >= 2.4', '<= 500 ms', '[concurrency=4] >= 1.3 * baseline:plain'. It holds where the whole 95 % interval
    says so. Exit code 0: everything holds; 8: something does not, or cannot be told (too few samples, not comparable,
    not measured, failed requests).
    """
    from orchestrator.expectations import judged_on
    from orchestrator.operands import operand

    with junit_of_errors(reference, junit):
        store = open_store()
        conditions = _conditions(store, reference, job_file, thats)
        measured = operand(store, reference)
        found = judged_on(store, measured, conditions)
    for note in measured.notes:
        console.note(note)
    run_ids = tuple(one.run_id for one in measured.sets)
    if junit is not None:
        save_junit(reference, found, junit, run_ids)
    show_judged(reference, found, run_ids, as_json=as_json)
    require_holding(found)


def judge_run(record: "RunRecord", store: "Store", *, junit: Path | None = None) -> "Sequence[Judgment]":
    """Judge what a run was launched with; nothing where nothing was expected. A file is written in any case."""
    if not any(setting.key.startswith("expect.") for setting in record.settings) and junit is None:
        return ()
    from orchestrator.expectations import conditions_of, judged, unmeasured

    conditions = conditions_of(record.settings)
    if conditions and store.has_figures(record):
        with junit_of_errors(record.run_id, junit):
            found = judged(store, record.run_id, conditions)
    else:
        found = unmeasured(conditions, f"the run left no figures: {record.phase}")
    if junit is not None:
        save_junit(record.run_id, found, junit)
    return found


def show_judged(run: str, found: "Sequence[Judgment]", run_ids: "Sequence[str]" = (), *, as_json: bool) -> None:
    """The judgments; `run` is the word that was given, `run_ids` are the runs that it meant, none = itself."""
    from orchestrator.report.expect_text import expect_json, expect_text, runs_words

    if as_json:
        console.out_json(expect_json(run, found, run_ids))
    else:
        console.out(expect_text(runs_words(run, run_ids), found, console.width()))


def save_junit(run: str, found: "Sequence[Judgment]", path: Path, run_ids: "Sequence[str]" = ()) -> None:
    """The judgments as a file; the words as of `show_judged`."""
    from orchestrator.cli.saved import save
    from orchestrator.report.junit import junit

    save(path, junit(run, found, run_ids))


@contextmanager
def junit_of_errors(run: str, path: Path | None) -> "Iterator[None]":
    """An error that leaves nothing judged also stands in the file, where one is asked for: CI reads nothing else."""
    try:
        yield
    except Eagle3Error as error:
        if path is not None:
            from orchestrator.cli.saved import save
            from orchestrator.report.junit import unjudged

            save(path, unjudged(run, f"{error.message}; {error.hint}" if error.hint else error.message))
        raise


def require_holding(found: "Sequence[Judgment]") -> None:
    """Raise ExpectationError where anything does not hold, or cannot be told."""
    from orchestrator.compare.counted import counted
    from orchestrator.report.expect_text import expected_words

    bad = [item for item in found if item.outcome != "passed"]
    if bad:
        words = "; ".join(expected_words(item) for item in bad[:3])
        told = counted(len(found), "expectation does", "expectations do")
        raise ExpectationError(f"{len(bad)} of {told} not hold, or cannot be told: {words}")


def _conditions(
    store: "Store", reference: str, job_file: Path | None, thats: tuple[str, ...]
) -> "tuple[Condition, ...]":
    from orchestrator import config
    from orchestrator.compare.condition import parse_condition
    from orchestrator.expectations import conditions_of, expected_of
    from orchestrator.jobfile import expectations_for, expectations_in

    found = [parse_condition(*split, "--that") for split in dict.fromkeys(_split(that) for that in thats)]
    if job_file is not None:
        found += conditions_of(expectations_in(job_file))
    if not found:
        kind, settings = expected_of(store, reference)
        found += conditions_of(settings) or conditions_of(expectations_for(kind, config.load(config.here())))
    if not found:
        raise UsageError(
            f"nothing was expected of `{reference}`",
            hint="--that 'accept_length_pooled >= 2.4', --job FILE with [expect], or [jobs.KIND.expect] in eagle3.toml",
        )
    return tuple(found)


def _split(that: str) -> tuple[str, str]:
    """The metric and the condition of `METRIC CONDITION`, with blanks between them or without."""
    found = re.match(r"\s*([A-Za-z0-9_.-]*)\s*(.*)", that, re.DOTALL)
    assert found is not None  # it fits anything
    return found[1], found[2].strip()
