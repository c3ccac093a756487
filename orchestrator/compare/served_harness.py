"""What SGLang's own load tool says, read from its JSONL: other definitions than ours, kept under its own names.

Its throughput divides by a time that goes on until after a last question to the server; its accept length is the
server's own running average of rank 0, absent below 40 decode steps. Keys differ by version, so each may be missing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.counted import counted
from orchestrator.compare.served_pairing import speedup_of
from orchestrator.compare.served_speed import mean_of_repeats
from orchestrator.compare.stats import Estimate
from remote_payload.schema.bench import HarnessRun, Side

LARGEST = 1e15
"""Nothing that is counted or timed here is larger."""


@dataclass(frozen=True, kw_only=True)
class HarnessFigures:
    """One call of its tool; None = this version does not tell, or the call left nothing."""

    side: Side
    concurrency: int | None
    request_rate: float | None
    repeat: int | None
    requests: int | None
    """How many it was to send."""
    returncode: int
    file: str | None
    completed: int | None = None
    output_throughput: float | None = None
    """Output tokens a second."""
    accept_length: float | None = None
    median_ttft_ms: float | None = None
    median_tpot_ms: float | None = None
    median_e2e_latency_ms: float | None = None

    @property
    def failed(self) -> str | None:
        """In words, why the call is no measurement; None = it is one."""
        if self.returncode != 0:
            return f"exit code {self.returncode}"
        if not self.output_throughput:
            return "no throughput in its file" if self.file else "no file"
        if None not in (self.completed, self.requests) and (self.completed or 0) < (self.requests or 0):
            return f"{self.completed} of {counted(self.requests or 0, 'request')} completed"
        return None

    @property
    def key(self) -> tuple[int | None, float | None]:
        """What makes two loads the same but for their side."""
        return self.concurrency, self.request_rate


@dataclass(frozen=True, kw_only=True)
class HarnessLoad:
    """One load on one side: the good calls of its tool."""

    calls: tuple[HarnessFigures, ...]

    @property
    def side(self) -> Side:
        """Of all calls."""
        return self.calls[0].side

    @property
    def throughput(self) -> Estimate:
        """Mean over calls; interval by Student's t from three on."""
        return mean_of_repeats(self.throughputs)

    @property
    def throughputs(self) -> tuple[float, ...]:
        """Output tokens a second, a call each, in order."""
        return tuple(call.output_throughput for call in self.calls if call.output_throughput is not None)

    def mean(self, name: str) -> float | None:
        """Of one of the figures, over the calls that tell it."""
        told = [value for call in self.calls if (value := getattr(call, name)) is not None]
        return sum(told) / len(told) if told else None


def harness_figures(run: HarnessRun, text: str | None) -> HarnessFigures:
    """A call and the last run in its JSONL, which it appends to; `text`: None where no file came home."""
    values = [value for line in (text or "").splitlines() if (value := _object(line)) is not None]
    last = values[-1] if values else {}
    completed = _number(last.get("completed"))
    return HarnessFigures(
        side=run.side,
        concurrency=run.concurrency,
        request_rate=run.request_rate,
        repeat=run.repeat,
        requests=run.requests,
        returncode=run.returncode,
        file=run.result_file,
        completed=None if completed is None else int(completed),
        output_throughput=_number(last.get("output_throughput")),
        accept_length=_number(last.get("accept_length")),
        median_ttft_ms=_number(last.get("median_ttft_ms")) or None,  # 0: the tool saw no text come
        median_tpot_ms=_number(last.get("median_tpot_ms")) or None,
        median_e2e_latency_ms=_number(last.get("median_e2e_latency_ms")),
    )


def harness_loads(calls: Sequence[HarnessFigures]) -> tuple[HarnessLoad, ...]:
    """The good calls by load and side, in the order that they were first made."""
    found: dict[tuple[object, ...], list[HarnessFigures]] = {}
    for call in calls:
        if call.failed is None:
            found.setdefault((call.side, *call.key), []).append(call)
    return tuple(HarnessLoad(calls=tuple(some)) for some in found.values())


def harness_speedups(loads: Sequence[HarnessLoad]) -> tuple[tuple[HarnessLoad, HarnessLoad, Estimate], ...]:
    """With the drafter, without it, and the ratio of their mean throughputs: of each load that has both."""
    plain = {load.calls[0].key: load for load in loads if load.side == "plain"}
    both = [(load, plain[load.calls[0].key]) for load in loads if load.side == "spec" and load.calls[0].key in plain]
    return tuple((ours, theirs, speedup_of(ours.throughputs, theirs.throughputs)) for ours, theirs in both)


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
