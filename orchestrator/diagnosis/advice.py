"""What a verdict on the wiring is called and what to do about it, in words.

No change of config or weights is advised on a reading that is not clearly the right one: advice that is wrong costs
more than another capture.
"""

import json
from collections.abc import Sequence

from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.remedies import remedy
from orchestrator.diagnosis.sglang_ids import Spelling
from orchestrator.diagnosis.verdict import (
    GOOD_FIT,
    SEPARATION,
    SERVED_OFFSET,
    WEAK_FIT,
    Effect,
    MeasuredReading,
    Verdict,
)
from remote_payload.schema import StandaloneResult


def headline(
    verdict: Verdict,
    result: StandaloneResult,
    best: MeasuredReading,
    difference: Estimate | None,
    *,
    poor: bool,
    misread: Sequence[Effect] = (),
) -> str:
    """The verdict in a sentence; `difference` is best minus what it was compared with, `poor` as `fix` takes it."""
    text = _headline(verdict, result, best, difference, poor=poor)
    if not misread or verdict in ("mis_read", "nothing_fits"):
        return f"mis-read: {flags_text(misread)}" if verdict == "mis_read" else text
    return f"{text}; and mis-read: {flags_text(misread)}"


def flags_text(misread: Sequence[Effect]) -> str:
    """e.g. `serving would compute feedback=raw, the drafter reads best with feedback=normed`."""
    served, best = (
        ", ".join(
            f"{key}={value}"
            for effect in misread
            for key, value in zip(effect.keys, getattr(effect, side), strict=True)
        )
        for side in ("served", "best")
    )
    return f"serving would compute {served}, the drafter reads best with {best}"


def reading_fix(misread: Sequence[Effect], result: StandaloneResult) -> tuple[str, ...]:
    """What mends each choice of the computation that is served otherwise than it was trained."""
    return tuple(
        line
        for effect in misread
        for key, best, served in zip(effect.keys, effect.best, effect.served, strict=True)
        for line in remedy(key, best, served, result.checkpoint)
    )


def _headline(
    verdict: Verdict, result: StandaloneResult, best: MeasuredReading, difference: Estimate | None, *, poor: bool
) -> str:
    if verdict == "cannot_separate":
        return _no_separation(difference)
    close = difference is not None and difference.low is not None and difference.low <= SEPARATION
    text = {
        "sound": "wiring is sound: serving feeds the drafter the states it reads best"
        + (" (the runner-up may read as well)" if close else "")
        + (f", but it has only {_percent(best)} at step 1" if _is_weak(best) else ""),
        "poor_fit": (
            f"no reading fits well: the best one has {_percent(best)} at step 1, and the order of the states hardly "
            "matters; the drafter may have been trained on a state that was not captured"
        ),
        "nothing_fits": "no reading fits: the drafter hardly predicts the target, whatever it is fed",
        "mis_read": "mis-read",
        "mis_wired": "mis-wired: serving would feed the drafter other states than it reads best",
        "unlabelled": "wiring unknown: the captured states carry no labels, so only the best reading can be named",
        "declared_not_captured": (
            f"wiring unknown: serving would feed {states_text(result.declared.captured)}, "
            f"the rows hold only {states_text(result.rows.states)}"
        ),
        "cannot_serve": f"cannot be served as configured: {result.declared.problem}",
        "unknown_rule": f"wiring unknown: {result.declared.problem or 'what serving would feed cannot be told'}",
    }[verdict]
    return f"{text}; nor does any reading fit well" if poor and verdict in ("cannot_serve", "unknown_rule") else text


