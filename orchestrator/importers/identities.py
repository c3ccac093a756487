"""What the numbers of one result must be to each other: a file that was cut, edited or merged contradicts itself.

Asked of the results of every tool: a number is what the others make of it (tokens / seconds = throughput, 1 + accepted
drafts / drafts = accept length), a first token is not later than the end, percentiles rise, and what was counted is
more than nothing. Tools round and their clocks end at other moments, so numbers count as alike up to `ROUNDED`; beyond
it the load has a warning, and from `CLEAR` on, or where nothing was counted, it is no measurement.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ROUNDED = 0.01
"""Relative difference up to which two numbers are the same one, rounded; in all real files here it is below 0.003."""
CLEAR = 0.1
"""From this difference on it is no other rounding or clock."""
_RISING = ("", "_p90", "_p95", "_p99")
_SUMMARIES = (*_RISING, "_mean")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A number that a result tells, and what its others make of it."""

    name: str
    """Its key in the file."""
    told: float
    made: float
    words: str
    """Of what that is made, and what it is."""
    is_sure: bool = True
    """False = the tool counts or times the two otherwise: a difference is never more than a warning."""


class Contradictions(NamedTuple):
    """Sentences: what makes the load no measurement, and what is only said."""

    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def quotient(
    name: str, told: float | None, top: tuple[float | None, str], bottom: tuple[float | None, str], *, sure: bool = True
) -> tuple[Claim, ...]:
    """The claim that a number is `top` / `bottom`, each with its unit in words; () where one is not told."""
    (count, what), (divisor, by) = top, bottom
    if told is None or count is None or not divisor:
        return ()
    made = count / divisor
    words = f"{count:g} {what} / {divisor:g} {by} make {made:.4g}"
    return (Claim(name=name, told=told, made=made, words=words, is_sure=sure),)


def contradictions(
    figures: Mapping[str, float], claims: Sequence[Claim], counted: Mapping[str, float | None], where: str
) -> Contradictions:
    """What speaks against a result: `figures` by metric, `counted` by the file's key, None = not told."""
    invalid = [
        f"`{name}` is 0, and yet it tells figures ({where})"
        for name, count in counted.items()
        if count == 0 and figures
    ]
    warnings: list[str] = []
    for claim in (*claims, *_in_order(figures)):
        off = _apart(claim.told, claim.made)
        if off <= ROUNDED:
            continue
        told = f"`{claim.name}` says {claim.told:.4g}, {claim.words} ({where})"
        (invalid if off > CLEAR and claim.is_sure else warnings).append(told)
    return Contradictions(tuple(invalid), tuple(warnings))


def _apart(told: float, made: float) -> float:
    if told == made:
        return 0.0
    return math.inf if made == 0 else abs(told / made - 1)


def _in_order(figures: Mapping[str, float]) -> Iterator[Claim]:
    """Claims that fail: each made of the figure that should not be below the one told."""
    for suffix in _SUMMARIES:
        first, end = figures.get(f"ttft_s{suffix}"), figures.get(f"e2e_s{suffix}")
        if first is not None and end is not None and first > end:
            words = f"more than `e2e_s{suffix}`, {end:.4g}: a first token is not later than the last"
            yield Claim(name=f"ttft_s{suffix}", told=first, made=end, words=words)
    for metric in figures:
        told = [(name, figures[name]) for suffix in _RISING if (name := f"{metric}{suffix}") in figures]
        for (lower, low), (higher, high) in itertools.pairwise(told):
            if low > high:
                words = f"more than `{higher}`, {high:.4g}: percentiles rise"
                yield Claim(name=lower, told=low, made=high, words=words)
