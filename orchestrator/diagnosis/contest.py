"""Which sets of states a drafter reads best, and how each other set stands to that: as measured, never by a label.

A set that reads as well as the best one may be the one that it was trained on; one that is surely behind is not. Two
sets are compared under one computation where that was measured. A set that the search left behind on few rows counts as
behind where its interval there lies wholly below the best one's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.figures import first_step_difference, same_rows
from orchestrator.compare.stats import wilson
from orchestrator.diagnosis.effects import accepted_difference, same_inputs
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.mis_wired import is_vllms_numbering, moved
from orchestrator.diagnosis.verdict import (
    CHANGE_SEPARATION,
    SEPARATION,
    SERVED_OFFSET,
    MeasuredReading,
    WiringVerdict,
    is_poor,
)
from orchestrator.diagnosis.wiring import Ranking, rank
from remote_payload.schema import ReadingFacts

States = tuple[int, ...]
Standing = Literal["best", "alike", "behind", "unmeasured"]
"""`alike`: the best set is not surely, or hardly, ahead of it; `behind`: it surely is; `unmeasured`: rows that lack one
of its states, or a search that never tried it."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Sets of states as HF `hidden_states` indices, in the order of the drafter's fc."""

    best: States
    alike: frozenset[States]
    behind: frozenset[States]
    """Those that were measured and are surely behind."""

    def standing(self, states: States) -> Standing:
        """How one set stands to the best one."""
        if states == self.best:
            return "best"
        return "alike" if states in self.alike else "behind" if states in self.behind else "unmeasured"

    @property
    def rivals(self) -> frozenset[States]:
        """Other states, not the same in another order, that read as well."""
        return frozenset(states for states in self.alike if set(states) != set(self.best))


def contest(measured: Measured) -> Contest | None:
    """None where no reading is good, the states carry no labels, or the best reading is beside another token."""
    ranking = rank(measured)
    best = ranking.best
    if is_poor(best) or best.facts.states is None or best.facts.token_offset != SERVED_OFFSET:
        return None
    by_states: dict[States, list[MeasuredReading]] = {}
    for item in ranking.ranked:
        states = item.facts.states
        if states is not None and states != best.facts.states and item.facts.token_offset == SERVED_OFFSET:
            by_states.setdefault(states, []).append(item)
    behind = {states for states, items in by_states.items() if _is_behind(ranking, items)}
    left = {states for states in _left_behind(measured, best) if states not in by_states}
    return Contest(best=best.facts.states, alike=frozenset(by_states) - behind, behind=frozenset(behind | left))


def surely_best(found: Contest, wiring: WiringVerdict) -> States | None:
    """The states that it reads best where config.json names them too, or they are surely ahead of all others."""
    verdict, declared, spelling = wiring.verdict, wiring.declared, wiring.spelling
    if verdict == "cannot_separate":
        return None
    if verdict == "sound" or (verdict == "mis_read" and declared is not None and same_inputs(wiring.best, declared)):
        return found.best
    if spelling is not None:  # ids are only spelled for a set that is surely ahead, or that the config names
        return None if spelling.block_order else found.best
    return None if found.rivals else found.best


def is_moved(measured: Measured) -> bool:
    """Whether what reads best is what SGLang's rule names, each a layer off: labels that count otherwise do that."""
    captured, best = measured.result.declared.captured, rank(measured).best
    if captured is None or best.facts.states in (None, captured):
        return False
    beside = best.facts.states in (moved(captured, 1), moved(captured, -1))
    return beside or is_vllms_numbering(measured.result, best)


def _is_behind(ranking: Ranking, items: Sequence[MeasuredReading]) -> bool:
    ours, theirs = _computed_alike(ranking, items)
    if not same_rows(ours.figures, theirs.figures):
        return False
    first = first_step_difference(ours.figures, theirs.figures, ranking.confidence)
    chains = accepted_difference(ours.figures, theirs.figures, ranking.confidence)
    found = [(first, SEPARATION), *([] if chains is None else [(chains, CHANGE_SEPARATION)])]
    above = all(one.value is not None and one.value > 0 for one, _ in found)
    return above and any(one.low is not None and one.low > 0 and (one.value or 0.0) > least for one, least in found)


def _computed_alike(ranking: Ranking, items: Sequence[MeasuredReading]) -> tuple[MeasuredReading, MeasuredReading]:
    """The best states and others under the same computation where such a pair was measured."""
    own = [item for item in ranking.ranked if same_inputs(item, ranking.best)]
    pairs = [(a, b) for a in (ranking.best, *own) for b in items if a.facts.changes == b.facts.changes]
    return [*pairs, (ranking.best, items[0])][0]


def _left_behind(measured: Measured, best: MeasuredReading) -> Iterator[States]:
    """Sets that the search tried on some rows alone, surely below the best one's share: Wilson intervals apart."""
    share = best.figures.first_step
    for facts in measured.result.readings:
        states = facts.states
        if facts.stage in ("full", "factor") or states is None or facts.token_offset != SERVED_OFFSET:
            continue
        if facts.changes != best.facts.changes or not facts.positions or states == best.facts.states:
            continue
        if _is_below(facts, share.low):
            yield states


def _is_below(facts: ReadingFacts, low: float | None) -> bool:
    found = wilson(facts.first_step_hits, facts.positions)
    return found.high is not None and low is not None and found.high < low - SEPARATION
