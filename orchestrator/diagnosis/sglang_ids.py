"""How to spell, in a drafter's config.json, the target states that SGLang shall feed it: the inverse of SGLang's rule.

States are HF `hidden_states` indices (0 = embedding output, i = output of layer i-1). The forward rule stands in the
payload's `declared.py`; both are tested against one table. Source: SGLang 0.5.23, `set_eagle3_layers_to_capture` of
each model; the rows of the DeepSeek family were seen on a running server. Versions are the oldest and newest looked at.
"""

from dataclasses import dataclass, replace

from remote_payload.schema.sglang import DEEPSEEK_CLASSES, PLAIN_CLASSES

_SINCE = {
    "ApertusForCausalLM": "0.5.3",
    "BailingMoeForCausalLM": "0.5.10",
    "BailingMoeV2ForCausalLM": "0.5.10",
    "Gemma3ForCausalLM": "0.5.12",
    "Gemma3ForConditionalGeneration": "0.5.12",
    "Glm4MoeForCausalLM": "0.5.6",
    "Glm4MoeLiteForCausalLM": "0.5.8",
    "KimiK25ForConditionalGeneration": "0.5.10",
    "LongcatFlashForCausalLM": "0.5.6",
    "MiniMaxM2ForCausalLM": "0.5.6",
    "Qwen2ForCausalLM": "0.5.3",
    "Qwen2MoeForCausalLM": "0.5.3",
    "Qwen2_5_VLForConditionalGeneration": "0.5.3",
    "Qwen3NextForCausalLM": "0.5.10",
    "Qwen3VLForConditionalGeneration": "0.5.12",
    "Qwen3VLMoeForConditionalGeneration": "0.5.12",
}
"""The oldest version looked at in which the class can be told at all; looked at: 0.4.10, 0.5.3, .6, .8, .10, .12, .15,
.18 and .23."""
_EMBEDDING_SINCE = {
    "ApertusForCausalLM": "0.5.23",
    "Glm4MoeForCausalLM": "0.5.23",
    "Llama4ForConditionalGeneration": "0.5.23",
    "LlamaForCausalLM": "0.5.22",
    "MiniMaxM2ForCausalLM": "0.5.12",
}
"""The oldest in which it takes the embedding output as well; earlier ones end at the warm-up."""


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """Ids that make SGLang capture the wanted states, or why none do."""

    ids: tuple[int, ...] | None
    rule: str
    valid_for: str
    block_order: tuple[int, ...] | None = None
    """Set where the drafter's fc must be re-ordered first: the block of columns to put at each place."""
    problem: str | None = None
    needs: str | None = None
    """Which change of the installed SGLang these ids need first; None = none, or only the table was looked at."""
    installed: bool = False
    """Whether the source that is installed says so, not this table alone."""

    @property
    def basis(self) -> str:
        """What says so: the source that is installed, or a rule by its name and the versions it was seen in."""
        return f"by {self.valid_for}" if self.installed else f"by the rule `{self.rule}`, {self.valid_for}"


def spell(states: tuple[int, ...], target_class: str | None, target_layers: int | None) -> Spelling:
    """Ids for `states`, given in the order of the drafter's fc; `target_layers` is the target's number of layers.

    SGLang joins captured states in layer order whatever the list says; another order needs the fc's blocks re-ordered.
    """
    ordered = tuple(sorted(states))
    if target_class in PLAIN_CLASSES:
        spelling = _plain(ordered, target_class or "", target_layers)
    elif target_class in DEEPSEEK_CLASSES:
        spelling = _deepseek(ordered, target_class or "", target_layers)
    elif target_class == "GptOssForCausalLM":
        spelling = _gpt_oss(ordered, target_layers)
    else:
        problem = f"no rule is known for the target's class: {target_class or 'unnamed'}"
        return Spelling(ids=None, rule="unknown", valid_for="no version", problem=problem)
    return replace(spelling, block_order=None if spelling.ids is None else block_order(states))


def block_order(states: tuple[int, ...]) -> tuple[int, ...] | None:
    """The block of fc's columns to put at each place; None where they stand in layer order."""
    ordered = tuple(sorted(states))
    return None if ordered == states else tuple(states.index(state) for state in ordered)


def _plain(states: tuple[int, ...], target_class: str, layers: int | None) -> Spelling:
    rule = f"id + 1 ({target_class})"
    if beyond := _beyond_last_capture(states, layers):
        return Spelling(ids=None, rule=rule, valid_for="no version", problem=beyond)
    since = _SINCE.get(target_class, "0.4.10")
    if states[0] == 0:
        since = _EMBEDDING_SINCE.get(target_class, since)
    earlier = " (earlier ones fail on id -1)" if states[0] == 0 and target_class in _EMBEDDING_SINCE else ""
    ids = tuple(state - 1 for state in states)
    return Spelling(ids=ids, rule=rule, valid_for=f"SGLang {since} to 0.5.23{earlier}")


def _deepseek(states: tuple[int, ...], target_class: str, layers: int | None) -> Spelling:
    """Ids are used as they are unless the first one listed is 1; so a list that needs 1 must not begin with it."""
    rule = "id as it is, while the first id is not 1 (deepseek_v2)"
    if beyond := _beyond_last_capture(states, layers):
        return Spelling(ids=None, rule=rule, valid_for="no version", problem=beyond)
    if states[0] == 2:  # [1, ...] is shifted by every version, so it means the same on all of them
        ids = tuple(state - 1 for state in states)
        valid = f"SGLang {_SINCE.get(target_class, '0.5.5')} to 0.5.23"
        return Spelling(ids=ids, rule="id + 1, as the first id is 1 (deepseek_v2)", valid_for=valid)
    if states == (1,):
        return Spelling(ids=None, rule=rule, valid_for="no version", problem="id 1 alone is always shifted to state 2")
    lite = target_class == "Glm4MoeLiteForCausalLM"
    since = ("0.5.23" if lite else "0.5.15") if states[0] == 0 else "0.5.15" if lite else "0.5.13"
    ids = (*states[1:2], states[0], *states[2:]) if states[0] == 1 else states
    return Spelling(ids=ids, rule=rule, valid_for=f"SGLang {since} to 0.5.23")


def _gpt_oss(states: tuple[int, ...], layers: int | None) -> Spelling:
    valid = f"SGLang {'0.5.21' if states[0] == 0 or states[-1] == layers else '0.5.3'} to 0.5.23"
    if layers is not None and states[-1] > layers:
        problem = f"state {states[-1]} does not exist in a target of {layers} layers"
        return Spelling(ids=None, rule="id + 1 (gpt_oss)", valid_for="no version", problem=problem)
    if states[-1] == layers:
        return Spelling(ids=states, rule="id as it is, as the largest id is n (gpt_oss)", valid_for=valid)
    return Spelling(ids=tuple(state - 1 for state in states), rule="id + 1 (gpt_oss)", valid_for=valid)


def _beyond_last_capture(states: tuple[int, ...], layers: int | None) -> str | None:
    """States are captured as a layer begins, so the last layer's output is never seen."""
    if layers is None or states[-1] < layers:
        return None
    return f"SGLang captures states 0..{layers - 1} of this {layers}-layer target; it cannot capture state {states[-1]}"
