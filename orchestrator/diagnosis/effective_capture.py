"""Which of the target's states a SGLang feeds its drafter, by the source that is installed: judged, not run.

The payload cuts the deciding pieces out of the source (`CaptureRule`). Here they are followed line by line with this
drafter's ids and this target's layers. A line of a shape that is not known ends it: unknown is an answer, a guess is
none. States are HF `hidden_states` indices: 0 = embedding output, i = output of layer i-1 (0-based), which SGLang meets
as layer i begins.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.diagnosis.capture_loop import Loop, loop_of
from orchestrator.diagnosis.capture_setter import ServerEndsError, Told, told_by
from orchestrator.diagnosis.source_terms import UnknownShapeError
from remote_payload.schema.capture_rule import CaptureRule

IDS = "eagle_aux_hidden_state_layer_ids"
USES = "use_aux_hidden_state"
CONFIG = "eagle_config"


@dataclass(frozen=True, kw_only=True)
class Effective:
    """What will be captured, and how that was found."""

    states: tuple[int, ...] | None
    """In the order in which they are joined; None = not known, or the server does not come so far."""
    version: str | None
    reasoning: tuple[str, ...]
    """A sentence a step, each resting on the one before."""
    problem: str | None = None
    """Why the states are not known, or what goes wrong with them."""
    fails: bool = False
    """Whether the server ends at its start or its warm-up, by the source."""


def resolve(
    rule: CaptureRule | None, draft_config: str | None, target_config: str | None, *, pipeline_stages: int = 1
) -> Effective:
    """Follow the source with these two config.json texts. Never raises for what they hold."""
    if rule is None or rule.path is None:
        return Effective(states=None, version=None, reasoning=(), problem="no SGLang's source could be read")
    chain = [f"SGLang {rule.version or 'of unknown version'}, read at {rule.path}"]
    target, draft = _object(target_config), _object(draft_config)

    def ends(problem: str, *, fails: bool = False, states: tuple[int, ...] | None = None) -> Effective:
        return Effective(states=states, version=rule.version, reasoning=tuple(chain), problem=problem, fails=fails)

    layers = None if target is None else _layers(target)
    if (missing := _missing(rule, draft, layers)) is not None:
        return ends(missing)
    assert draft is not None
    assert layers is not None
    chain.append(f"the target is a {rule.target_class} of {layers} layers, in {rule.found}")
    if not rule.setters:
        return ends(f"{rule.target_class} cannot be told which layers to capture: EAGLE-3 is not served", fails=True)
    try:
        ids, how = _ids(rule, draft)
        chain += how
        if draft_uses_final_alone(rule, draft):
            return ends(f"`{USES}` is false: the drafter is fed the target's final state alone")
        told = told_by(rule.setters, ids, layers)
        chain += told.reasoning
        if told.guarded and pipeline_stages > 1:
            return ends(f"of {pipeline_stages} pipeline stages only the last is told to capture; its layers vary")
        loop = loop_of(rule)
    except UnknownShapeError as unknown:
        return ends(str(unknown))
    except ServerEndsError as ended:
        return ends(str(ended), fails=True)
    chain += loop.reasoning
    return _captured(rule, told, loop, layers, chain)


def _missing(rule: CaptureRule, draft: object, layers: int | None) -> str | None:
    """What there is to read is not there."""
    if draft is None:
        return "the drafter's config.json could not be read"
    if rule.target_class is None or layers is None:
        return "the target's config.json does not say its class and its number of layers, or could not be read"
    return f"this SGLang has no model class {rule.target_class}" if rule.found is None else None


def _captured(rule: CaptureRule, told: Told, loop: Loop, layers: int, chain: list[str]) -> Effective:
    """What the loop meets of what it was told to capture."""
    wanted = told.layers
    last = layers if loop.meets_end else layers - 1
    met = tuple(sorted({layer for layer in wanted if 0 <= layer <= last}))
    if 0 in met and loop.embedding is not True:
        why = (
            "before layer 0 there is no residual to add: the server fails at its warm-up"
            if loop.embedding is False
            else "whether this source can take the state before layer 0, the embedding output, is not told by it"
        )
        return Effective(
            states=None, version=rule.version, reasoning=tuple(chain), problem=why, fails=loop.embedding is False
        )
    missed = [layer for layer in wanted if layer not in met]
    doubled = len(wanted) - len(missed) - len(met)
    problem = None
    if missed:
        problem = f"{', '.join(map(str, missed))} of {list(wanted)} is never met (0 to {last} are)"
    elif doubled:
        problem = f"{list(wanted)} names a layer twice, which is captured once"
    if problem is not None:
        problem += f": {len(met)} states instead of {len(wanted)}, the server fails at its warm-up"
    if list(met) != [layer for layer in wanted if layer in met]:
        chain.append(f"they are joined in the order of the layers, whatever the list says: {list(met)}")
    chain.append(f"so the drafter is fed {names(met)}")
    return Effective(
        states=met, version=rule.version, reasoning=tuple(chain), problem=problem, fails=problem is not None
    )


def names(states: tuple[int, ...]) -> str:
    """`[embed, layer 3, layer 31]`: a state by the layer that it enters, the embedding output by its name."""
    return f"[{', '.join('embed' if state == 0 else f'layer {state}' for state in states)}]"


def draft_uses_final_alone(rule: CaptureRule, draft: Mapping[str, Any]) -> bool:
    """Whether the reader looks for `use_aux_hidden_state`, and the drafter's config says no."""
    nested = draft.get(CONFIG)
    reads = any(USES in piece.text for piece in rule.reader)
    return reads and isinstance(nested, dict) and not nested.get(USES, True)


