"""Is the drafter fed what it was trained on? The declared reading of its inputs against the best one, and the fix.

The best reading is picked on the data it is then judged by, so the interval that decides is widened (Bonferroni) for
the readings that were measured on all rows beside the declared one; those that the search left behind are no rivals.
Simulated with 26 equally good readings on 5 to 24 rows, a sound drafter was called mis-wired in 3 to 5.5 % of 1500
tests. A drafter of states that were not captured is only suspected (`poor_fit`), and only where two orders of the same
states were measured on all rows. Not covered: drafters that mix tokens otherwise.
"""

from collections.abc import Sequence

from orchestrator.compare.figures import first_step_difference, reading_figures, same_rows, walk_ratio
from orchestrator.compare.stats import CONFIDENCE, Estimate
from orchestrator.diagnosis import advice
from orchestrator.diagnosis.sglang_ids import spell
from orchestrator.diagnosis.verdict import (
    GOOD_FIT,
    LEAST_FIT,
    SEPARATION,
    SERVED_OFFSET,
    MeasuredReading,
    Verdict,
    WiringVerdict,
)
from orchestrator.errors import InvalidRunError
from remote_payload.schema import ReadingFacts, ReadingHits, RowFacts, StandaloneResult

ADVISED = ("mis_wired", "cannot_serve", "unknown_rule")
"""Verdicts beside which config ids for the best reading are named."""


def judge_wiring(
    result: StandaloneResult,
    rows: Sequence[RowFacts],
    hits: Sequence[ReadingHits],
    *,
    max_new_tokens: int | None = None,
) -> WiringVerdict:
    """Judge a standalone test. Raises InvalidRunError where no reading was measured on all rows."""
    measured = [
        MeasuredReading(facts=facts, figures=reading_figures(facts.name, rows, hits, max_new_tokens=max_new_tokens))
        for facts in result.readings
        if facts.stage == "full"
    ]
    if not measured:
        raise InvalidRunError("expected a reading that was measured on all rows, found none in the result")
    declared = next((item for item in measured if _is_declared(item.facts, result)), None)
    ranked = sorted(measured, key=lambda item: (-(item.figures.first_step.value or 0.0), item is not declared))
    best, runner_up = ranked[0], ranked[1] if len(ranked) > 1 else None
    other = runner_up if best is declared else declared
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(measured) - 1)
    difference = ratio = None
    if other is not None and same_rows(best.figures, other.figures):
        difference = first_step_difference(best.figures, other.figures, confidence)
        ratio = walk_ratio(best.figures, other.figures, CONFIDENCE)
    equals = _orders_alike(best, ranked, confidence)
    poor = (best.figures.first_step.value or 0.0) < GOOD_FIT and bool(equals)
    verdict = _verdict(result, best is declared, declared is not None, difference)
    if (best.figures.first_step.value or 0.0) < LEAST_FIT:
        verdict = "nothing_fits"
    elif poor and verdict in ("sound", "cannot_separate"):
        verdict = "poor_fit"
    # Where the order of the states hardly matters, the one that a server can feed needs no change of weights.
    served = next((item for item in (best, *equals) if _is_in_layer_order(item.facts)), best)
    spelling = None
    if verdict in ADVISED and not poor and served.facts.states is not None:
        spelling = spell(served.facts.states, result.declared.target_class, result.declared.target_layers)
    return WiringVerdict(
        verdict=verdict,
        best=best,
        declared=declared,
        runner_up=runner_up,
        against=None if difference is None else "runner-up" if best is declared else "declared",
        difference=difference,
        ratio=ratio,
        readings_tried=len(result.readings),
        spelling=spelling,
        headline=advice.headline(verdict, result, best, difference, poor=poor),
        fix=advice.fix(verdict, result, served, spelling, difference, poor=poor and verdict != "mis_wired"),
    )


def _is_declared(facts: ReadingFacts, result: StandaloneResult) -> bool:
    return facts.slots == result.declared.slots and facts.token_offset == SERVED_OFFSET


def _is_in_layer_order(facts: ReadingFacts) -> bool:
    return facts.states is not None and list(facts.states) == sorted(facts.states)


def _orders_alike(
    best: MeasuredReading, ranked: Sequence[MeasuredReading], confidence: float
) -> tuple[MeasuredReading, ...]:
    """Readings of the same states in another order that the best one is surely not, or hardly, ahead of."""
    alike = []
    for item in ranked:
        orders = item is not best and set(item.facts.slots) == set(best.facts.slots)
        if not orders or item.facts.token_offset != best.facts.token_offset:
            continue
        if same_rows(best.figures, item.figures):
            ahead = first_step_difference(best.figures, item.figures, confidence)
            if ahead.low is not None and ahead.low <= SEPARATION:
                alike.append(item)
    return tuple(alike)


def _verdict(result: StandaloneResult, best_is_declared: bool, placed: bool, difference: Estimate | None) -> Verdict:
    declared = result.declared
    if result.rows.states is None:
        return "unlabelled"
    if declared.captured is None:
        return "unknown_rule"
    if declared.problem is not None:
        return "cannot_serve"
    if not placed:
        return "declared_not_captured"
    if difference is None or difference.low is None:
        return "cannot_separate"
    if best_is_declared:
        return "sound"
    return "mis_wired" if difference.low > SEPARATION else "cannot_separate"
