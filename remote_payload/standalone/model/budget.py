"""How large the pieces of the computation may get: the only numbers that trade memory for speed, never a result."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Bytes that one kind of intermediate may take; a piece is at least one position of one reading."""

    logit_bytes: int = 64 * MIB
    """Logits (positions, vocabulary), the drafter's and the teacher's."""
    score_bytes: int = 64 * MIB
    """Attention scores (readings, heads, positions, prefix) in float32."""
    reading_bytes: int = 256 * MIB
    """What readings computed together hold: half for their prefixes, half for the activations of a block of chains."""
    projection_bytes: int = 1024 * MIB
    """Projections (state, slot) kept for a row's later readings; those that do not fit are made again."""
