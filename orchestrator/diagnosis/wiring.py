"""Is the drafter fed what it was trained on? The declared reading of its inputs against the best one, and the fix.

The best reading is picked on the data it is then judged by, so the interval that decides is widened (Bonferroni) for
the readings that were measured on all rows beside the declared one; those that the search left behind are no rivals.
Simulated with 26 equally good readings on 5 to 24 rows, a sound drafter was called mis-wired in 3 to 5.5 % of 1500
tests. Not covered: states that were not captured, drafters that mix tokens otherwise.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.figures import ReadingFigures, first_step_difference, reading_figures, same_rows, walk_ratio
from orchestrator.compare.stats import CONFIDENCE, Estimate
from orchestrator.diagnosis.sglang_ids import Spelling, spell
from orchestrator.errors import InvalidRunError
from remote_payload.schema import ReadingFacts, ReadingHits, RowFacts, StandaloneResult

Verdict = Literal[
    "sound",
    "mis_wired",
    "cannot_separate",
    "nothing_fits",
    "unlabelled",
    "declared_not_captured",
    "cannot_serve",
    "unknown_rule",
]
SERVED_OFFSET = 1
"""Every server pairs the state of token t with the embedding of token t+1."""

SEPARATION = 0.01
"""Step-1 accuracy by which the best reading must be ahead at least; less is no wiring fault, however many rows."""

LEAST_FIT = 0.1
"""Step-1 accuracy that the best reading must have; below it the drafter reads nothing, whatever it is fed."""


@dataclass(frozen=True, kw_only=True)
class MeasuredReading:
    """A reading and its figures over all rows."""

    facts: ReadingFacts
    figures: ReadingFigures


@dataclass(frozen=True, kw_only=True)
class WiringVerdict:
    """What the test says about the wiring. `difference` and `ratio` are best minus / over `against`."""

    verdict: Verdict
    best: MeasuredReading
    declared: MeasuredReading | None
    runner_up: MeasuredReading | None
    against: Literal["declared", "runner-up"] | None
    """What the best reading was compared with; None where there is nothing to compare."""
    difference: Estimate | None
    """Step-1 accuracy, paired by row."""
    ratio: Estimate | None
    """Accept length of the serving walk, relative difference, paired by row."""
    readings_tried: int
    spelling: Spelling | None
    """Config ids that would feed the best reading; None where its states are unknown or nothing needs mending."""
    headline: str
    fix: tuple[str, ...]
    """What to do, a line each; empty where there is nothing to mend."""


def judge_wiring(result: StandaloneResult, rows: Sequence[RowFacts], hits: Sequence[ReadingHits]) -> WiringVerdict:
    """Judge a standalone test. Raises InvalidRunError where no reading was measured on all rows."""
    measured = [
        MeasuredReading(facts=facts, figures=reading_figures(facts.name, rows, hits))
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
    verdict = _verdict(result, best is declared, declared is not None, difference)
    if (best.figures.first_step.value or 0.0) < LEAST_FIT:
        verdict = "nothing_fits"
    spelling = None
    if verdict not in ("sound", "nothing_fits", "unlabelled") and best.facts.states is not None:
        spelling = spell(best.facts.states, result.declared.target_class, result.declared.target_layers)
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
        headline=_headline(verdict, result, difference),
        fix=_fix(verdict, result, best, spelling, difference),
    )


def state_names(states: tuple[int, ...] | None) -> str:
    """HF hidden_states indices as people write them, e.g. `embed,2,4`."""
    return "unlabelled" if states is None else ",".join("embed" if state == 0 else str(state) for state in states)


def _is_declared(facts: ReadingFacts, result: StandaloneResult) -> bool:
    return facts.slots == result.declared.slots and facts.token_offset == SERVED_OFFSET


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


def _headline(verdict: Verdict, result: StandaloneResult, difference: Estimate | None) -> str:
    if verdict == "cannot_separate":
        return _no_separation(difference)
    close = difference is not None and difference.low is not None and difference.low <= SEPARATION
    return {
        "sound": "wiring is sound: serving feeds the drafter the states it reads best"
        + (" (the runner-up may read as well)" if close else ""),
        "nothing_fits": "no reading fits: the drafter hardly predicts the target, whatever it is fed",
        "mis_wired": "mis-wired: serving would feed the drafter other states than it reads best",
        "unlabelled": "wiring unknown: the captured states carry no labels, so only the best reading can be named",
        "declared_not_captured": (
            f"wiring unknown: serving would feed states {state_names(result.declared.captured)}, "
            f"the rows hold only states {state_names(result.rows.states)}"
        ),
        "cannot_serve": f"cannot be served as configured: {result.declared.problem}",
        "unknown_rule": f"wiring unknown: {result.declared.problem or 'what serving would feed cannot be told'}",
    }[verdict]


def _no_separation(difference: Estimate | None) -> str:
    if difference is None:
        return "cannot tell: the declared reading has no other reading on the same rows to be compared with"
    if difference.low is None:
        return f"cannot tell: {difference.rows} rows are too few for an interval"
    if _looks_worse(difference):
        return (
            f"cannot tell yet: the declared reading looks worse than the best, but {difference.rows} rows may mislead"
        )
    return "cannot separate: another reading is ahead of the declared one, by chance or by next to nothing"


def _fix(
    verdict: Verdict,
    result: StandaloneResult,
    best: MeasuredReading,
    spelling: Spelling | None,
    difference: Estimate | None,
) -> tuple[str, ...]:
    if verdict == "sound":
        return ()
    if verdict == "unlabelled":
        return ("name the captured states with `--states` (HF hidden_states indices, `embed` for 0) and run again",)
    if verdict == "nothing_fits":
        return ("look at the warnings, at how the rows were captured and at the drafter's training before its wiring",)
    if verdict == "cannot_separate":
        known = "" if difference is not None and _looks_worse(difference) else "; nothing is known to be wrong by now"
        return (f"capture more rows and run again{known}",)
    lines = []
    if verdict == "declared_not_captured":
        lines.append(
            f"capture rows that also hold states {state_names(_missing(result))} and run again, to compare the two"
        )
    if best.facts.token_offset != SERVED_OFFSET:
        lines.append(
            f"the best reading pairs state t with token t{best.facts.token_offset:+d}; every server pairs t with t+1: "
            "no config mends this, the drafter must be trained again"
        )
        return tuple(lines)
    return (*lines, *_config_lines(result, best, spelling))


def _looks_worse(difference: Estimate) -> bool:
    return difference.value is not None and difference.value > 5 * SEPARATION


def _config_lines(result: StandaloneResult, best: MeasuredReading, spelling: Spelling | None) -> tuple[str, ...]:
    wanted = f"states {state_names(best.facts.states)}"
    if spelling is None or spelling.ids is None:
        reason = spelling.problem if spelling else "its states are not labelled"
        return (f"the best reading needs {wanted}, and no ids are known that serve it: {reason}",)
    lines = []
    if spelling.block_order is not None:
        lines.append(
            "SGLang joins states in layer order: first re-order the column blocks of the drafter's fc.weight to "
            f"{list(spelling.block_order)} (block numbers as they are now)"
        )
    block = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": list(spelling.ids)}
    lines.append(f'set in the drafter\'s config.json: "eagle_config": {json.dumps(block)}')
    lines.append(f"this feeds {wanted} by the rule `{spelling.rule}`, {spelling.valid_for}")
    now = result.declared.config_ids
    lines.append(
        f"now: {'ids ' + str(list(now)) if now is not None else 'no ids, so the defaults hold'}, {_now(result)}"
    )
    if result.declared.ignored_top_level_ids is not None:
        lines.append("ids at the top level of config.json are never read by SGLang; they belong into `eagle_config`")
    return tuple(lines)


def _now(result: StandaloneResult) -> str:
    captured = result.declared.captured
    if captured is None:
        return "what they feed is unknown"
    return f"feeding states {state_names(captured)} by the rule `{result.declared.rule}`, {result.declared.valid_for}"


def _missing(result: StandaloneResult) -> tuple[int, ...]:
    return tuple(state for state in result.declared.captured or () if state not in (result.rows.states or ()))
