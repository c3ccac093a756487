"""Which known state another one is in other numbers: scaled, normed, or in another basis.

The simplest change that explains nearly everything, and explains it of one known state far better than of any other:
neighbouring layers look alike. One home for what a server returned, and for what rows hold beside a fresh forward.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from remote_payload.schema.state_change import StateChange

CLOSE = 0.1
"""|state - known| / |known| of the same state: bfloat16 gives 0.5 to 5 %, growing with depth."""
APART = 2.0
"""Times the nearest's error that the next nearest must be off: else either could be meant."""
FLOOR = 1e-3
"""Errors below it are alike: rounding."""
SCALED = 0.01
"""A factor nearer to 1 than this is none."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A known state that another one may be."""

    name: Hashable
    """Two of one name are one state under two headings."""
    error: float
    """|state - known| / |known|, the median over tokens."""
    change: StateChange | None
    r2: float | None = None


@dataclass(frozen=True, kw_only=True)
class Changed:
    """What makes a known state the other one."""

    words: str
    """Behind the known state's name: `x 0.90`, `after a norm`."""
    residual: float
    """What is left once that is taken back, as a share of the state."""
    error: float
    """What it is off by as it stands."""

    @property
    def is_large(self) -> bool:
        """Whether it is more than number formats make of one state."""
        return self.error > CLOSE


_CHANGES = (
    ("scaled_error", "x {factor}"),
    ("normed_error", "after a norm"),
    ("unnormed_error", "before its norm"),
    ("turned_error", "with each token at a length of its own"),
    ("channels_error", "through a norm of another weight"),
    ("r2", "in another basis (R2 {r2})"),
)
"""From the simplest on: the figure that tells what it leaves, and its words."""


def changed(known: Sequence[Known]) -> tuple[Known, Changed] | None:
    """The known state that another one is in other numbers, and how; None = not surely one of them."""
    for figure, words in _CHANGES:
        tried = [(error, one) for one in known if (error := _left(one, figure)) is not None]
        if not tried:
            continue
        error, best = min(tried, key=lambda pair: pair[0])
        rivals = [other for other, one in tried if one.name != best.name]
        if error > min(CLOSE, best.error / APART) or any(other < max(APART * error, FLOOR) for other in rivals):
            continue
        return best, Changed(words=_worded(words, best), residual=error, error=best.error)
    return None


def _left(one: Known, figure: str) -> float | None:
    if figure == "r2":
        return None if one.r2 is None else max(0.0, 1 - one.r2) ** 0.5
    left: float | None = getattr(one.change, figure, None)
    return left


def _worded(words: str, one: Known) -> str:
    factor = 1.0 if one.change is None else one.change.factor
    r2 = "not fitted" if one.r2 is None else f"{one.r2:.3f}"
    return words.format(factor=f"{factor:.2f}" if 0.1 <= abs(factor) < 100 else f"{factor:.3g}", r2=r2)


def scaled(one: Known) -> Changed | None:
    """The factor that a recognised state surely has; None = it is as it was, but for rounding."""
    change = one.change
    if change is None or abs(change.factor - 1) < SCALED or change.scaled_error > one.error / APART:
        return None
    return Changed(words=_worded(_CHANGES[0][1], one), residual=change.scaled_error, error=one.error)
