"""Names and shapes of an EAGLE-3 drafter's tensors: what the dialects write, what we call them, what we expect.

Canonical names are short (`fc.weight`, `layers.0.self_attn.q_proj.weight`, ...). SpecForge and SafeAILab write
`midlayer.*`, speculators, vLLM and ModelOpt `layers.0.*`; some exports put `model.` in front.
"""

import re

from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.graph import GroupedAttention

Shape = tuple[int, ...]

LAYER = re.compile(r"^(?:midlayer|layers\.0)\.")
BORROWED = ("embed_tokens.weight", "lm_head.weight", "norm.weight")
"""What a drafter may lack, because the target has it."""
GRAPH_CHANGING = re.compile(
    r"^(?:fc_norm|input_norm|aux_norm|layers\.[1-9]|mask_hidden|layers\.0\.self_attn\.[qk]_norm|.*_a_proj)"
)
"""Tensors that mean another computation than the one this test follows."""


def canonical_name(stored: str) -> str:
    """Our name of a stored tensor; unknown names come back without their `model.`."""
    name = stored.removeprefix("model.")
    return LAYER.sub("layers.0.", name)


def expected_shapes(config: DrafterConfig, slots: int | None) -> dict[str, Shape]:
    """Canonical name -> shape of every tensor a drafter must have or borrow.

    `slots` is the number of states fc joins; None where the stored fc does not tell, then one slot stands in.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    attention = config.attention
    assert isinstance(attention, GroupedAttention)
    query, key = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    shapes: dict[str, Shape] = {
        "embed_tokens.weight": (config.vocab_size, hidden),
        "fc.weight": (hidden, (slots or 1) * config.target_hidden_size),
        "layers.0.hidden_norm.weight": (hidden,),
        "layers.0.input_layernorm.weight": (hidden,),
        "layers.0.post_attention_layernorm.weight": (hidden,),
        "layers.0.self_attn.q_proj.weight": (query, 2 * hidden),
        "layers.0.self_attn.k_proj.weight": (key, 2 * hidden),
        "layers.0.self_attn.v_proj.weight": (key, 2 * hidden),
        "layers.0.self_attn.o_proj.weight": (hidden, query),
        "layers.0.mlp.gate_proj.weight": (inner, hidden),
        "layers.0.mlp.up_proj.weight": (inner, hidden),
        "layers.0.mlp.down_proj.weight": (hidden, inner),
        "norm.weight": (hidden,),
        "lm_head.weight": (config.draft_vocab_size, hidden),
    }
    if attention.bias:
        for name, size in (("q", query), ("k", key), ("v", key), ("o", hidden)):
            shapes[f"layers.0.self_attn.{name}_proj.bias"] = (size,)
    if config.fc_bias:
        shapes["fc.bias"] = (hidden,)
    if config.draft_vocab_size != config.vocab_size:
        shapes["d2t"] = (config.draft_vocab_size,)
    return shapes


def optional_shapes(config: DrafterConfig) -> dict[str, Shape]:
    """Tensors a drafter may carry that change nothing when they are absent."""
    return {"t2d": (config.vocab_size,), "d2t": (config.draft_vocab_size,)}
