"""How many numbers each intermediate of a drafter takes: what pieces and the memory plan are reckoned from."""

from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.graph import GroupedAttention


def key_value_numbers(config: DrafterConfig) -> int:
    """Of one position: keys and values of one layer."""
    kind = config.attention
    if isinstance(kind, GroupedAttention):
        return 2 * kind.kv_heads * kind.head_dim
    return kind.heads * (kind.nope_head_dim + kind.rope_head_dim + kind.value_head_dim)


def query_numbers(config: DrafterConfig) -> int:
    """Of one position: queries of one layer."""
    kind = config.attention
    if isinstance(kind, GroupedAttention):
        return kind.heads * kind.head_dim
    return kind.heads * (kind.nope_head_dim + kind.rope_head_dim)


def projected_numbers(config: DrafterConfig) -> int:
    """Of one token: what a layer's first projections give."""
    kind = config.attention
    if isinstance(kind, GroupedAttention):
        return (kind.heads + 2 * kind.kv_heads) * kind.head_dim
    first = query_numbers(config) if kind.q_lora_rank is None else kind.q_lora_rank
    return first + kind.kv_lora_rank + kind.rope_head_dim


def prefix_numbers(config: DrafterConfig) -> int:
    """Of one position in one reading: its hidden state, and every layer's keys and values."""
    return config.hidden_size * min(config.layers, 2) + config.layers * key_value_numbers(config)


def activation_numbers(config: DrafterConfig) -> int:
    """Of one chain in one reading, about: a step through a layer, and what its own steps leave behind."""
    inner, heads = 3 * config.intermediate_size, query_numbers(config) + key_value_numbers(config)
    return inner + 8 * config.hidden_size + 4 * heads
