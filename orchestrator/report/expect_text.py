"""Judgments on what was expected of a run, as text and as JSON values."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.compare.condition import UNITS, Condition
from orchestrator.compare.counted import counted
from orchestrator.compare.expect import Judgment
from orchestrator.compare.matching import case_words
from orchestrator.compare.stats import Estimate
from orchestrator.report.diff_words import bare, change_words, figure, samples
from orchestrator.report.lines import wrapped
from orchestrator.report.words import UNKNOWN, some_of

WORDS = {"passed": "holds", "failed": "DOES NOT HOLD", "cannot tell": "CANNOT TELL"}
MOST_NAMED = 8
"""Runs that are named behind a word that means several; JSON and JUnit name all."""


def runs_words(reference: str, run_ids: Sequence[str]) -> str:
    """The word that was given, and the runs that it meant where it is none of their ids, e.g. `last (RUN)`."""
    if not run_ids or tuple(run_ids) == (reference,):
        return reference
    more = f" and {len(run_ids) - MOST_NAMED} more" if len(run_ids) > MOST_NAMED else ""
    return f"{reference} ({', '.join(run_ids[:MOST_NAMED])}{more})"


def expect_text(run: str, judgments: Sequence[Judgment], width: int = 80) -> str:
    """How many hold, then each with its figure or the reason why it cannot be told."""
    holding = sum(item.outcome == "passed" for item in judgments)
    lines = wrapped(f"{holding} of {counted(len(judgments), 'expectation holds', 'expectations hold')}: {run}", width)
    for item in judgments:
        lines += wrapped(f"{WORDS[item.outcome]}: {judgment_words(item)}", width, "  ")
    return "\n".join(lines)


def judgment_words(item: Judgment) -> str:
    """The expectation, the load, what was measured, runs left out, and why it cannot be told where that is so."""
    told = expected_words(item)
    if item.figure.value is not None:
        told += f": {measured_words(item)}"
    if item.left_out:
        told += f"; without {some_of(item.left_out, MOST_NAMED)}, which it is compared with"
    return f"{told}; {item.reason}" if item.reason else told


def expected_words(item: Judgment) -> str:
    """The expectation and the load that it is judged on."""
    load = case_words(item.case)
    return f"{item.condition.words}{f' at {load}' if load else ''}"


def measured_words(item: Judgment) -> str:
    """In the unit that was asked for, e.g. `412 ms, 95 % interval 401 ms to 423 ms, n = 5`.

    Against a baseline how many times it that is, or how many points off, and both figures.
    """
    unit, line = item.condition.metric.unit, item.comparison
    if line is None:
        told = _within(item.figure, lambda value: _asked(item.condition, value))
        return f"{told}, n = {item.figure.rows}"
    if line.metric.change == "ratio":
        told = _within(item.figure, lambda value: f"{1 + value:.3f}x")
    else:
        told = change_words(line)
    sides = f"{figure(line.ours.value, unit)} against {figure(line.theirs.value, unit)}"
    return f"{told}: {sides}, n = {samples(line)}"


def _within(estimate: Estimate, words: Callable[[float], str]) -> str:
    if estimate.value is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None:
        return words(estimate.value)
    return f"{words(estimate.value)}, 95 % interval {words(estimate.low)} to {words(estimate.high)}"


def _asked(condition: Condition, value: float) -> str:
    """A figure in the unit of the expectation; one without a unit is in its metric's own."""
    metric = condition.metric
    if metric.unit == "share" and condition.unit in (None, "share"):
        return f"{value:.3f}"
    worth = UNITS.get(metric.unit, {}).get(condition.unit or "", 1.0)
    if worth == 1.0 or metric.unit == "share":
        return figure(value, metric.unit)
    return f"{bare(value / worth)} {condition.unit}"


def expect_json(run: str, judgments: Sequence[Judgment], run_ids: Sequence[str] = ()) -> dict[str, Any]:
    """The same as values; unknown is None. `run` is the word that was given, `run_ids` what it meant if not itself."""
    return {
        "kind": "expectations",
        "report_version": 1,
        "run": run,
        "runs": list(run_ids) or [run],
        "hold": all(item.outcome == "passed" for item in judgments),
        "expectations": [
            {
                "metric": item.condition.metric.name,
                "condition": item.condition.text,
                "unit": item.condition.metric.unit,
                "source": item.condition.source,
                "outcome": item.outcome,
                "load": {fact.name: fact.value for fact in item.case},
                "figure": dataclasses.asdict(item.figure),
                "comparison": None if item.comparison is None else dataclasses.asdict(item.comparison),
                "reason": item.reason or None,
                "left_out": list(item.left_out),
            }
            for item in judgments
        ],
    }
