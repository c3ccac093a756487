"""What a server would get, as text: every depth, what it costs, and train against held-out."""

import textwrap
from collections.abc import Sequence

from orchestrator.compare.gap import Gap
from orchestrator.compare.prediction import Depth, Prediction
from orchestrator.compare.step_cost import FORMS
from orchestrator.report.content import Foretold
from orchestrator.report.findings_text import wrapped
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, length, moved, number, percent, within

CAVEAT = (
    "A prediction: chains (top-k 1), greedy decoding, text like these rows. The interval is the accept length's over "
    "rows; r, the cost of a speculative step in plain decode steps, is given and taken as exact."
)
UNPRICED = (
    f"Speed-up {UNKNOWN}: nobody said what a speculative step costs on this target and device. Give --step-cost as "
    f"{FORMS}, or [[step_costs]] in eagle3.toml."
)
ROLES = {"best": "as it reads best"}
"""Every other part that is foretold is what serving feeds."""
HOW = {
    "paired": "the same texts in both, compared text by text",
    "stratified": "greedy and sampled rows each compared with their own kind, then averaged by their positions",
    "unpaired": "all rows against all rows",
}


def depths_text(foretold: Sequence[Foretold], width: int) -> str:
    """`runs show RUN --depths`: a table a reading."""
    blocks = []
    for one in foretold:
        told = one.prediction
        blocks.append([f"{one.role} ({told.reading}), {one.split} rows", *_depth_table(told, width)])
        if told.cost is not None:
            blocks[-1] += wrapped(_conclusion(told), width)
    if any(one.prediction.cost is None for one in foretold):
        blocks.append(textwrap.wrap(UNPRICED, width))
    blocks.append(textwrap.wrap(CAVEAT, width))
    return "\n\n".join("\n".join(block) for block in blocks)


def prediction_lines(foretold: Sequence[Foretold], width: int) -> list[str]:
    """The short report's lines; none where nobody said what a step costs."""
    lines = []
    for one in foretold:
        told = one.prediction
        if told.cost is not None:
            lines += wrapped(f"{ROLES.get(one.role, 'as served')}: {_conclusion(told)}", width)
    return lines


def gap_lines(gap: Gap, width: int) -> list[str]:
    """Train against held-out; where kinds of rows are compared, the differences are not those of the two figures."""
    kinds = "kind by kind " if gap.how == "stratified" else ""
    first = (
        f"step-1 accuracy  {percent(gap.train_first_step.value)} train  against  "
        f"{percent(gap.heldout_first_step.value)} held-out: {kinds}"
        f"{moved(gap.first_step, 'points', scale=100, digits=1)}"
    )
    second = (
        f"accept length    {number(gap.train_accept_length.value)} train  against  "
        f"{number(gap.heldout_accept_length.value)} held-out: {kinds}{moved(gap.accept_length, 'tokens')}"
    )
    how = f"{gap.train_rows} train and {gap.heldout_rows} held-out rows, {HOW[gap.how]}"
    if gap.unlike:
        how += "; the splits mix greedy and sampled rows differently, which alone moves these numbers by points"
    return [line for text in (first, second, how) for line in wrapped(text, width)]


def _depth_table(told: Prediction, width: int) -> list[str]:
    """One table, or the histograms in one of their own where it is too wide."""
    head = ["steps", "accept length", "drafts by accepted tokens 0.."]
    if told.cost is not None:
        head += ["break-even (r)", "speed-up"]
    rows = [head, *(_depth_cells(depth) for depth in told.depths)]
    lines = table(rows, "  ")
    if max(map(len, lines)) <= width:
        return lines
    numbers, histograms = [[*row[:2], *row[3:]] for row in rows], [[row[0], row[2]] for row in rows]
    return [*table(numbers, "  "), *table(histograms, "  ")]


def _depth_cells(depth: Depth) -> list[str]:
    cells = [
        str(depth.steps),
        length(depth.accept_length, depth.walk.verifies),
        ",".join(map(str, depth.walk.histogram)),
    ]
    if depth.speedup is not None:
        cells += [number(depth.break_even), within(depth.speedup)]
    return cells


def _conclusion(told: Prediction) -> str:
    depth = told.judged
    if depth is None or depth.speedup is None or told.cost is None:
        return f"speed-up {UNKNOWN}: no chain could be walked"
    pays = {True: "it pays", False: "it does not pay", None: "it may or may not pay"}[told.pays]
    where = "best at" if told.best_steps is not None else "at"
    words = (
        f"{where} {depth.steps} step{'' if depth.steps == 1 else 's'}: speed-up {within(depth.speedup)}, {pays}; "
        f"accept length {number(depth.accept_length.value)} against a break-even of {number(depth.break_even)}, with "
        f"r = {told.cost.words} ({told.cost.source})"
    )
    if told.best_steps is None:
        words += "; r does not depend on the number of steps k, so no number is best: give r as `A+Bk` to find one"
    if told.suspicious:
        words += "; r is below 1 somewhere, and no verify step is cheaper than a plain one: measure the baseline again"
    return words
