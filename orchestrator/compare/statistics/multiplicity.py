"""Several metrics at once: the more one looks, the more one finds by chance.

Holm's correction (1979) keeps the chance of even one false alarm at 5 %: for the few primary metrics, which decide a
verdict. Benjamini-Hochberg's (1995) keeps the share of false ones among the findings at 5 %: for sweep tables.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from orchestrator.compare.comparison import Comparison, Verdict
from orchestrator.compare.statistics.power import ALPHA, power_of

__all__ = ["ALPHA", "CLAIMS", "adjust", "benjamini_hochberg", "holm"]
CLAIMS: frozenset[Verdict] = frozenset({"improved", "regressed", "changed", "small change"})
"""Verdicts that say there is a change."""


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted, lowest = [0.0] * len(ps), 1.0
    for rank, index in enumerate(order):
        lowest = min(lowest, len(ps) / (len(ps) - rank) * ps[index])
        adjusted[index] = lowest
    return adjusted


def adjust(
    comparisons: Sequence[Comparison], correction: Literal["Holm", "Benjamini-Hochberg"]
) -> tuple[Comparison, ...]:
    """The same comparisons with `p_adjusted`; a change that does not outlive the correction becomes inconclusive.

    All that are given are corrected for each other, by their primary test; those without a p or an interval stand
    aside. What is corrected is the claim that there is a change; its size is still read from its own 95 % interval.
    `equivalent` stays: it claims the opposite, and by an interval stricter than its test. The change that could be
    detected, and the samples for one of the margin, are those of the strictest level that the correction asks for.
    """
    tested = [
        (index, one.tests[0].p) for index, one in enumerate(comparisons) if one.tests and one.change.low is not None
    ]
    known = [(index, p) for index, p in tested if p is not None]
    ps = [p for _, p in known]
    adjusted = holm(ps) if correction == "Holm" else benjamini_hochberg(ps)
    result = list(comparisons)
    for (index, _), p in zip(known, adjusted, strict=True):
        one = _held_stricter(replace(comparisons[index], p_adjusted=p, correction=correction, corrected_over=len(ps)))
        if p > ALPHA and one.verdict in CLAIMS:
            note = f"{one.verdict} by itself, not after {correction}'s correction over {len(ps)}"
            one = replace(one, verdict="inconclusive", note="; ".join(filter(None, [one.note, note])))
        result[index] = one
    return tuple(result)


def _held_stricter(one: Comparison) -> Comparison:
    if one.spread is None or one.corrected_over == 1:
        return one
    alpha = ALPHA / one.corrected_over
    detectable, needed = power_of(one.spread, one.margin, ratio=one.metric.change == "ratio", alpha=alpha)
    return replace(one, detectable=detectable, needed=needed)
