"""Whether a change is shown to be smaller than a margin: two one-sided t-tests (Schuirmann 1987)."""

import math

from orchestrator.compare.statistics.effect import Effect, tail


def equivalence_p(effect: Effect, margin: float) -> float | None:
    """The larger p of "the change is at most -margin" and "at least +margin"; None without a spread.

    p <= 0.05 goes with a 90 % interval within the margin; the verdict takes the 95 % interval, which asks for more.
    """
    error = effect.standard_error
    if not error:
        return None
    low, high = -margin, margin
    if effect.scale == "log":
        low, high = (math.log1p(-margin) if margin < 1 else -math.inf), math.log1p(margin)
    return max(tail((low - effect.value) / error, effect.freedom), tail((effect.value - high) / error, effect.freedom))
