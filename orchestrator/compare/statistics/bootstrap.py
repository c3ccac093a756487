"""The change between paired prompts, by resampling them: an interval without an assumption about its shape."""

from dataclasses import replace

from orchestrator.compare.comparison import Comparison
from orchestrator.compare.statistics.effect import Scale
from orchestrator.compare.statistics.prompts import Pairs, pair
from orchestrator.compare.stats import CONFIDENCE, Estimate
from orchestrator.records.measurement import Series

SEED = 7
RESAMPLES = 2000
MOST_ROWS = 1000
"""Above that the linearised interval and this one are the same for every purpose, and this one takes half a second."""
AT_ONCE = 2_000_000
"""Indices drawn in one piece: 16 MB."""


def with_bootstrap(comparison: Comparison, ours: Series, theirs: Series) -> Comparison:
    """The comparison of these two series with the interval by resampling; as it was, where it has no pairs or too many.

    Made apart from the comparison, because it takes ten times as long: for the few that decide. Left out where all
    pairs but a few are equal, as draws of them show nothing that was not seen.
    """
    if comparison.pairs is None or comparison.change.low is None or comparison.alike or comparison.pairs > MOST_ROWS:
        return comparison
    scale: Scale = "log" if comparison.metric.change == "ratio" else "plain"
    return replace(comparison, bootstrap=paired_bootstrap(pair(ours, theirs), scale, RESAMPLES))


def paired_bootstrap(pairs: Pairs, scale: Scale, resamples: int, seed: int = SEED) -> Estimate:
    """Percentile interval; each draw takes the same rows of both sides. Same seed, same interval.

    No bounds where a draw had a sum of 0. Percentile intervals are too narrow for few rows: by a fifth at 10 rows.
    """
    import numpy as np  # noqa: PLC0415 - only where a bootstrap is asked for

    sides = np.array([pairs.ours.y, pairs.ours.x, pairs.theirs.y, pairs.theirs.x], dtype=np.float64)
    rows = sides.shape[1]
    generator = np.random.default_rng(seed)
    sums = np.empty((4, resamples))
    step = max(1, AT_ONCE // rows)
    for start in range(0, resamples, step):
        drawn = generator.integers(0, rows, (min(step, resamples - start), rows))
        for side in range(4):
            sums[side, start : start + step] = sides[side][drawn].sum(axis=1)
    total = sides.sum(axis=1)
    y, x, other_y, other_x = total.tolist()
    value = _change((y, x), (other_y, other_x), scale)
    denominators = sums[1:] if scale == "log" else sums[[1, 3]]
    if not denominators.all():
        return Estimate(value=value, rows=rows)
    ours, theirs = sums[0] / sums[1], sums[2] / sums[3]
    changes = ours / theirs - 1 if scale == "log" else ours - theirs
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(changes, [tail, 100 - tail]).tolist()
    return Estimate(value=value, low=low, high=high, standard_error=float(changes.std(ddof=1)), rows=rows)


def _change(ours: tuple[float, float], theirs: tuple[float, float], scale: Scale) -> float | None:
    if not (ours[1] and theirs[1] and (theirs[0] or scale == "plain")):
        return None
    mine, other = ours[0] / ours[1], theirs[0] / theirs[1]
    return mine / other - 1 if scale == "log" else mine - other
