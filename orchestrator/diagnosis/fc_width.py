"""How many of the target's states a drafter's fc takes, by its weights, and what SGLang makes of another number.

SGLang makes fc for `target_hidden_size`, else `hidden_size`, times the number of states: `num_aux_hidden_states`, else
the ids of `eagle_config`, else three; releases before 0.5.12 always three. Source: `llama_eagle3.py` of its releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.diagnosis.config_text import count_of, object_of, text_part
from remote_payload.schema.capture_rule import WiringFacts

IDS = "eagle_aux_hidden_state_layer_ids"
LLAMA = "LlamaForCausalLMEagle3"
"""The drafter's class that this is known of."""
DEFAULT = 3


@dataclass(frozen=True, kw_only=True)
class FcWidth:
    """Whether fc takes what is captured."""

    takes: int | None
    """How many of this target's states; None = not known, or no whole number."""
    fits: bool | None
    """None = not known."""
    summary: str
    """In a sentence, with what happens where it does not fit."""
    starts: bool = False
    """Whether the server comes up all the same where it does not fit: it is no proof against it that one runs."""


def fc_width(facts: WiringFacts, captured: tuple[int, ...] | None) -> FcWidth:
    """Beside the states that are captured; None = they are not known."""
    draft, target = object_of(facts.draft_config), object_of(facts.target_config)
    one = count_of(text_part(target), "hidden_size") or count_of(target, "hidden_size")
    if facts.fc_shape is None or one is None:
        lack = "fc.weight was not found in its safetensors files" if one else "the target's config names no hidden_size"
        return FcWidth(takes=None, fits=None, summary=f"whether the drafter takes so many states is not known: {lack}")
    width = facts.fc_shape[1]
    takes, rest = divmod(width, one)
    if rest or not takes:
        why = f"fc.weight takes {width} numbers, no multiple of the {one} of this target's states"
        return FcWidth(takes=None, fits=False, summary=f"{why}: it is another target's drafter, and the server fails")
    told = f"fc.weight takes {width} numbers, {_states(takes)} of {one}"
    made = _made(facts, draft)
    if made is not None and made[0] != width:
        text_made = f"{told}, but SGLang makes its fc for {made[0]}, {made[1]}"
        return FcWidth(
            takes=takes, fits=False, summary=f"{text_made}: the server ends as it loads it (`Attempted to load weight`)"
        )
    if captured is None:
        return FcWidth(takes=takes, fits=None, summary=f"{told}; how many are captured is not known")
    if len(captured) != takes:
        ends = f"{told}, but {len(captured)} would be captured: the server ends at its warm-up, the shapes do not fit"
        return FcWidth(takes=takes, fits=False, summary=ends)
    if takes == 1 and count_of(draft, "hidden_size") == one:
        skipped = f"{told}, as wide as the drafter itself: SGLang takes it for the drafter's own state and skips fc"
        return FcWidth(takes=takes, fits=False, summary=skipped, starts=True)
    return FcWidth(takes=takes, fits=True, summary=f"{told}: as many as are captured")


def takes_of(facts: WiringFacts) -> int | None:
    """How many of this target's states the drafter's fc takes; None = not known, or no whole number."""
    return fc_width(facts, None).takes


def _made(facts: WiringFacts, draft: Mapping[str, Any]) -> tuple[int, str] | None:
    """Columns of the fc that SGLang makes, and by what; None = not known."""
    classes = draft.get("architectures")
    one = count_of(draft, "target_hidden_size") or count_of(draft, "hidden_size")
    if facts.rule.counts_states is None or one is None or classes != [LLAMA]:
        return None
    if not facts.rule.counts_states:
        return DEFAULT * one, f"{_states(DEFAULT)} of {one}, as this version always does"
    named = count_of(draft, "num_aux_hidden_states")
    nested = draft.get("eagle_config")
    ids = nested.get(IDS) if isinstance(nested, dict) else None
    if named is not None:
        return named * one, f"{_states(named)} of {one} by `num_aux_hidden_states`"
    if isinstance(ids, list) and ids:
        return len(ids) * one, f"{_states(len(ids))} of {one} by the ids of `eagle_config`"
    return DEFAULT * one, f"{_states(DEFAULT)} of {one}, as the config names none"


def _states(number: int) -> str:
    return "1 state" if number == 1 else f"{number} states"
