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
    kept_bytes: int = 1024 * MIB
    """Prepared rows kept between the passes of a search; those that do not fit are read again."""

    def projected_positions(self, width: int) -> int:
        """Positions whose captured states, `width` wide, go through fc at a time: some copies of them in float32."""
        return max(1, self.reading_bytes // 4 // (4 * 4 * width))

    def smaller(self) -> "Budget":
        """Half of everything, down to pieces so small that halving them gains nothing."""
        return Budget(
            logit_bytes=max(MIB, self.logit_bytes // 2),
            score_bytes=max(MIB, self.score_bytes // 2),
            reading_bytes=max(8 * MIB, self.reading_bytes // 2),
            projection_bytes=self.projection_bytes // 2 // MIB * MIB,
            kept_bytes=self.kept_bytes // 2 // MIB * MIB,
        )
