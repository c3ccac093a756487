"""How fast a server was, from each request's raw chunks: the clock runs from the first send to the last token.

TTFT = first chunk - sent. TPOT = (last chunk - first chunk) / tokens after the first chunk; its reciprocal is what one
user sees, tokens a second. A chunk may carry several tokens, so gaps between chunks are no inter-token latency.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.statistics.effect import settled
from orchestrator.compare.stats import CONFIDENCE, Estimate, student_t_quantile
from remote_payload.schema.bench import PointFacts, RequestSample

LEAST_REPEATS = 3
"""Repeats below which a throughput has no interval."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A latency over requests. A percentile is None where fewer than one request would lie beyond it."""

    n: int
    median: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Speed of one load over its repeats."""

    throughputs: tuple[float, ...]
    """Output tokens a second of each valid repeat, in order."""
    throughput: Estimate
    """Their mean, of several server starts that of the starts' means; interval over these (Student's t)."""
    request_throughput: float | None
    """Requests a second, mean over repeats."""
    output_tokens: int
    user_tok_s: Spread
    ttft_s: Spread
    tpot_s: Spread
    e2e_s: Spread


def point_throughput(point: PointFacts, requests: Sequence[RequestSample]) -> float | None:
    """Output tokens a second of one point; None where no token came or no time passed."""
    seconds = point_seconds(point)
    tokens = sum(tokens_of(item) for item in requests if item.error is None)
    return tokens / seconds if seconds and tokens else None


def point_seconds(point: PointFacts) -> float | None:
    """From the first send to the last token."""
    if point.last_token_s is None or point.last_token_s <= point.first_sent_s:
        return None
    return point.last_token_s - point.first_sent_s


def speed(points: Sequence[tuple[PointFacts, Sequence[RequestSample]]]) -> Speed:
    """Speed of the repeats of one load: each point with its good requests."""
    requests = [item for _, some in points for item in some]
    found = [point_throughput(point, some) for point, some in points]
    throughputs = tuple(value for value in found if value is not None)
    rates = [len(some) / seconds for point, some in points if some and (seconds := point_seconds(point))]
    per_token = [value for item in requests if (value := tpot_s(item)) is not None]
    return Speed(
        throughputs=throughputs,
        throughput=mean_of_repeats(_by_start(points, found)),
        request_throughput=statistics.fmean(rates) if rates else None,
        output_tokens=sum(tokens_of(item) for item in requests),
        user_tok_s=spread([1 / value for value in per_token if value > 0], upwards=False),
        ttft_s=spread([item.chunk_s[0] - item.sent_s for item in requests if item.chunk_s]),
        tpot_s=spread(per_token),
        e2e_s=spread([item.chunk_s[-1] - item.sent_s for item in requests if item.chunk_s]),
    )


def _by_start(points: Sequence[tuple[PointFacts, object]], found: Sequence[float | None]) -> tuple[float, ...]:
    """A throughput a server start, where there are several: repeats on one start are one sample of it."""
    starts: dict[int, list[float]] = {}
    for (point, _), value in zip(points, found, strict=True):
        if value is not None:
            starts.setdefault(point.start, []).append(value)
    if len(starts) == 1:
        return tuple(next(iter(starts.values())))
    return tuple(statistics.fmean(some) for some in starts.values())


def tokens_of(item: RequestSample) -> int:
    """Output tokens of a request: the ids that came, where they came; else the server's count, else the chunks'."""
    if item.output_ids is not None and len(item.output_ids) > 0:
        return len(item.output_ids)
    return sum(item.chunk_tokens) if item.completion_tokens is None else item.completion_tokens


def tpot_s(item: RequestSample) -> float | None:
    """Seconds a token after the first chunk; None where nothing came after it."""
    if len(item.chunk_s) < 2:
        return None
    tokens = sum(item.chunk_tokens[1:])
    return (item.chunk_s[-1] - item.chunk_s[0]) / tokens if tokens else None


def spread(values: Sequence[float], *, upwards: bool = True) -> Spread:
    """Median and tail; `upwards`: the bad tail is the high one, else the low one (p90: 90 % are faster)."""
    ordered = sorted(values, reverse=not upwards)
    n = len(ordered)
    if not n:
        return Spread(n=0)
    return Spread(n=n, median=statistics.median(ordered), p90=_percentile(ordered, 0.9), p99=_percentile(ordered, 0.99))


def mean_of_repeats(values: Sequence[float]) -> Estimate:
    """Mean with Student's interval over repeats, of its logarithm (delta method): a speed is never negative.

    No bounds below three repeats, nor where they do not differ at all: then `standard_error` is 0, and how much they
    vary is unknown.
    """
    n = len(values)
    if n < LEAST_REPEATS:
        return Estimate(value=statistics.fmean(values) if values else None, rows=n)
    mean = statistics.fmean(values)
    error = settled(statistics.stdev(values) / math.sqrt(n), abs(mean))
    if not mean or not error:
        return Estimate(value=mean, standard_error=error, rows=n)
    factor = math.exp(student_t_quantile(0.5 + CONFIDENCE / 2, n - 1) * error / mean)
    return Estimate(value=mean, low=mean / factor, high=mean * factor, standard_error=error, rows=n)


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Linear between order statistics (Hyndman and Fan's type 7)."""
    n = len(ordered)
    if n * (1 - share) < 1 - 1e-9:
        return None
    at = share * (n - 1)
    low = math.floor(at)
    high = min(low + 1, n - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
