"""What a verdict on the wiring is called and what to do about it, in words.

No change of config or weights is advised on a reading that is not clearly the right one: advice that is wrong costs
more than another capture.
"""

import json
from collections.abc import Sequence

from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.mis_wired import (
    labels_first,
    not_captured_lines,
    now_fed,
    numbering_lines,
    state_names,
    states_text,
    what_is_fed,
)
from orchestrator.diagnosis.remedies import remedy
from orchestrator.diagnosis.sglang_config import eagle_block, whole_config
from orchestrator.diagnosis.sglang_ids import Spelling
from orchestrator.diagnosis.verdict import (
    SEPARATION,
    SERVED_OFFSET,
    Effect,
    MeasuredReading,
    Verdict,
    how_little,
    is_poor,
)
from remote_payload.schema import StandaloneResult

EXPORT = (
    "look at the export: norms swapped (input_layernorm, hidden_norm), k_proj and v_proj or gate_proj and up_proj "
    "exchanged, the two halves of their inputs, lm_head's rows against d2t, rope_theta"
)
"""Faults that no reading mends and that read poorly alike."""


def headline(
    verdict: Verdict,
    result: StandaloneResult,
    best: MeasuredReading,
    difference: Estimate | None,
    *,
    alike: bool,
    misread: Sequence[Effect] = (),
) -> str:
    """The verdict in a sentence; `difference` is best minus what it was compared with, `alike` as `fix` takes it."""
    text = _headline(verdict, result, best, difference, alike=alike)
    if not misread or verdict in ("mis_read", "nothing_fits"):
        return f"mis-read: {flags_text(misread)}" if verdict == "mis_read" else text
    return f"{text}; and mis-read: {flags_text(misread)}"


def flags_text(misread: Sequence[Effect]) -> str:
    """e.g. `serving would compute feedback=raw, the drafter reads best with feedback=normed`."""
    choices = [one for effect in misread for one in zip(effect.keys, effect.served, effect.best, strict=True)]
    plain = [one for one in choices if one[2] != "mended"]
    texts = []
    if len(plain) < len(choices):
        texts.append("serving would map drafts by d2t, the drafter reads best by the map that lm_head's own rows tell")
    if plain:
        served, best = (", ".join(f"{one[0]}={one[side]}" for one in plain) for side in (1, 2))
        texts.append(f"serving would compute {served}, the drafter reads best with {best}")
    return "; ".join(texts)


def reading_fix(misread: Sequence[Effect], result: StandaloneResult) -> tuple[str, ...]:
    """What mends each choice of the computation that is served otherwise than it was trained."""
    return tuple(
        line
        for effect in misread
        for key, best, served in zip(effect.keys, effect.best, effect.served, strict=True)
        for line in remedy(key, best, served, result.checkpoint)
    )


def _headline(
    verdict: Verdict, result: StandaloneResult, best: MeasuredReading, difference: Estimate | None, *, alike: bool
) -> str:
    if verdict == "cannot_separate":
        return _no_separation(difference)
    close = difference is not None and difference.low is not None and difference.low <= SEPARATION
    text = {
        "sound": "wiring is sound: serving feeds the drafter the states it reads best"
        + (" (the runner-up may read as well)" if close else "")
        + (f" ({result.declared.valid_for})" if ";" in result.declared.valid_for else ""),
        "poor_fit": f"no reading fits well: the best one has {_percent(best)} at step 1, "
        + (
            "and the order of the states hardly matters; the drafter may have been trained on a state that was not "
            "captured, or its export is broken"
            if alike
            else "too little to call anything sound; rows or export may be at fault, or the drafter is a weak one"
        ),
        "nothing_fits": f"no reading fits: {how_little(best)}",
        "mis_read": "mis-read",
        "mis_wired": f"mis-wired: {what_is_fed(result, best)}",
        "unlabelled": "wiring unknown: the captured states carry no labels, so only the best reading can be named",
        "declared_not_captured": (
            f"wiring unknown: serving would feed {states_text(result.declared.captured)}, "
            f"the rows hold only {states_text(result.rows.states)}"
        ),
        "cannot_serve": f"cannot be served as configured: {result.declared.problem}",
        "unknown_rule": f"wiring unknown: {result.declared.problem or 'what serving would feed cannot be told'}",
    }[verdict]
    doubtful = is_poor(best) and verdict in ("mis_wired", "cannot_serve", "unknown_rule")
    return f"{text}; nor does any reading fit well ({_percent(best)} at step 1)" if doubtful else text


