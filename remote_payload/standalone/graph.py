"""The drafter's computation as values: what one reading may change (`Graph`), and the layer's kinds that it may not.

A checkpoint is not self-describing: the same tensors can be read with two residual sources, three input norms, two
feedback rules and so on. `Graph` is one such choice. A reading's graph is compared with the checkpoint's own by
`changes_from`, whose words stand in the result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from remote_payload.standalone.checkpoint.rope_config import Rope


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One way to compute a drafter's output from its tensors."""

    input: Literal["states", "final_state"] = "states"
    """`final_state`: the target's final normed state instead of captured ones, and no fc (EAGLE-1's input)."""
    input_norm: Literal["none", "joint", "per_slot"] = "none"
    """Before fc: none; one RMS norm over all slots (`norm_before_fc`); one a slot (`fc_norm`)."""
    residual: Literal["raw", "normed"] = "raw"
    """What attention is added to: the fused hidden, or hidden_norm of it (`norm_before_residual`)."""
    feedback: Literal["raw", "normed"] = "raw"
    """What step s + 1 is fed: the last layer's output, or the final norm of it (EAGLE-3.1's `norm_output`)."""
    final_norm: Literal["applied", "none"] = "applied"
    """Whether lm_head reads normed outputs."""
    embedding: Literal["target", "draft"] = "target"
    """Whose embed_tokens."""
    vocabulary: Literal["offset", "absolute", "identity", "mended"] = "offset"
    """How d2t is read; `mended`: not at all, but as lm_head's own rows tell the map."""
    windows: Literal["kept", "none"] = "kept"
    """Whether the layers' sliding windows hold, where they have any; `none`: every position sees all before it."""
    rope: Rope
    position_start: Literal[0, 1] = 0
    """Rotary position of the row's first draft position."""
    states: Literal["captured", "zeroed", "shuffled", "earlier", "later"] = "captured"
    """All but `captured` are controls: `zeroed` and `shuffled` (over the row's positions) show what the drafter does
    without its states, `earlier` and `later` (each position reads the one before, or behind it) whether the states were
    stored beside the wrong tokens."""

    def changes_from(self, own: "Graph") -> tuple[str, ...]:
        """Words for every choice that is not the checkpoint's own, sorted: `residual=normed`, `rope=theta 1e+06`."""
        told = (
            f"{field.name}={self.rope.label if field.name == 'rope' else getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(own, field.name)
        )
        return tuple(sorted(told))


@dataclass(frozen=True, kw_only=True)
class GroupedAttention:
    """Llama's attention: query heads share key/value heads."""

    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False
    """Whether q, k, v (and o, where stored) have biases."""
    qk_norm: bool = False
    """RMS norm over each head of q and k before rope, weights (head_dim,)."""
    windows: tuple[int | None, ...] = (None,)
    """A layer's sliding window: position i sees i - window + 1 .. i; None = everything before."""


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """DeepSeek's MLA: keys and values come from a latent of `kv_lora_rank`, rotary parts are separate."""

    heads: int
    q_lora_rank: int | None
    """None = `q_proj` instead of `q_a_proj`, `q_a_layernorm`, `q_b_proj`."""
    kv_lora_rank: int
    nope_head_dim: int
    """`qk_nope_head_dim`."""
    rope_head_dim: int
    """`qk_rope_head_dim`."""
    value_head_dim: int
    bias: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to read the checkpoint: which captured state feeds which fc slot, the token offset, the computation."""

    slots: tuple[int, ...]
    """Positions in the captured states, in fc order."""
    token_offset: int
    graph: Graph | None = None
    """None = the checkpoint's own."""
    changes: tuple[str, ...] = ()
    """`graph.changes_from(own)`."""

    @property
    def name(self) -> str:
        """e.g. `slots 0,1,2 offset +1`, `slots 0,1,2 offset +1 feedback=normed`."""
        return " ".join((f"slots {','.join(map(str, self.slots))} offset {self.token_offset:+d}", *self.changes))

    def with_graph(self, graph: Graph, own: Graph) -> "Reading":
        """The same slots and offset under another computation."""
        changes = graph.changes_from(own)
        return Reading(
            slots=self.slots, token_offset=self.token_offset, graph=graph if changes else None, changes=changes
        )


def distinct(readings: Iterable[Reading]) -> list[Reading]:
    """Each reading once, in order: readings with one name are one."""
    return list({reading.name: reading for reading in reversed(list(readings))}.values())[::-1]
