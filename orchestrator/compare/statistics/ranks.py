"""Rank tests: Wilcoxon's signed ranks for pairs, Mann-Whitney's U for two sides; exact also with ties.

The exact p counts every way the signs (the sides) could have fallen, given the ranks as they are: for ranks doubled to
whole numbers that is a count of sums, made one rank at a time. It agrees with the published tables where there are no
ties, and with full enumeration where there are. For large samples the normal approximation with the variance of tied
ranks and without continuity correction, named in the note. Two-sided p is twice the smaller tail, at most 1.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.compare.comparison import Test
from orchestrator.compare.counted import counted
from orchestrator.compare.statistics.effect import tail

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

EXACT_PAIRS = 200
EXACT_RUNS = 60
"""Both sides together."""
DIGITS = 1e-10
"""Of the largest number: closer ones are the same, so that rounding noise breaks no tie."""
SIGNIFICANT = 0.05
WILCOXON = "Wilcoxon signed-rank"
MANN_WHITNEY = "Mann-Whitney"


def wilcoxon(ours: Sequence[float], theirs: Sequence[float], *, exact_up_to: int = EXACT_PAIRS) -> Test:
    """Of the differences ours - theirs, those of 0 left out; the statistic is the smaller sum of ranks."""
    import numpy as np  # noqa: PLC0415 - only where a test is asked for

    mine, other = np.array(ours), np.array(theirs)
    differences = mine - other
    if step := DIGITS * float(np.abs(np.concatenate([mine, other])).max(initial=0.0)):
        differences = np.round(differences / step)
    nonzero = differences[differences != 0]
    n, zeros = len(nonzero), len(differences) - len(nonzero)
    left_out = f"{counted(zeros, 'pair')} without a difference left out" if zeros else ""
    if not n:
        return Test(name=WILCOXON, p=None, note="no pair differs" if zeros else "no pairs")
    doubled = _doubled_ranks(np.abs(nonzero))
    positive = float(doubled[nonzero > 0].sum())
    statistic = min(positive, float(doubled.sum()) - positive) / 2
    if n > exact_up_to:
        z = (positive - float(doubled.sum()) / 2) / math.sqrt(float((doubled**2).sum()) / 4)
        return _approximate(WILCOXON, z, statistic, left_out)
    sums = np.zeros(int(doubled.sum()) + 1)
    sums[0] = 1.0
    for rank in doubled.astype(int):
        sums[rank:] += sums[:-rank].copy()
    return _exact(WILCOXON, sums, int(positive), statistic, counted(n, "pair"), left_out)


def mann_whitney(ours: Sequence[float], theirs: Sequence[float], *, exact_up_to: int = EXACT_RUNS) -> Test:
    """The statistic is U of ours: how many times one of ours is larger than one of theirs (ties count a half)."""
    import numpy as np  # noqa: PLC0415 - only where a test is asked for

    m, n = len(ours), len(theirs)
    if not (m and n):
        return Test(name=MANN_WHITNEY, p=None, note="no samples")
    both = np.array([*ours, *theirs])
    step = DIGITS * float(np.abs(both).max())
    doubled = _doubled_ranks(np.round(both / step) if step else both)
    ours_sum = float(doubled[:m].sum())
    statistic = ours_sum / 2 - m * (m + 1) / 2
    if float(doubled.min()) == float(doubled.max()):
        return Test(name=MANN_WHITNEY, p=None, statistic=statistic, note="all values are equal")
    if m + n > exact_up_to:
        spread = float(((doubled - doubled.mean()) ** 2).sum()) / (m + n)
        z = (ours_sum - m * float(doubled.mean())) / math.sqrt(spread * m * n / (m + n - 1))
        return _approximate(MANN_WHITNEY, z, statistic, "")
    sums = np.zeros((m + 1, int(doubled.sum()) + 1))
    sums[0, 0] = 1.0
    for rank in doubled.astype(int):
        sums[1:, rank:] += sums[:-1, :-rank].copy()
    return _exact(MANN_WHITNEY, sums[m], int(ours_sum), statistic, f"{m} against {n}", "")


def _doubled_ranks(values: "Floats") -> "Floats":
    """Twice the rank of each value, 1 = the smallest; equal values share the mean of theirs."""
    import numpy as np  # noqa: PLC0415 - only where a test is asked for

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (2 * last - counts + 1).astype(np.float64)[places]


def _exact(name: str, sums: "Floats", at: int, statistic: float, samples: str, left_out: str) -> Test:
    total, possible = float(sums.sum()), sums.nonzero()[0]
    p = min(1.0, 2 * min(float(sums[: at + 1].sum()), float(sums[at:].sum())) / total)
    least = min(1.0, 2 * min(float(sums[possible[0]]), float(sums[possible[-1]])) / total)
    notes = ["exact", left_out]
    if least > SIGNIFICANT:
        notes.append(f"{samples} can never fall below p = {least:.3g}")
    return Test(name=name, p=p, statistic=statistic, note="; ".join(filter(None, notes)))


def _approximate(name: str, z: float, statistic: float, left_out: str) -> Test:
    note = "; ".join(filter(None, ["normal approximation", left_out]))
    return Test(name=name, p=2 * tail(-abs(z), math.inf), statistic=statistic, note=note)
