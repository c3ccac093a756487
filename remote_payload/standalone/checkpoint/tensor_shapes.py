"""Shapes of the tensors that a drafter of a given config must, may and need not have, by canonical name."""

from collections.abc import Collection

from remote_payload.schema.standalone import TensorProblem
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.graph import GroupedAttention, LatentAttention

Shape = tuple[int, ...]

NORM = "norm.weight"
BORROWED = ("embed_tokens.weight", "lm_head.weight", NORM)
"""What a drafter may lack and be computed: the target has it, or engines leave it at ones (the norm)."""
DEFAULT_STATES = 3
"""States that a drafter joins where its config names none."""


def expected_shapes(config: DrafterConfig, slots: int | None, *, fc: bool = True) -> dict[str, Shape]:
    """Canonical name -> shape of every tensor a drafter must have or borrow.

    `slots` is the number of states fc joins; None where the stored fc does not tell, then as many as the config names.
    `fc` is whether there is one.
    """
    hidden = config.hidden_size
    shapes: dict[str, Shape] = {"embed_tokens.weight": (config.vocab_size, hidden)}
    if fc:
        shapes["fc.weight"] = (hidden, (slots or named_states(config)) * config.target_hidden_size)
        if config.fc_bias:
            shapes["fc.bias"] = (hidden,)
    for layer in range(config.layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in _layer(config, layer).items()}
    shapes |= {"norm.weight": (hidden,), "lm_head.weight": (config.draft_vocab_size, hidden)}
    if config.draft_vocab_size != config.vocab_size:
        shapes["d2t"] = (config.draft_vocab_size,)
    return shapes


def named_states(config: DrafterConfig) -> int:
    """How many states the config's layer ids name; each is captured once."""
    return len(set(config.config_ids or config.top_level_ids or range(DEFAULT_STATES)))


def missing_norm(config: DrafterConfig, found: Collection[str]) -> tuple[TensorProblem, ...]:
    """The final norm where the drafter has none: no reason to refuse it, but served it is another drafter."""
    if NORM in found:
        return ()
    return (TensorProblem(problem="missing", name=NORM, expected=f"shape [{config.hidden_size}]", found="nothing"),)


def optional_shapes(config: DrafterConfig, slots: int | None) -> dict[str, Shape]:
    """Tensors that a drafter may carry: what they change is read from their being there."""
    hidden, target = config.hidden_size, config.target_hidden_size
    shapes: dict[str, Shape] = {"t2d": (config.vocab_size,), "d2t": (config.draft_vocab_size,), "fc.bias": (hidden,)}
    shapes["input_norm.weight"] = ((slots or 1) * target,)
    shapes |= {f"fc_norm.{slot}.weight": (target,) for slot in range(slots or 1)}
    for layer in range(config.layers):
        if isinstance(config.attention, GroupedAttention) and config.attention.bias:
            shapes[f"layers.{layer}.self_attn.o_proj.bias"] = (hidden,)
        if layer > 0:
            shapes[f"layers.{layer}.hidden_norm.weight"] = (hidden,)  # SGLang's use of it is another; told as a note
    return shapes


def _layer(config: DrafterConfig, layer: int) -> dict[str, Shape]:
    """One layer's tensors: the first takes [embedding | hidden], the others are ordinary ones."""
    hidden, inner = config.hidden_size, config.intermediate_size
    width = 2 * hidden if layer == 0 else hidden
    shapes: dict[str, Shape] = {"hidden_norm.weight": (hidden,)} if layer == 0 else {}
    shapes |= {"input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,)}
    attention = config.attention
    parts = (
        _grouped(attention, hidden, width)
        if isinstance(attention, GroupedAttention)
        else _latent(attention, hidden, width)
    )
    shapes |= {f"self_attn.{name}": shape for name, shape in parts.items()}
    return shapes | {
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }


def _grouped(attention: GroupedAttention, hidden: int, width: int) -> dict[str, Shape]:
    query, key = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    shapes: dict[str, Shape] = {
        "q_proj.weight": (query, width),
        "k_proj.weight": (key, width),
        "v_proj.weight": (key, width),
        "o_proj.weight": (hidden, query),
    }
    if attention.bias:
        shapes |= {"q_proj.bias": (query,), "k_proj.bias": (key,), "v_proj.bias": (key,)}
    if attention.qk_norm:
        shapes |= {"q_norm.weight": (attention.head_dim,), "k_norm.weight": (attention.head_dim,)}
    return shapes


def _latent(attention: LatentAttention, hidden: int, width: int) -> dict[str, Shape]:
    """MLA's tensors under DeepSeek's names."""
    query = attention.heads * (attention.nope_head_dim + attention.rope_head_dim)
    latent = attention.kv_lora_rank + attention.rope_head_dim
    shapes: dict[str, Shape] = {
        "kv_a_proj_with_mqa.weight": (latent, width),
        "kv_a_layernorm.weight": (attention.kv_lora_rank,),
        "kv_b_proj.weight": (
            attention.heads * (attention.nope_head_dim + attention.value_head_dim),
            attention.kv_lora_rank,
        ),
        "o_proj.weight": (hidden, attention.heads * attention.value_head_dim),
    }
    if attention.q_lora_rank is None:
        shapes["q_proj.weight"] = (query, width)
    else:
        shapes |= {
            "q_a_proj.weight": (attention.q_lora_rank, width),
            "q_a_layernorm.weight": (attention.q_lora_rank,),
            "q_b_proj.weight": (query, attention.q_lora_rank),
        }
    if attention.bias:
        shapes |= {"kv_a_proj_with_mqa.bias": (latent,), "o_proj.bias": (hidden,)}
        if attention.q_lora_rank is not None:
            shapes["q_a_proj.bias"] = (attention.q_lora_rank,)
    return shapes
