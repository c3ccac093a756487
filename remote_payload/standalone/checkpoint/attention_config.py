"""The attention that a drafter's config.json asks for: Llama's with its variants, or DeepSeek's MLA."""

from typing import Any

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import flag, positive, told
from remote_payload.standalone.graph import GroupedAttention, LatentAttention

LATENT = "kv_lora_rank"
LAYER_KINDS = {"full_attention": False, "sliding_attention": True}


def is_latent(value: dict[str, Any]) -> bool:
    """Whether a flat config describes an MLA drafter."""
    return value.get(LATENT) is not None


def read_latent(value: dict[str, Any]) -> LatentAttention:
    """MLA, as DeepSeek's configs spell it. Raises JobFailure(checkpoint)."""
    rotary = positive(value, "qk_rope_head_dim")
    if rotary % 2:
        raise checkpoint_failure(
            f"`qk_rope_head_dim` must be even, as positions turn pairs of its numbers, found: {rotary}"
        )
    return LatentAttention(
        heads=positive(value, "num_attention_heads"),
        q_lora_rank=None if value.get("q_lora_rank") is None else positive(value, "q_lora_rank"),
        kv_lora_rank=positive(value, LATENT),
        nope_head_dim=positive(value, "qk_nope_head_dim"),
        rope_head_dim=rotary,
        value_head_dim=positive(value, "v_head_dim"),
        bias=flag(value, "attention_bias"),
    )


def read_grouped(value: dict[str, Any], hidden: int) -> GroupedAttention:
    """Llama's attention without windows and norms, which need the tensors as well. Raises JobFailure(checkpoint)."""
    heads = positive(value, "num_attention_heads")
    kv_heads = positive(value, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise checkpoint_failure(
            f"`num_attention_heads` must be a multiple of `num_key_value_heads` = {kv_heads}, found: {heads}"
        )
    head_dim = positive(value, "head_dim", hidden // heads)
    if head_dim % 2:
        raise checkpoint_failure(f"`head_dim` must be even, as positions turn pairs of its numbers, found: {head_dim}")
    return GroupedAttention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, bias=flag(value, "attention_bias"))


def read_windows(value: dict[str, Any], layers: int) -> tuple[int | None, ...]:
    """Each layer's sliding window. Without `layer_types` a window holds for all layers, as in Mistral's configs.

    Many configs name a window and do not use it: `use_sliding_window: false`, or only `full_attention` layers.
    Raises JobFailure(checkpoint).
    """
    if value.get("sliding_window") is None or value.get("use_sliding_window") is False:
        return (None,) * layers
    kinds = value.get("layer_types")
    if kinds is None:
        return (positive(value, "sliding_window"),) * layers
    if not isinstance(kinds, list) or not all(isinstance(kind, str) and kind in LAYER_KINDS for kind in kinds):
        raise checkpoint_failure(
            f"`layer_types` must name {' or '.join(LAYER_KINDS)} for each layer, found: {told(kinds)}",
            hint="other kinds of layers are another computation, so they are refused",
        )
    slides = [LAYER_KINDS[kind] for kind in kinds[:layers]]
    if len(slides) < layers:
        raise checkpoint_failure(f"`layer_types` must name a kind for each of {layers} layers, found: {told(kinds)}")
    return tuple(positive(value, "sliding_window") if sliding else None for sliding in slides)
