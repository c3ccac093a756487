"""Whether two loads were given the same work: as much of the prompts from the cache, outputs as long; or are one run.

Speeds of unlike work say nothing about what is compared. Acceptance does not depend on either and stays comparable.
"""

from collections.abc import Sequence

from orchestrator.compare.comparison import Difference
from orchestrator.compare.fingerprint import PROMPTS, value_of
from orchestrator.compare.metrics import metric_of
from orchestrator.compare.served import CACHED_APART
from orchestrator.compare.served_pairing import LENGTHS_APART
from orchestrator.compare.statistics import estimate
from orchestrator.records.measurement import Measurement

MAKES_OTHER_WORK = frozenset(
    {*PROMPTS, "target", "temperature", "top_p", "top_k", "max_new_tokens", "ignore_eos", "cache_policy"}
)
"""Factors that cannot but change the work: who puts one under test wants the speeds of both."""


def unlike_work(ours: Measurement, theirs: Measurement, varied: Sequence[Difference]) -> str:
    """Why speeds of the two are no pair, in words; empty where they are one as far as both sides tell."""
    if any(item.name in MAKES_OTHER_WORK for item in varied):
        return ""
    mine, other = _figure(ours, "cached_share"), _figure(theirs, "cached_share")
    if mine is not None and other is not None and abs(mine - other) > CACHED_APART:
        return f"the prefix cache held {100 * mine:.1f} % of our prompt tokens and {100 * other:.1f} % of theirs"
    mine, other = _figure(ours, "output_tokens"), _figure(theirs, "output_tokens")
    if mine is not None and other is not None and abs(mine - other) > LENGTHS_APART * max(mine, other):
        return f"our outputs are {mine:.1f} tokens long, theirs {other:.1f}"
    return ""


def flushed_otherwise(ours: Measurement, theirs: Measurement, hard: Sequence[Difference]) -> Difference | None:
    """Another handling of the prefix cache, where that bears on speeds alone: greedy acceptance does not see it."""
    if not all(_is_greedy(one) for one in (ours, theirs)):
        return None
    return next((item for item in hard if item.name == "cache_policy"), None)


def _is_greedy(measurement: Measurement) -> bool:
    return value_of(measurement, "temperature") in ("0", "0.0")


def same_numbers(ours: Measurement, theirs: Measurement) -> bool:
    """Whether every metric that both have is the same, sample by sample."""
    mine = {item.metric: (item.keys, item.y, item.x) for item in ours.series}
    other = {item.metric: (item.keys, item.y, item.x) for item in theirs.series}
    both = mine.keys() & other.keys()
    return bool(both) and all(mine[name] == other[name] for name in both)


def _figure(measurement: Measurement, name: str) -> float | None:
    metric = metric_of(name)
    series = next((item for item in measurement.series if item.metric == name), None)
    return None if metric is None or series is None else estimate(series, metric).value