def fix(
    verdict: Verdict,
    result: StandaloneResult,
    best: MeasuredReading,
    spelling: Spelling | None,
    difference: Estimate | None,
    *,
    poor: bool,
) -> tuple[str, ...]:
    """What to do, a line each. `best` is the reading to serve; `poor`: its accuracy is low and order hardly matters."""
    if verdict in ("sound", "mis_read"):
        return ()
    if verdict == "unlabelled":
        return ("name the captured states with `--states` (HF hidden_states indices, `embed` for 0) and run again",)
    if verdict == "nothing_fits":
        return ("look at the warnings, at how the rows were captured and at the drafter's training before its wiring",)
    if verdict == "cannot_separate":
        known = "" if difference is not None and _looks_worse(difference) else "; nothing is known to be wrong by now"
        return (f"capture more rows and run again{known}",)
    if verdict == "declared_not_captured":
        return (
            f"capture rows that also hold {states_text(_missing(result))} and run again: only then the two compare",
        )
    if verdict == "poor_fit" or poor:
        return _other_states(result)
    if best.facts.token_offset != SERVED_OFFSET:
        return (
            f"the best reading pairs state t with token t{best.facts.token_offset:+d}; every server pairs t with t+1: "
            "no config mends this, the drafter must be trained again",
        )
    return _config_lines(result, best, spelling, difference)


def state_names(states: tuple[int, ...] | None) -> str:
    """HF hidden_states indices as people write them, e.g. `embed,2,4`."""
    return "unlabelled" if states is None else ",".join("embed" if state == 0 else str(state) for state in states)


def states_text(states: tuple[int, ...] | None) -> str:
    """The same with the noun, e.g. `states embed,2,4`, `the state embed`."""
    return f"the state {state_names(states)}" if states and len(states) == 1 else f"states {state_names(states)}"


def _no_separation(difference: Estimate | None) -> str:
    if difference is None:
        return "cannot tell: the declared reading has no other reading on the same rows to be compared with"
    rows = "1 row is" if difference.rows == 1 else f"{difference.rows} rows are"
    if difference.low is None:
        return f"cannot tell: {rows} too few for an interval"
    if _looks_worse(difference):
        return (
            f"cannot tell yet: the declared reading looks worse than the best, but {difference.rows} rows may mislead"
        )
    return "cannot separate: another reading is ahead of the declared one, by chance or by next to nothing"


def _looks_worse(difference: Estimate) -> bool:
    return difference.value is not None and difference.value > 5 * SEPARATION


def _other_states(result: StandaloneResult) -> tuple[str, ...]:
    """A drafter that was trained on these states reads each at its place, so another order would cost it something."""
    held = result.rows.states or ()
    which = "other states" if 0 in held else "other states too, first of all `embed` (the embedding output)"
    return (
        f"capture rows that hold {which} and run again; more rows of {states_text(held)} cannot help",
        "change neither config nor weights on this evidence; if the drafter is known to be trained on just these "
        "states, it is a weak one: look at its training",
    )


def _config_lines(
    result: StandaloneResult, best: MeasuredReading, spelling: Spelling | None, difference: Estimate | None
) -> tuple[str, ...]:
    wanted = f"states {state_names(best.facts.states)}"
    if spelling is None or spelling.ids is None:
        reason = spelling.problem if spelling else "its states are not labelled"
        return (f"the best reading needs {wanted}, and no ids are known that serve it: {reason}",)
    lines = []
    if spelling.block_order is not None:
        if not _is_certain(best, difference):
            return (
                f"the best reading takes {wanted}, an order that no server feeds, and is not clearly the right one: "
                "capture more rows or other states and run again before changing any weight",
            )
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


def _is_certain(best: MeasuredReading, difference: Estimate | None) -> bool:
    """Whether weights may be changed for this reading: it reads well, and surely better than what it was held to."""
    ahead = difference is not None and difference.low is not None and difference.low > SEPARATION
    return ahead and (best.figures.first_step.value or 0.0) >= GOOD_FIT


def _is_weak(item: MeasuredReading) -> bool:
    return (item.figures.first_step.value or 0.0) < WEAK_FIT


def _percent(item: MeasuredReading) -> str:
    return f"{100 * (item.figures.first_step.value or 0.0):.1f} %"


def _now(result: StandaloneResult) -> str:
    captured = result.declared.captured
    if captured is None:
        return "what they feed is unknown"
    return f"feeding states {state_names(captured)} by the rule `{result.declared.rule}`, {result.declared.valid_for}"


def _missing(result: StandaloneResult) -> tuple[int, ...]:
    return tuple(state for state in result.declared.captured or () if state not in (result.rows.states or ()))
