"""The same hits as every trainer logs them, as text: to be held against a training log."""

import textwrap
from collections.abc import Sequence

from orchestrator.compare.rules import Logged
from orchestrator.report.content import SplitName
from orchestrator.report.findings_text import wrapped
from orchestrator.report.table import listed, table
from orchestrator.report.words import UNKNOWN, percent

WORDS = (
    "Pooled over positions; step 0 is the first, as trainers count. Teacher: which of the target's tokens may be the "
    "answer. A training log's last batch is a small sample of it, and its drafter may have been an earlier one."
)


def rules_text(reading: str, splits: Sequence[tuple[SplitName, Sequence[Logged]]], width: int) -> str:
    """`runs show RUN --rules`: a table a split, and what each figure means."""
    blocks = []
    for split, figures in splits:
        steps = max((len(item.steps) for item in figures), default=0)
        head = ["rule", "figure", *(f"s={step}" for step in range(steps)), "n", "teacher"]
        cells = [_cells(item, steps) for item in figures]
        blocks.append([f"best reading ({reading}), {split} rows", *listed([head, *cells], width)])
    meanings = {(item.rule, item.figure): item.definition for _, figures in splits for item in figures}
    explained = [(f"{rule} {figure}", meaning) for (rule, figure), meaning in meanings.items()]
    columns = table(explained)
    if max(map(len, columns), default=0) > width:
        columns = [line for item in explained for line in wrapped(": ".join(item), width, first="", then="  ")]
    blocks.append(columns)
    unknown = {item.unknown_because for _, figures in splits for item in figures if item.unknown_because is not None}
    blocks.append([*(f"unknown: {reason}" for reason in sorted(unknown)), *textwrap.wrap(WORDS, width)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _cells(item: Logged, steps: int) -> list[str]:
    shares = [percent(share.value) for share in item.steps]
    if not item.steps:
        shares = [UNKNOWN if item.value is None else f"{item.value:.3f}"]
    shares += [""] * (steps - len(shares))
    n = str(item.steps[0].n) if item.steps else ""
    return [item.rule, item.figure, *shares, n, item.teacher]
