"""Series of raw numbers as tests need them."""

from collections.abc import Sequence

from orchestrator.compare.metrics import METRICS
from orchestrator.records.measurement import Series

THROUGHPUT = METRICS["output_throughput_tok_s"]
LENGTH = METRICS["accept_length_pooled"]
ACCURACY = METRICS["first_step_accuracy"]
TTFT = METRICS["ttft_s"]


def runs(*y: float, metric: str = THROUGHPUT.name, unit: str = "tok/s", name: str = "run") -> Series:
    """Run level; a run for each number."""
    keys = tuple(f"{name}-{index}/1" for index in range(len(y)))
    return Series(metric=metric, unit=unit, definition="as measured", level="run", keys=keys, y=tuple(map(float, y)))


def prompts(
    y: Sequence[float],
    x: Sequence[float] = (),
    *,
    metric: str = LENGTH.name,
    unit: str = "tokens",
    keys: Sequence[str] | None = None,
    clusters: Sequence[str] = (),
) -> Series:
    """Prompt level; keys are p0, p1, ... unless they are given."""
    return Series(
        metric=metric,
        unit=unit,
        definition="as measured",
        level="prompt",
        keys=tuple(keys if keys is not None else (f"p{index}" for index in range(len(y)))),
        clusters=tuple(clusters),
        y=tuple(map(float, y)),
        x=tuple(map(float, x)),
    )


def number(value: float, *, metric: str = THROUGHPUT.name, unit: str = "tok/s", n: int | None = None) -> Series:
    """Summary level."""
    return Series(metric=metric, unit=unit, definition="as measured", level="summary", y=(float(value),), n=n)