def fix(
    verdict: Verdict,
    measured: Measured,
    best: MeasuredReading,
    spelling: Spelling | None,
    difference: Estimate | None,
    *,
    alike: bool,
) -> tuple[str, ...]:
    """What to do, a line each. `best` is the reading to serve; `alike`: other orders of its states read as well."""
    result = measured.result
    if verdict in ("sound", "mis_read"):
        return ()
    if verdict == "unlabelled" or (verdict == "cannot_serve" and result.rows.states is None):
        return ("name the captured states with `--states` (HF hidden_states indices, `embed` for 0) and run again",)
    if verdict == "nothing_fits":
        return ("look at the warnings, at how the rows were captured and at the drafter's training before its wiring",)
    if verdict == "cannot_separate":
        known = "" if difference is not None and _looks_worse(difference) else "; nothing is known to be wrong by now"
        return (f"capture more rows and run again{known}",)
    if verdict == "declared_not_captured":
        return not_captured_lines(result)
    if is_poor(best):
        return _other_states(result) if alike and verdict != "mis_wired" else _suspects(best)
    if best.facts.token_offset != SERVED_OFFSET:
        return (
            f"the best reading pairs state t with token t{best.facts.token_offset:+d}; every server pairs t with t+1: "
            "no config mends this, the drafter must be trained again",
        )
    return (*labels_first(result, best), *_config_lines(measured, best, spelling, difference))


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


def candidates_fix(measured: Measured, candidates: Sequence[MeasuredReading]) -> tuple[str, ...]:
    """Where the served states are not the right ones, but these rows do not tell which are."""
    named = "; ".join(_candidate(measured, item) for item in candidates)
    return (
        f"capture more rows and run again before changing the config: these do not tell apart {named}",
        "or look up which states it was trained on: only the training's own config says so for certain",
    )


def _candidate(measured: Measured, item: MeasuredReading) -> str:
    states, ids = item.facts.states or (), None
    if states and item.facts.token_offset == SERVED_OFFSET:
        ids = measured.spelling(states).ids
    return (
        f"{states_text(item.facts.states)} ({_percent(item)} at step 1{f', would be ids {list(ids)}' if ids else ''})"
    )


def _suspects(best: MeasuredReading) -> tuple[str, ...]:
    """What else reads poorly and shows in no other reading; from the cheapest to look at on."""
    states = f"{states_text(best.facts.states)} read best" if best.facts.states is not None else "one reading is ahead"
    return (
        f"{states}, but change no config on {_percent(best)} at step 1: look at the rows first (loss mask, template, "
        "greedy or sampled, `target` the very model that was captured)",
        f"then {EXPORT}",
        "if the training's own evaluation shows as little, the drafter is a weak one: train it longer or on more data",
    )


def _other_states(result: StandaloneResult) -> tuple[str, ...]:
    """A drafter that was trained on these states reads each at its place, so another order would cost it something."""
    held = result.rows.states or ()
    which = "other states" if 0 in held else "other states too, first of all `embed` (the embedding output)"
    return (
        f"capture rows that hold {which} and run again; more rows of {states_text(held)} cannot help",
        f"if it is known to be trained on just these states, {EXPORT}",
        "change no config on this evidence; where the export is right too, the drafter is a weak one: look at its "
        "training",
    )


def _config_lines(
    measured: Measured, best: MeasuredReading, spelling: Spelling | None, difference: Estimate | None
) -> tuple[str, ...]:
    result, wanted = measured.result, f"states {state_names(best.facts.states)}"
    if spelling is None or spelling.ids is None:
        reason = spelling.problem if spelling else "its states are not labelled"
        return (f"the best reading needs {wanted}, and no ids are known that serve it: {reason}",)
    lines = [] if spelling.needs is None else [f"first: {spelling.needs}"]
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
    whole = whole_config(result.checkpoint, spelling.ids)
    block = json.dumps(eagle_block(spelling.ids))
    lines.append(whole or f'set in the drafter\'s config.json: "eagle_config": {block}')
    lines.append(f"this feeds {wanted} {spelling.basis}")
    now = result.declared.config_ids
    lines.append(
        f"now: {'ids ' + str(list(now)) if now is not None else 'no ids, so the defaults hold'}, {now_fed(measured)}"
    )
    lines += numbering_lines(result, best)
    if result.declared.ignored_top_level_ids is not None and whole is None:
        lines.append("ids at the top level of config.json are never read by SGLang; they belong into `eagle_config`")
    return tuple(lines)


def _is_certain(best: MeasuredReading, difference: Estimate | None) -> bool:
    """Whether weights may be changed for this reading: it reads well, and surely better than what it was held to."""
    ahead = difference is not None and difference.low is not None and difference.low > SEPARATION
    return ahead and not is_poor(best)


def _percent(item: MeasuredReading) -> str:
    return f"{100 * (item.figures.first_step.value or 0.0):.1f} %"
