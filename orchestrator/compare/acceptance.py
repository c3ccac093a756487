"""Accuracies and accept length of one reading, over all judged positions, under each party's rule of what counts.

Rules (step s is 0-based here, written 1-based in reports; T tokens; loss_mask is False beyond the row):

- `serving`: step s of position j counts while the whole chain proposes response tokens: loss_mask[j+1 .. j+1+s] all
  set and j+1+s <= T-1. Position p-1, the last prompt token, is the first: a server drafts from there.
- `specforge`: loss_mask[j+s] with the row's last mask position set to zero (SpecForge 0.2.0, its training mask
  shifted left once a step).
- `safeailab`: loss_mask[j+s], the row's last position included: it has no answer and counts as a miss (SafeAILab/EAGLE
  cb7e084, traineagle3).
- `speculators`: loss_mask[j+1+s] (speculators 0.9.0, which drops x_0 before it masks).

The teacher is the target's greedy choice over its full vocabulary; a choice outside the draft vocabulary is never hit.
Each trainer's own teacher, and what it logs, is in `rules.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.compare.chains import Bools, Chains, Ints, exists, masked
from orchestrator.compare.stats import Proportion, wilson

MaskRule = Literal["serving", "specforge", "safeailab", "speculators"]


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """One reading on one row, counted. Tuples have one entry a step."""

    row: str
    n: tuple[int, ...]
    """Positions counted at each step, whatever the earlier steps did."""
    hits: tuple[int, ...]
    conditional_n: tuple[int, ...]
    """Positions counted whose earlier steps all hit."""
    conditional_hits: tuple[int, ...]
    whole: int
    """Positions whose chain counts in all its steps."""
    whole_leading: int
    """Leading hits summed over those."""


def counted(chains: Chains, rule: MaskRule) -> Bools:
    """(P, K): which steps of which positions count under `rule`."""
    tokens = chains.row.tokens
    j = chains.positions[:, None] + np.arange(chains.steps)[None, :]  # (P, K): j + s
    within = exists(chains.positions, chains.steps, tokens)
    if rule == "serving":
        chain = masked(chains.row.loss_mask, j + 1) & within
        return np.logical_and.accumulate(chain, axis=1)
    if rule == "specforge":
        trained = chains.row.loss_mask.copy()
        trained[-1] = False
        return masked(trained, j) & within
    if rule == "safeailab":
        return masked(chains.row.loss_mask, j)
    return masked(chains.row.loss_mask, j + 1) & within


def leading_hits(hits: Bools) -> Ints:
    """(P,) how many first steps of each chain hit in a row."""
    lengths: Ints = np.logical_and.accumulate(hits, axis=1).sum(axis=1)
    return lengths


def count_row(chains: Chains, rule: MaskRule = "serving") -> RowCounts:
    """Count one reading on one row under `rule`."""
    counts = counted(chains, rule)
    hit = chains.hits & counts
    before = np.ones_like(chains.hits)  # all earlier steps hit
    before[:, 1:] = np.logical_and.accumulate(chains.hits, axis=1)[:, :-1]
    whole = counts.all(axis=1)
    return RowCounts(
        row=chains.row.name,
        n=_sums(counts),
        hits=_sums(hit),
        conditional_n=_sums(counts & before),
        conditional_hits=_sums(hit & before),
        whole=int(whole.sum()),
        whole_leading=int(leading_hits(chains.hits)[whole].sum()),
    )


def step_accuracy(rows: Iterable[RowCounts]) -> tuple[Proportion, ...]:
    """Each step on its own, teacher-forced: hits of counted positions."""
    table = list(rows)
    return _proportions([row.hits for row in table], [row.n for row in table])


def conditional_acceptance(rows: Iterable[RowCounts]) -> tuple[Proportion, ...]:
    """Step s given that steps before s all hit: what a server's verification sees at that depth."""
    table = list(rows)
    return _proportions([row.conditional_hits for row in table], [row.conditional_n for row in table])


def _proportions(hits: list[tuple[int, ...]], n: list[tuple[int, ...]]) -> tuple[Proportion, ...]:
    return tuple(wilson(sum(h), sum(m)) for h, m in zip(zip(*hits, strict=True), zip(*n, strict=True), strict=True))


def _sums(table: Bools) -> tuple[int, ...]:
    return tuple(int(value) for value in table.sum(axis=0))
