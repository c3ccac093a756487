"""What wrong rotary parameters cost where rows are longest: the loss grows with the position, and few rows are long."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.compare.acceptance import counted, leading_hits
from orchestrator.compare.chains import Chains
from orchestrator.compare.stats import Estimate, paired_difference
from orchestrator.diagnosis.checks.factors import severity_of
from orchestrator.diagnosis.finding import CheckResult, figure
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import CHANGE_SEPARATION, Effect, MeasuredReading

FAR = 2 / 3
"""Share of the judged positions that lie before the farthest ones."""


def where_rows_are_longest(
    found: CheckResult, measured: Measured, best: MeasuredReading, effect: Effect, confidence: float
) -> CheckResult:
    """The finding, as heavy as what the far positions lose makes it, where they surely lose something."""
    other = effect.reverted
    names = (best.facts.name, "" if other is None else other.facts.name)
    ours, theirs = (measured.train.chains(name) for name in names)
    if not ours or len(ours) != len(theirs):
        return found
    begin, lost = far_loss(ours, theirs, confidence)
    if lost.value is None or lost.low is None or lost.low <= CHANGE_SEPARATION:
        return found
    severity = severity_of(best, lost.value)
    if severity == found.severity or found.severity != "minor":
        return found
    line = figure(f"the same at positions from {begin} on, the farthest third", lost, "tokens")
    first, *rest = found.evidence
    return replace(found, severity=severity, evidence=(first, line, *rest))


def far_loss(ours: Sequence[Chains], theirs: Sequence[Chains], confidence: float) -> tuple[int, Estimate]:
    """Accepted drafts a position of one reading minus those of another over the farthest third, paired by row.

    Positions count whose whole chain is judged, as in the accept length; with it the position where that third begins.
    """
    whole = [counted(chains, "serving").all(axis=1) for chains in ours]
    every = np.concatenate([chains.positions[judged] for chains, judged in zip(ours, whole, strict=True)])
    begin = int(np.quantile(every, FAR)) if len(every) else 0
    far = [judged & (chains.positions >= begin) for chains, judged in zip(ours, whole, strict=True)]
    n = [int(judged.sum()) for judged in far]
    sums = [
        [int(leading_hits(chains.hits)[judged].sum()) for chains, judged in zip(side, far, strict=True)]
        for side in (ours, theirs)
    ]
    return begin, paired_difference((sums[0], n), (sums[1], n), confidence)
