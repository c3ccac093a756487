"""Train minus held-out: how much better a drafter is on rows it was trained on.

Three ways, the sharpest that the data allow. `paired`: both splits hold the same texts (captured twice, say), compared
text by text. `stratified`: both hold rows of greedy and of sampled responses, at least five of each; these two kinds
differ by far more than an honest gap, so each kind is compared with itself and the two differences are averaged by
their positions. `unpaired`: all rows against all rows. Rows are the independent samples throughout. Where the kinds'
shares differ and no strata can be made, `unlike` says so: the difference then holds the kinds' as well.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.compare.chains import masked, unpack_row
from orchestrator.compare.figures import ReadingFigures, first_step_sums, walk_sums
from orchestrator.compare.stats import (
    MIN_ROWS,
    UNKNOWN,
    Estimate,
    bounded,
    paired_difference,
    pooled_ratio,
    student_t_quantile,
    unpaired_difference,
)
from remote_payload.schema import RowFacts

GREEDY_SHARE = 0.97
"""A row counts as greedy where the teacher's choice is the row's next token in this share of its response at least.

Not all: a capture in another number format or batch flips a few. Sampled responses stand far below."""
UNLIKE = 0.2
"""Greedy rows' share of all rows may differ by so much between splits before the comparison is called unlike."""

Sums = Callable[[ReadingFigures], tuple[list[int], list[int]]]
Kind = Literal["greedy", "sampled"]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Train minus held-out of one reading."""

    reading: str
    how: Literal["paired", "stratified", "unpaired"]
    first_step: Estimate
    """Difference in step-1 accuracy."""
    accept_length: Estimate
    """Difference in accept length (serving walk), tokens."""
    train_first_step: Estimate
    heldout_first_step: Estimate
    train_accept_length: Estimate
    heldout_accept_length: Estimate
    train_rows: int
    heldout_rows: int
    unlike: bool
    """The splits mix greedy and sampled rows differently, and the difference was not freed from it."""


def gap(
    train: ReadingFigures,
    train_rows: Sequence[RowFacts],
    heldout: ReadingFigures,
    heldout_rows: Sequence[RowFacts],
) -> Gap:
    """Compare one reading on both splits; figures and rows of a split are in the same order."""
    shares = [sum(row_kind(row) == "greedy" for row in rows) / max(len(rows), 1) for rows in (train_rows, heldout_rows)]
    pairs = _same_texts(train_rows, heldout_rows)
    kinds = _both_kinds(train_rows, heldout_rows)
    how: Literal["paired", "stratified", "unpaired"] = "unpaired"
    if pairs is not None:
        how = "paired"
    elif kinds is not None:
        how = "stratified"

    def difference(sums: Sums) -> Estimate:
        if pairs is not None:
            ours, theirs = sums(train), sums(heldout)
            return paired_difference(_chosen(ours, [a for a, _ in pairs]), _chosen(theirs, [b for _, b in pairs]))
        if kinds is not None:
            return _stratified(sums(train), sums(heldout), kinds)
        return unpaired_difference(pooled_ratio(*sums(train)), pooled_ratio(*sums(heldout)))

    return Gap(
        reading=train.reading,
        how=how,
        first_step=difference(first_step_sums),
        accept_length=difference(walk_sums),
        train_first_step=bounded(pooled_ratio(*first_step_sums(train)), 0, 1),
        heldout_first_step=bounded(pooled_ratio(*first_step_sums(heldout)), 0, 1),
        train_accept_length=bounded(pooled_ratio(*walk_sums(train)), 1, train.steps + 1),
        heldout_accept_length=bounded(pooled_ratio(*walk_sums(heldout)), 1, heldout.steps + 1),
        train_rows=len(train_rows),
        heldout_rows=len(heldout_rows),
        unlike=how == "unpaired" and abs(shares[0] - shares[1]) > UNLIKE,
    )


def row_kind(facts: RowFacts) -> Kind:
    """Whether a row's response looks like the target's own greedy choice, from the rows alone."""
    row = unpack_row(facts)
    answered = masked(row.loss_mask, np.arange(row.tokens) + 1)
    share = float(row.greedy[answered].mean()) if answered.any() else 0.0
    return "greedy" if share >= GREEDY_SHARE else "sampled"


def _same_texts(a: Sequence[RowFacts], b: Sequence[RowFacts]) -> list[tuple[int, int]] | None:
    """Places of the same texts in both splits; None unless they hold the very same ones, each once."""
    ours = {row.tokens_sha256: place for place, row in enumerate(a)}
    theirs = {row.tokens_sha256: place for place, row in enumerate(b)}
    if None in ours or set(ours) != set(theirs) or len(ours) != len(a) or len(theirs) != len(b):
        return None
    return [(place, theirs[digest]) for digest, place in ours.items()]


def _both_kinds(a: Sequence[RowFacts], b: Sequence[RowFacts]) -> tuple[list[Kind], list[Kind]] | None:
    kinds = [row_kind(row) for row in a], [row_kind(row) for row in b]
    enough = all(side.count(kind) >= MIN_ROWS for side in kinds for kind in ("greedy", "sampled"))
    return kinds if enough else None


def _stratified(
    a: tuple[Sequence[int], Sequence[int]],
    b: tuple[Sequence[int], Sequence[int]],
    kinds: tuple[Sequence[Kind], Sequence[Kind]],
) -> Estimate:
    """Each kind's difference, weighted by its positions in both splits; Satterthwaite's degrees of freedom."""
    parts: list[tuple[float, Estimate]] = []
    for kind in ("greedy", "sampled"):
        sides = [
            _chosen(sums, [place for place, other in enumerate(own) if other == kind])
            for sums, own in zip((a, b), kinds, strict=True)
        ]
        weight = float(sum(sum(x) for _, x in sides))
        parts.append((weight, unpaired_difference(pooled_ratio(*sides[0]), pooled_ratio(*sides[1]))))
    return _averaged(parts)


def _averaged(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    total = sum(weight for weight, _ in parts)
    rows = sum(estimate.rows for _, estimate in parts)
    if not total or any(estimate.value is None for _, estimate in parts):
        return UNKNOWN
    value = sum(weight / total * (estimate.value or 0.0) for weight, estimate in parts)
    variances = [
        None if estimate.standard_error is None else (weight / total * estimate.standard_error) ** 2
        for weight, estimate in parts
    ]
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(parts):
        return Estimate(value=value, rows=rows)
    spread = sum(known)
    freedom = 1.0
    if spread:  # rows of the smaller side less one: never more than Welch's own
        freedom = spread**2 / sum(
            variance**2 / (estimate.rows - 1) for variance, (_, estimate) in zip(known, parts, strict=True)
        )
    error = math.sqrt(spread)
    half = student_t_quantile(0.975, freedom) * error
    return Estimate(value=value, low=value - half, high=value + half, standard_error=error, rows=rows)


def _chosen(sums: tuple[Sequence[int], Sequence[int]], places: Sequence[int]) -> tuple[list[int], list[int]]:
    return [sums[0][place] for place in places], [sums[1][place] for place in places]
