"""A verdict from an interval and a margin, as `orchestrator/compare/comparison.py` words them."""

from typing import Literal

from orchestrator.compare.comparison import Verdict
from orchestrator.compare.stats import Estimate

HARD_THRESHOLD = 0.10
"""What a single run's change is held against, in words only."""


def judge(change: Estimate, margin: float, better: Literal["higher", "lower", "neither"]) -> Verdict | None:
    """None where there is no interval to judge by. Lower is better: the change is turned, -5 % counts as +5 %."""
    if change.low is None or change.high is None:
        return None
    low, high = (-change.high, -change.low) if better == "lower" else (change.low, change.high)
    if low > margin:
        return "changed" if better == "neither" else "improved"
    if high < -margin:
        return "changed" if better == "neither" else "regressed"
    if -margin < low and high < margin:
        return "equivalent"
    if low > 0 or high < 0:
        return "small change"
    return "inconclusive"


def single_run_note(change: float | None, kind: Literal["ratio", "difference"]) -> str:
    """What can be said of a change without an interval."""
    if change is None:
        return "not tested"
    side = "beyond" if abs(change) > HARD_THRESHOLD else "within"
    unit = "%" if kind == "ratio" else "points"
    return f"not tested: {100 * change:+.1f} {unit} is {side} the 10 {unit} that call for a second look"
