"""Is the drafter fed what it was trained on, and computed as it was trained? What is served against the best reading.

The best reading is picked on the data it is then judged by, so the interval that decides is widened (Bonferroni) for
the readings that were measured on all rows beside the declared one; those that the search left behind are no rivals.
Simulated with 26 equally good readings on 5 to 24 rows, a sound drafter was called mis-wired in 3 to 5.5 % of 1500
tests. That serving feeds the wrong states does not yet say which are right: ids are only named where the best reading
is surely ahead of every other set of states. Where even the best one reads poorly (`poor_fit`), wrong rows or a broken
export look just like that, so nothing is called sound and no ids are named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.figures import first_step_difference, same_rows, walk_ratio
from orchestrator.compare.stats import CONFIDENCE, Estimate
from orchestrator.diagnosis import advice
from orchestrator.diagnosis.effects import accepted_difference, effects, same_inputs, simplest
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.mis_wired import is_vllms_numbering, names_best
from orchestrator.diagnosis.verdict import (
    LEAST_FIT,
    SEPARATION,
    SERVED_OFFSET,
    Effect,
    MeasuredReading,
    Verdict,
    WiringVerdict,
    is_poor,
)
from orchestrator.diagnosis.without_states import reads_none
from orchestrator.errors import InvalidRunError
from remote_payload.schema import ReadingFacts, StandaloneResult

ADVISED = ("mis_wired", "cannot_serve", "unknown_rule")
"""Verdicts beside which config ids for the best reading are named."""


def judge(measured: Measured) -> WiringVerdict:
    """Judge a standalone test by what was measured."""
    result, ranking = measured.result, rank(measured)
    best, declared, confidence = ranking.best, ranking.declared, ranking.confidence
    runner_up = next((item for item in ranking.ranked if item is not best), None)
    other = runner_up if best is declared else declared
    difference = ratio = None
    if other is not None and same_rows(best.figures, other.figures):
        difference = first_step_difference(best.figures, other.figures, confidence)
        ratio = walk_ratio(best.figures, other.figures, CONFIDENCE)
    equals = _orders_alike(best, ranking.ranked, confidence)
    poor = is_poor(best)
    found = effects(best, result.declared.changes, ranking.ranked, result.checkpoint, confidence)
    verdict = _fit_verdict(_verdict(result, ranking, difference, found), best, difference, equals)
    if poor and reads_none(result, best.figures.first_step.value or 0.0):
        verdict = "nothing_fits"
    if verdict == "declared_not_captured" and is_vllms_numbering(result, best):
        verdict = "mis_wired"
    # Where the order of the states hardly matters, the one that a server can feed needs no change of weights.
    served = next((item for item in (best, *equals) if _is_in_layer_order(item.facts)), best)
    advised = verdict in ADVISED and not poor and not names_best(measured, best)
    rivals = _rivals(ranking, verdict) if advised else ()
    spelling = None
    if verdict in ADVISED and not poor and not rivals and served.facts.states is not None:
        spelling = measured.spelling(served.facts.states)
    misread = tuple(effect for effect in found if effect.proven) if not (poor and equals) else ()
    fix = advice.candidates_fix(measured, (best, *rivals)) if rivals else ()
    fix = fix or advice.fix(verdict, measured, served, spelling, difference, alike=bool(equals))
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
        headline=advice.headline(verdict, result, best, difference, alike=bool(equals), misread=misread),
        fix=(*fix, *(advice.reading_fix(misread, result) if verdict != "nothing_fits" else ())),
        effects=found,
    )


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The readings that were measured on all rows, best first, and the two that matter."""

    ranked: tuple[MeasuredReading, ...]
    best: MeasuredReading
    """The first, unless a simpler one is as good."""
    declared: MeasuredReading | None
    """What SGLang would feed and compute; its inputs under another computation where that alone was measured."""
    confidence: float
    """Widened for the readings that could have come out first by chance."""


def rank(measured: Measured) -> Ranking:
    """Rank by accepted drafts a position. Raises InvalidRunError where no reading was measured on all rows."""
    result = measured.result
    full = [
        MeasuredReading(facts=facts, figures=measured.train.figures[facts.name])
        for facts in result.readings
        if facts.stage == "full" and facts.name in measured.train.figures and not is_control(facts)
    ]
    if not full:
        raise InvalidRunError("expected a reading that was measured on all rows, found none in the result")
    fed = [item for item in full if _is_fed(item.facts, result)]
    exact = [item for item in fed if item.facts.changes == tuple(sorted(result.declared.changes))]
    declared = next(iter([*exact, *fed]), None)
    ranked = tuple(sorted(full, key=lambda item: (-_score(item), item is not declared)))
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(full) - 1)
    best = simplest(ranked, declared, confidence)
    return Ranking(ranked=ranked, best=best, declared=declared, confidence=confidence)


def is_control(facts: ReadingFacts) -> bool:
    """Whether a reading only shows what the drafter does without its states, or with those of the token beside."""
    return any(change.startswith("states=") for change in facts.changes)


