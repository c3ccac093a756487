"""config.json of a drafter or target: read, checked, and turned into the few numbers the test needs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from remote_payload.failure import checkpoint_failure

GRAPH_CHANGERS = ("fc_norm", "use_aux_norm", "norm_before_fc", "norm_before_residual")
"""Flags that change the drafter's computation in ways this test does not follow yet."""
RopeKind = Literal["default", "linear", "llama3", "yarn"]
ROPE_KINDS: dict[str, RopeKind] = {"default": "default", "linear": "linear", "llama3": "llama3", "yarn": "yarn"}

ROPE_NUMBERS = (
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "low_freq_factor",
    "original_max_position_embeddings",
)


@dataclass(frozen=True, kw_only=True)
class Rope:
    """Rotary embedding of a drafter; `scaling` keeps the numbers of `rope_scaling` or `rope_parameters`."""

    kind: RopeKind
    theta: float
    scaling: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class DrafterConfig:
    """The numbers of an EAGLE-3 drafter of the Llama kind (one layer)."""

    text: str
    """config.json as it stood."""
    architecture: str | None
    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    draft_vocab_size: int
    rms_norm_eps: float
    max_positions: int
    rope: Rope
    attention_bias: bool
    fc_bias: bool
    tie_word_embeddings: bool
    config_ids: tuple[int, ...] | None
    """`eagle_config.eagle_aux_hidden_state_layer_ids`, the only place SGLang reads; None = absent."""
    top_level_ids: tuple[int, ...] | None
    """Ids at the top level, which SGLang never reads for capture."""
    norm_output: bool | None


def read_json(folder: Path, role: str) -> tuple[str, dict[str, Any]]:
    """Text and value of `folder/config.json`; raises JobFailure(checkpoint) naming `role`'s folder."""
    if not folder.is_dir():
        raise checkpoint_failure(
            f"the {role}'s folder does not exist on this machine: {folder}",
            hint=f"`{role}` must name a folder on the server that runs the job",
        )
    path = folder / "config.json"
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
    except FileNotFoundError:
        raise checkpoint_failure(
            f"the {role}'s folder has no config.json: {folder}",
            hint="point at the exported model folder, the one that holds config.json and *.safetensors",
        ) from None
    except (OSError, ValueError) as error:
        raise checkpoint_failure(f"the {role}'s config.json cannot be read: {path}: {error}") from None
    if not isinstance(value, dict):
        raise checkpoint_failure(f"the {role}'s config.json must hold an object, found: {type(value).__name__}: {path}")
    return text, value


def architecture_of(value: dict[str, Any]) -> str | None:
    """The first of `architectures`; None where there is none."""
    found = value.get("architectures")
    return found[0] if isinstance(found, list) and found and isinstance(found[0], str) else None


def read_drafter_config(folder: Path) -> DrafterConfig:
    """Read and check a drafter's config.json. Raises JobFailure(checkpoint).

    Not covered, and refused: nested speculators configs, MLA drafters, more than one layer, norms before or after fc.
    """
    text, value = read_json(folder, "draft")
    _refuse_other_dialects(value, folder)
    hidden = _positive(value, "hidden_size")
    heads = _positive(value, "num_attention_heads")
    kv_heads = _positive(value, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise checkpoint_failure(
            f"`num_attention_heads` must be a multiple of `num_key_value_heads` = {kv_heads}, found: {heads}"
        )
    vocab = _positive(value, "vocab_size")
    nested = _eagle_config(value)
    return DrafterConfig(
        text=text,
        architecture=architecture_of(value),
        hidden_size=hidden,
        target_hidden_size=_positive(value, "target_hidden_size", hidden),
        intermediate_size=_positive(value, "intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_positive(value, "head_dim", hidden // heads),
        vocab_size=vocab,
        draft_vocab_size=_positive(value, "draft_vocab_size", vocab),
        rms_norm_eps=_number(value, "rms_norm_eps", 1e-6),
        max_positions=_positive(value, "max_position_embeddings", 2048),
        rope=_rope(value),
        attention_bias=bool(value.get("attention_bias", False)),
        fc_bias=bool(value.get("bias", False)),
        tie_word_embeddings=bool(value.get("tie_word_embeddings", False)),
        config_ids=_ids(nested.get("eagle_aux_hidden_state_layer_ids")),
        top_level_ids=_ids(value.get("eagle_aux_hidden_state_layer_ids")),
        norm_output=value.get("norm_output"),
    )


def _refuse_other_dialects(value: dict[str, Any], folder: Path) -> None:
    if "speculators_model_type" in value or "transformer_layer_config" in value:
        raise checkpoint_failure(
            f"this is a speculators checkpoint (nested config.json), which is not supported yet: {folder}",
            hint="give the SpecForge, SafeAILab or SGLang form of the same drafter",
        )
    nested = _eagle_config(value)
    changers = [name for name in GRAPH_CHANGERS if value.get(name) or nested.get(name)]
    if nested.get("use_aux_hidden_state") is False:
        changers.append("use_aux_hidden_state: false")
    if value.get("hidden_act", "silu") not in ("silu", "swish"):
        changers.append(f"hidden_act: {value['hidden_act']}")
    if "kv_lora_rank" in value:
        changers.append("kv_lora_rank (an MLA drafter)")
    if changers:
        raise checkpoint_failure(
            f"the drafter's config.json asks for a computation this test does not follow yet: {', '.join(changers)}",
            hint="its numbers would be wrong, so it is refused; drafters of the plain Llama EAGLE-3 form are tested",
        )


def _eagle_config(value: dict[str, Any]) -> dict[str, Any]:
    found = value.get("eagle_config")
    return found if isinstance(found, dict) else {}


def _positive(value: dict[str, Any], key: str, default: int | None = None) -> int:
    found = value.get(key)
    if found is None:
        found = default
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise checkpoint_failure(f"the drafter's config.json needs a positive whole number `{key}`, found: {found!r}")
    return found


def _number(value: dict[str, Any], key: str, default: float) -> float:
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, int | float) or isinstance(found, bool) or not found > 0:
        raise checkpoint_failure(f"the drafter's config.json needs a positive number `{key}`, found: {found!r}")
    return float(found)


def _ids(found: object) -> tuple[int, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in found):
        raise checkpoint_failure(
            f"`eagle_aux_hidden_state_layer_ids` must be a list of whole numbers, found: {found!r}",
            hint="SGLang counts the characters of a string as layers; write e.g. [1, 29, 57]",
        )
    return tuple(found)


def _rope(value: dict[str, Any]) -> Rope:
    """Transformers 5 writes `rope_parameters` (with rope_theta), transformers 4 `rope_theta` and `rope_scaling`."""
    scaling: dict[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        found = value.get(key) or {}
        if not isinstance(found, dict):
            raise checkpoint_failure(f"the drafter's config.json needs an object `{key}`, found: {found!r}")
        scaling |= found
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind not in ROPE_KINDS:
        raise checkpoint_failure(
            f"the drafter's rotary embedding must be one of {', '.join(ROPE_KINDS)}, found: {kind!r}",
            hint="the test would place positions wrongly, so it is refused",
        )
    numbers = {key: _number(scaling, key, 1.0) for key in ROPE_NUMBERS if scaling.get(key) is not None}
    theta = _number(value, "rope_theta", _number(scaling, "rope_theta", 10000.0))
    return Rope(kind=ROPE_KINDS[kind], theta=theta, scaling=numbers)