def _ids(rule: CaptureRule, draft: Mapping[str, Any]) -> tuple[list[int] | None, list[str]]:
    """The ids as the setter gets them; None = its defaults. Raises UnknownShapeError."""
    how = [f"`{IDS}` at the top level of the drafter's config.json is not read"] if IDS in draft else []
    if not rule.reader:
        if "layer_ids" in rule.setters[0].text.split("\n", 1)[0]:
            raise UnknownShapeError("where the drafter's ids are read was not found in this source")
        return None, [*how, "this version takes no ids from a config: the target's defaults hold"]
    piece = rule.reader[0]
    if len(rule.reader) > 1 or f"{CONFIG}['{IDS}']" not in piece.text or f"{IDS} = None" not in piece.text:
        raise UnknownShapeError(f"the way in which {piece.file} reads the drafter's ids is not known here")
    nested = draft.get(CONFIG)
    if not isinstance(nested, dict) or IDS not in nested:
        what = f"has no `{CONFIG}`" if not isinstance(nested, dict) else f"has no `{IDS}` in its `{CONFIG}`"
        return None, [*how, f"the drafter's config.json {what}: the target's defaults hold, without a word in the log"]
    ids = nested[IDS]
    if ids is None:
        return None, [*how, f"`{IDS}` is null: the target's defaults hold"]
    if not isinstance(ids, list) or not all(type(item) is int for item in ids) or not ids:
        raise UnknownShapeError(f"`{CONFIG}.{IDS}` must be a list of whole numbers, found: {json.dumps(ids)[:80]}")
    return ids, [*how, f"the drafter's config.json names ids {ids}"]


def layers_of(target_config: str | None) -> int | None:
    """Layers of a target's text model, by the text of its config.json; None = it does not tell."""
    target = _object(target_config)
    return None if target is None else _layers(target)


def _layers(target: Mapping[str, Any]) -> int | None:
    nested = target.get("text_config")
    for value in (nested if isinstance(nested, dict) else {}, target):
        found = value.get("num_hidden_layers")
        if type(found) is int and found > 0:
            return found
    return None


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
