"""config.json of a drafter or target: read, checked, and turned into the few numbers the test needs."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import flag, layer_ids, number, positive, told
from remote_payload.standalone.checkpoint.rope_config import Rope, read_rope
from remote_payload.standalone.graph import GroupedAttention, LatentAttention

GRAPH_CHANGERS = ("fc_norm", "use_aux_norm", "norm_before_fc", "norm_before_residual")
"""Flags that change the drafter's computation in ways this test does not follow yet."""
LARGEST_EPS = 0.1
"""Real ones are 1e-5 or 1e-6; a large one would quietly make every state zero."""


@dataclass(frozen=True, kw_only=True)
class DrafterConfig:
    """The numbers of an EAGLE-3 drafter of the Llama kind (one layer)."""

    text: str
    """config.json as it stood."""
    architecture: str | None
    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    attention: GroupedAttention | LatentAttention
    layers: int = 1
    vocab_size: int
    draft_vocab_size: int
    rms_norm_eps: float
    max_positions: int
    rope: Rope
    fc_bias: bool
    tie_word_embeddings: bool
    config_ids: tuple[int, ...] | None
    """`eagle_config.eagle_aux_hidden_state_layer_ids`, the only place SGLang reads; None = absent."""
    top_level_ids: tuple[int, ...] | None
    """Ids at the top level, which SGLang never reads for capture."""
    norm_output: bool


def read_json(folder: Path, role: str) -> tuple[str, dict[str, Any]]:
    """Text and value of `folder/config.json`; raises JobFailure(checkpoint) naming `role`'s folder."""
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on names that are too long
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
    except RecursionError:
        raise checkpoint_failure(f"the {role}'s config.json is nested too deeply to be read: {path}") from None
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
    hidden = positive(value, "hidden_size")
    heads = positive(value, "num_attention_heads")
    kv_heads = positive(value, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise checkpoint_failure(
            f"`num_attention_heads` must be a multiple of `num_key_value_heads` = {kv_heads}, found: {heads}"
        )
    head_dim = positive(value, "head_dim", hidden // heads)
    if head_dim % 2:
        raise checkpoint_failure(f"`head_dim` must be even, as positions turn pairs of its numbers, found: {head_dim}")
    vocab = positive(value, "vocab_size")
    nested = _eagle_config(value)
    return DrafterConfig(
        text=text,
        architecture=architecture_of(value),
        hidden_size=hidden,
        target_hidden_size=positive(value, "target_hidden_size", hidden),
        intermediate_size=positive(value, "intermediate_size"),
        attention=GroupedAttention(
            heads=heads, kv_heads=kv_heads, head_dim=head_dim, bias=flag(value, "attention_bias")
        ),
        vocab_size=vocab,
        draft_vocab_size=positive(value, "draft_vocab_size", vocab),
        rms_norm_eps=number(value, "rms_norm_eps", 1e-6, LARGEST_EPS),
        max_positions=positive(value, "max_position_embeddings", 2048),
        rope=read_rope(value),
        fc_bias=flag(value, "bias"),
        tie_word_embeddings=flag(value, "tie_word_embeddings"),
        config_ids=layer_ids(nested.get("eagle_aux_hidden_state_layer_ids")),
        top_level_ids=layer_ids(value.get("eagle_aux_hidden_state_layer_ids")),
        norm_output=flag(value, "norm_output"),
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
        changers.append(f"hidden_act: {told(value['hidden_act'])}")
    if value.get("num_hidden_layers") not in (None, 1):
        changers.append(f"num_hidden_layers: {told(value['num_hidden_layers'])}")
    if _slides(value):
        changers.append(f"sliding_window: {told(value['sliding_window'])}")
    if "kv_lora_rank" in value:
        changers.append("kv_lora_rank (an MLA drafter)")
    if changers:
        raise checkpoint_failure(
            f"the drafter's config.json asks for a computation this test does not follow yet: {', '.join(changers)}",
            hint="its numbers would be wrong, so it is refused; drafters of the plain Llama EAGLE-3 form are tested",
        )


def _slides(value: dict[str, Any]) -> bool:
    """Whether attention forgets: transformers configs often name a window and do not use it."""
    if value.get("sliding_window") is None or value.get("use_sliding_window") is False:
        return False
    kinds = value.get("layer_types")
    return not (isinstance(kinds, list) and kinds and all(kind == "full_attention" for kind in kinds))


def _eagle_config(value: dict[str, Any]) -> dict[str, Any]:
    found = value.get("eagle_config")
    return found if isinstance(found, dict) else {}
