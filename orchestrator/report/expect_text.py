"""Judgments on what was expected of a run, as text and as JSON values."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from orchestrator.compare.expect import Judgment
from orchestrator.compare.matching import case_words
from orchestrator.report.diff_words import change_words, figure, samples
from orchestrator.report.lines import wrapped

WORDS = {"passed": "holds", "failed": "DOES NOT HOLD", "cannot tell": "CANNOT TELL"}


def expect_text(run: str, judgments: Sequence[Judgment], width: int = 80) -> str:
    """How many hold, then each with its figure or the reason why it cannot be told."""
    holding = sum(item.outcome == "passed" for item in judgments)
    lines = wrapped(f"{holding} of {len(judgments)} expectations hold: {run}", width)
    for item in judgments:
        lines += wrapped(f"{WORDS[item.outcome]}: {judgment_words(item)}", width, "  ")
    return "\n".join(lines)


def judgment_words(item: Judgment) -> str:
    """The expectation, the load, what was measured, and why it cannot be told where that is so."""
    load = case_words(item.case)
    told = f"{item.condition.words}{f' at {load}' if load else ''}"
    if item.figure.value is not None:
        told += f": {measured_words(item)}"
    return f"{told}; {item.reason}" if item.reason else told


def measured_words(item: Judgment) -> str:
    """e.g. `2.61 tokens, 95 % interval 2.50 to 2.72, n = 80`; against a baseline the change and both figures."""
    unit, line = item.condition.metric.unit, item.comparison
    if line is not None:
        sides = f"{figure(line.ours.value, unit)} against {figure(line.theirs.value, unit)}"
        return f"{change_words(line)}, {sides}, n = {samples(line)}"
    told = figure(item.figure.value, unit)
    if item.figure.low is not None and item.figure.high is not None:
        told += f", 95 % interval {figure(item.figure.low, unit)} to {figure(item.figure.high, unit)}"
    return f"{told}, n = {item.figure.rows}"


def expect_json(run: str, judgments: Sequence[Judgment]) -> dict[str, Any]:
    """The same as values; unknown is None."""
    return {
        "kind": "expectations",
        "report_version": 1,
        "run": run,
        "hold": all(item.outcome == "passed" for item in judgments),
        "expectations": [
            {
                "metric": item.condition.metric.name,
                "condition": item.condition.text,
                "source": item.condition.source,
                "outcome": item.outcome,
                "load": {fact.name: fact.value for fact in item.case},
                "figure": dataclasses.asdict(item.figure),
                "comparison": None if item.comparison is None else dataclasses.asdict(item.comparison),
                "reason": item.reason or None,
            }
            for item in judgments
        ],
    }
