"""The same hits under each party's rules: which positions count, what the teacher answers, what is logged.

Not every drafter's log says the same: a "74 % accuracy" is a share of other positions, against another teacher, in
every trainer. So that a figure here can be held against a training log, each rule is applied as its source has it:

- `serving`: SGLang's and vLLM's verification. The chain proposes response tokens; the answer is the target's greedy
  choice; `accept` of step s is conditional on all earlier ones.
- `specforge` (SpecForge 0.2.0): mask loss_mask[j+s], the last zeroed; full-vocabulary teacher, so a choice outside the
  draft vocabulary is a miss; `acc_s` is each step alone, the row's own tokens as input; `simulated_acc_len` is
  a_0 + a_0 a_1 + ..., without the bonus token.
- `safeailab` (SafeAILab/EAGLE cb7e084): mask loss_mask[j+s]; a hit must equal the teacher's choice within the draft
  vocabulary *and* that choice must be the full one, which is the full-vocabulary hit; `acces[s]` is each step alone.
- `speculators` (0.9.0): mask loss_mask[j+1+s]; the teacher's choice within the draft vocabulary; `full_acc_s` counts a
  chain that began on a response token and hit in all steps 0..s, over all positions of step s; `cond_acc_s` the same
  over the chains that had hit so far.

Figures are pooled over positions; trainers that average over batches differ by a little. Steps are 0-based, as logged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.compare.acceptance import MaskRule, count_row, counted
from orchestrator.compare.chains import Bools, Chains, chains_of, exists, masked
from orchestrator.compare.stats import Proportion, wilson
from remote_payload.schema import ReadingHits, RowFacts

Teacher = Literal["full vocabulary", "draft vocabulary"]


@dataclass(frozen=True, kw_only=True)
class Logged:
    """One figure as one party logs it."""

    rule: MaskRule
    figure: str
    """The name it has there."""
    teacher: Teacher
    definition: str
    steps: tuple[Proportion, ...] = ()
    """A share a step; empty for a single number, and where it is unknown."""
    value: float | None = None
    """The single number; None = unknown, or a share a step."""
    unknown_because: str | None = None


def logged(reading: str, rows: Sequence[RowFacts], hits: Sequence[ReadingHits]) -> tuple[Logged, ...]:
    """One reading under every rule. Raises InvalidRunError where its hits are missing or do not fit the rows."""
    chains = chains_of(reading, rows, hits)
    own = [item for item in hits if item.reading == reading]
    pruned = None
    if all(item.hits_in_vocab is not None for item in own):
        pruned = chains_of(reading, rows, hits, in_vocab=True)
    alone = _alone(chains, "specforge")
    serving = [count_row(item) for item in chains]
    return (
        Logged(
            rule="serving",
            figure="accept",
            teacher="full vocabulary",
            definition="step s given that all earlier ones hit",
            steps=_pooled([(row.conditional_hits, row.conditional_n) for row in serving]),
        ),
        Logged(
            rule="specforge",
            figure="acc_s",
            teacher="full vocabulary",
            definition="each step alone",
            steps=alone,
        ),
        Logged(
            rule="specforge",
            figure="simulated_acc_len",
            teacher="full vocabulary",
            definition="a_0 + a_0 a_1 + ..., without the bonus token: a served accept length is about 1 more",
            value=simulated_length([share.value for share in alone]),
        ),
        Logged(
            rule="safeailab",
            figure="acces[s]",
            teacher="full vocabulary",
            definition="each step alone, over the whole loss mask",
            steps=_alone(chains, "safeailab"),
        ),
        *_speculators(pruned),
    )


def simulated_length(accuracies: Sequence[float | None]) -> float | None:
    """SpecForge's `simulated_acc_len`: sum of the cumulative products; None where an accuracy is unknown."""
    total, product = 0.0, 1.0
    for accuracy in accuracies:
        if accuracy is None:
            return None
        product *= accuracy
        total += product
    return total


def _speculators(chains: tuple[Chains, ...] | None) -> tuple[Logged, Logged]:
    definitions = {
        "full_acc_s": "all steps 0..s hit, over the positions of step s",
        "cond_acc_s": "all steps 0..s hit, over the chains that had hit so far",
    }
    shares: dict[str, tuple[Proportion, ...]] = dict.fromkeys(definitions, ())
    if chains is not None:
        counts = [_count_speculators(item) for item in chains]
        shares["full_acc_s"] = _pooled([(hit, n) for hit, n, _ in counts])
        shares["cond_acc_s"] = _pooled([(hit, reached) for hit, _, reached in counts])
    full, cond = (
        Logged(
            rule="speculators",
            figure=name,
            teacher="draft vocabulary",
            definition=definition,
            steps=shares[name],
            unknown_because=None if chains is not None else "the result holds no hits within the draft vocabulary",
        )
        for name, definition in definitions.items()
    )
    return full, cond


def _count_speculators(chains: Chains) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Per step: hits, positions of the step, and chains that had hit in all earlier steps.

    A chain begins where loss_mask[j+1] is set, and goes on whatever the mask says later; only what is counted as a hit
    must be masked in (speculators 0.9.0, `models/eagle3/core.py` and `models/metrics.py`).
    """
    positions = counted(chains, "speculators")
    began = masked(chains.row.loss_mask, chains.positions + 1)[:, None]
    inside = exists(chains.positions, chains.steps, chains.row.tokens)
    correct = began & np.logical_and.accumulate(chains.hits, axis=1)
    before = np.concatenate([began, correct[:, :-1]], axis=1) & inside
    return _sums(correct & positions), _sums(positions), _sums(before)


def _alone(chains: Sequence[Chains], rule: MaskRule) -> tuple[Proportion, ...]:
    counts = [(counted(item, rule), item.hits) for item in chains]
    return _pooled([(_sums(where & hit), _sums(where)) for where, hit in counts])


def _pooled(rows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Proportion, ...]:
    hits = np.sum([row[0] for row in rows], axis=0)
    n = np.sum([row[1] for row in rows], axis=0)
    return tuple(wilson(int(h), int(m)) for h, m in zip(hits, n, strict=True))


def _sums(table: Bools) -> tuple[int, ...]:
    return tuple(int(value) for value in table.sum(axis=0))