def _score(item: MeasuredReading) -> float:
    """Accept length over positions; of step 1 alone where no chain is whole."""
    whole = item.figures.accept_length_mean.value
    return 1 + (item.figures.first_step.value or 0.0) if whole is None else whole


def _is_fed(facts: ReadingFacts, result: StandaloneResult) -> bool:
    """Whether these are the inputs that serving would feed."""
    return facts.slots == result.declared.slots and facts.token_offset == SERVED_OFFSET


def _is_in_layer_order(facts: ReadingFacts) -> bool:
    return facts.states is not None and list(facts.states) == sorted(facts.states)


def _orders_alike(
    best: MeasuredReading, ranked: Sequence[MeasuredReading], confidence: float
) -> tuple[MeasuredReading, ...]:
    """Readings of the same states in another order that the best one is surely not, or hardly, ahead of."""
    alike = []
    for item in ranked:
        orders = item.facts.slots != best.facts.slots and set(item.facts.slots) == set(best.facts.slots)
        rest = (item.facts.token_offset, item.facts.changes) == (best.facts.token_offset, best.facts.changes)
        if orders and rest and same_rows(best.figures, item.figures):
            ahead = first_step_difference(best.figures, item.figures, confidence)
            if ahead.low is not None and ahead.low <= SEPARATION:
                alike.append(item)
    return tuple(alike)


def _rivals(ranking: Ranking, verdict: Verdict) -> tuple[MeasuredReading, ...]:
    """The best reading of every other set of states that the best one is not surely ahead of."""
    best, beaten = ranking.best, {frozenset(ranking.best.facts.slots)}
    if verdict == "mis_wired" and ranking.declared is not None:
        beaten.add(frozenset(ranking.declared.facts.slots))  # what the verdict already says
    others: dict[frozenset[int], MeasuredReading] = {}
    for item in ranking.ranked:
        slots = frozenset(item.facts.slots)
        if slots not in beaten and same_rows(best.figures, item.figures):
            others.setdefault(slots, item)
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(others))
    return tuple(item for item in others.values() if not _is_surely_ahead(best, item, confidence))


def _is_surely_ahead(a: MeasuredReading, b: MeasuredReading, confidence: float) -> bool:
    """Ahead at step 1 and in accepted drafts, one of them surely: on few rows two near sets differ in sign."""
    ahead = [first_step_difference(a.figures, b.figures, confidence)]
    chains = accepted_difference(a.figures, b.figures, confidence)
    ahead += [] if chains is None else [chains]
    above = all(found.value is not None and found.value > 0 for found in ahead)
    return above and any(found.low is not None and found.low > 0 for found in ahead)


def _fit_verdict(
    verdict: Verdict, best: MeasuredReading, difference: Estimate | None, equals: Sequence[MeasuredReading]
) -> Verdict:
    """The verdict where the best reading reads well; what is to be said instead where it does not."""
    if (best.figures.first_step.value or 0.0) < LEAST_FIT:
        return "nothing_fits"
    if not is_poor(best):
        return verdict
    told = difference is not None and difference.low is not None
    if verdict == "sound" or (verdict == "cannot_separate" and (told or equals)) or (verdict == "mis_read" and equals):
        return "poor_fit"
    return verdict


def _verdict(
    result: StandaloneResult, ranking: Ranking, difference: Estimate | None, found: Sequence[Effect]
) -> Verdict:
    declared = result.declared
    if declared.captured is not None and declared.problem is not None:
        return "cannot_serve"
    if result.rows.states is None:
        return "unlabelled"
    if declared.captured is None:
        return "unknown_rule"
    if ranking.declared is None:
        return "mis_wired" if is_vllms_numbering(result, ranking.best) else "declared_not_captured"
    if difference is None or difference.low is None:
        return "cannot_separate"
    if ranking.best is ranking.declared:
        return "sound"
    ahead = _wiring_difference(ranking)
    if ahead is not None and ahead.low is not None and ahead.low > SEPARATION:
        return "mis_wired"
    return "mis_read" if any(effect.proven for effect in found) else "cannot_separate"


def _wiring_difference(ranking: Ranking) -> Estimate | None:
    """Step-1 accuracy that the inputs alone are worth: both sides computed alike where such a pair was measured."""
    best, declared = ranking.best, ranking.declared
    if declared is None or same_inputs(best, declared):
        return None
    pairs = [(best, item) for item in ranking.ranked if same_inputs(item, declared)]
    pairs = [(a, b) for a, b in pairs if b.facts.changes == a.facts.changes]
    pairs += [
        (item, declared)
        for item in ranking.ranked
        if same_inputs(item, best) and item.facts.changes == declared.facts.changes
    ]
    a, b = [*pairs, (best, declared)][0]
    return first_step_difference(a.figures, b.figures, ranking.confidence) if same_rows(a.figures, b.figures) else None
