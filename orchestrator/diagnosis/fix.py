"""What mends a drafter for SGLang, as a change of its config.json that a program can make; the rest in words.

The ids come from `sglang_ids.spell`, every flag from what `remedies` says in words; a change of weights is never made
here, it is told. The patch is a JSON merge patch (RFC 7396): null deletes a key.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.diagnosis.remedies import remedy
from orchestrator.diagnosis.sglang_config import eagle_block, flat_config
from orchestrator.diagnosis.verdict import WiringVerdict
from remote_payload.schema import StandaloneResult

_FLAGS: dict[tuple[str, str], dict[str, Any]] = {
    ("residual", "raw"): {"norm_before_residual": False},
    ("feedback", "normed"): {"norm_output": True},
    ("feedback", "raw"): {"norm_output": None},
    ("input_norm", "joint"): {"norm_before_fc": True},
    ("input_norm", "per_slot"): {"fc_norm": True},
    ("input_norm", "none"): {"norm_before_fc": False, "fc_norm": False},
}
_ROPE_HOMES = ("rope_parameters", "rope_scaling")


@dataclass(frozen=True, kw_only=True)
class DrafterFix:
    """A change of config.json, and what it cannot mend."""

    patch: dict[str, Any]
    """JSON merge patch; empty = no change of the config mends anything."""
    by_hand: tuple[str, ...] = ()
    """What needs other weights, another engine or another training, a line each."""
    rule: str | None = None
    """SGLang's rule for ids that the patch relies on; None = the patch names none."""
    valid_for: str | None = None
    """Versions of SGLang that the rule was seen in."""


def drafter_fix(result: StandaloneResult, wiring: WiringVerdict) -> DrafterFix | None:
    """The fix for what the test found; None where there is nothing to mend or nothing sure to mend it with."""
    patch: dict[str, Any] = {}
    by_hand: list[str] = []
    spelling = wiring.spelling
    ids = None if spelling is None or spelling.ids is None else spelling.ids
    if spelling is not None and spelling.ids is None:
        by_hand.append(spelling.problem or "no ids are known that serve the best reading")
    if spelling is not None and ids is not None and spelling.block_order is not None:
        order = list(spelling.block_order)
        by_hand.append(f"SGLang joins states in layer order: re-order the column blocks of fc.weight to {order}")
        ids = None  # on these weights the ids alone would feed another order
    if ids is not None and names_already(result, ids):
        ids = None  # they are what it is served with: no change
    if ids is not None:
        patch |= _with_ids(result, ids)
    for effect in wiring.misread:
        for key, best, served in zip(effect.keys, effect.best, effect.served, strict=True):
            change = _flag(result, key, best)
            if change is None:
                by_hand += remedy(key, best, served, result.checkpoint)
            else:
                patch |= change
    if not patch and not by_hand:
        return None
    told = spelling if ids is not None else None
    return DrafterFix(
        patch=patch,
        by_hand=tuple(dict.fromkeys(by_hand)),
        rule=None if told is None else told.rule,
        valid_for=None if told is None else told.valid_for,
    )


def names_already(result: StandaloneResult, ids: tuple[int, ...]) -> bool:
    """Whether config.json names just these ids where SGLang reads them, and nothing there keeps it from that."""
    return result.declared.config_ids == ids and result.declared.problem is None


def _with_ids(result: StandaloneResult, ids: tuple[int, ...]) -> dict[str, Any]:
    """The patch that names `ids`; of a nested config the whole of it, written flat as SGLang reads it."""
    flat = flat_config(result.checkpoint, ids)
    return {"eagle_config": eagle_block(ids)} if flat is None else merge_patch(_config(result), flat)


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The patch that makes `new` of `old`. Values of None cannot be made by one: `new` must hold none."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old or old[key] != value:
            had = old.get(key)
            is_both = isinstance(had, dict) and isinstance(value, dict)
            patch[key] = merge_patch(had, value) if is_both and isinstance(had, dict) else value
    return patch


def _flag(result: StandaloneResult, key: str, best: str) -> dict[str, Any] | None:
    """The change that sets one choice of the computation; None = config.json has no word for it."""
    if (key, best) in _FLAGS:
        return _FLAGS[key, best]
    if key != "rope":
        return None
    if best.startswith("theta "):
        return _theta(_config(result), best.removeprefix("theta "))
    return _ROPE[best](_config(result)) if best in _ROPE else None


def _theta(config: dict[str, Any], told: str) -> dict[str, Any] | None:
    try:
        theta = float(told)
    except ValueError:
        return None
    change: dict[str, Any] = {"rope_theta": theta}
    if isinstance(config.get("rope_parameters"), dict):
        change["rope_parameters"] = {"rope_theta": theta}
    return change


def _unscaled(config: dict[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] = {"rope_scaling": None}
    parameters = config.get("rope_parameters")
    if isinstance(parameters, dict):  # transformers 5 keeps base and scaling in one object
        kept = {"rope_theta", "rope_type", "partial_rotary_factor"}
        change["rope_parameters"] = {**{key: None for key in parameters if key not in kept}, "rope_type": "default"}
    return change


def _whole_heads(config: dict[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] = {"partial_rotary_factor": None}
    for home in _ROPE_HOMES:
        inner = config.get(home)
        if isinstance(inner, dict) and "partial_rotary_factor" in inner:
            change[home] = {"partial_rotary_factor": None}
    return change


_ROPE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"unscaled": _unscaled, "full": _whole_heads}


def _config(result: StandaloneResult) -> dict[str, Any]:
    value = json.loads(result.checkpoint.config_json)
    return value if isinstance(value, dict) else {}
