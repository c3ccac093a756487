"""What SGLang's own load tool says, read from its JSONL: other definitions than ours, kept under its own names.

Its throughput divides by a time that goes on until after a last question to the server; its accept length is the
server's own running average of rank 0, absent below 40 decode steps. Keys differ by version, so each may be missing.
"""

import json
from dataclasses import dataclass

LARGEST = 1e15
"""Nothing that is counted or timed here is larger."""


@dataclass(frozen=True, kw_only=True)
class HarnessFigures:
    """One call of its tool; None = this version does not tell."""

    file: str
    completed: int | None
    output_throughput: float | None
    """Output tokens a second."""
    accept_length: float | None
    median_ttft_ms: float | None
    median_tpot_ms: float | None
    median_e2e_latency_ms: float | None


def harness_figures(file: str, text: str) -> HarnessFigures | None:
    """The last run in its JSONL, which it appends to; None where no line is an object."""
    values = [value for line in text.splitlines() if (value := _object(line)) is not None]
    if not values:
        return None
    last = values[-1]
    completed = _number(last.get("completed"))
    return HarnessFigures(
        file=file,
        completed=None if completed is None else int(completed),
        output_throughput=_number(last.get("output_throughput")),
        accept_length=_number(last.get("accept_length")),
        median_ttft_ms=_number(last.get("median_ttft_ms")),
        median_tpot_ms=_number(last.get("median_tpot_ms")),
        median_e2e_latency_ms=_number(last.get("median_e2e_latency_ms")),
    )


def _object(line: str) -> dict[str, object] | None:
    try:
        value = json.loads(line)  # reads its `Infinity`, too
    except (ValueError, RecursionError):  # nested too deep
        return None
    return value if isinstance(value, dict) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None  # also NaN, and an integer that no float holds
    return float(value)
