"""What a metric can be at all, and where a number without a unit could be meant in another one.

Both for what people type: a baseline's numbers and expectations. A condition that always or never holds would pass, or
fail, whatever a run does.
"""

from orchestrator.compare.metrics import METRICS, Metric
from remote_payload.schema.job import MAX_STEPS

LENGTHS = frozenset(name for name, metric in METRICS.items() if metric.unit == "tokens")
PER_TOKEN = ("tpot_s", "itl_s")
BARE_SECONDS, BARE_SECONDS_PER_TOKEN = 60.0, 1.0
"""A larger number without a unit is more likely one of milliseconds."""


def impossible(metric: Metric, value: float) -> tuple[str, str | None] | None:
    """Why the metric can never be this (in its own unit): what was expected, and a hint; None = it can be."""
    if metric.unit == "share":
        fits, words = 0 <= value <= 1, "a share, 0 to 1"
        hint: str | None = "a share of 71 % is written 0.71"
    elif _bare_name(metric) in LENGTHS:
        fits, words = 1 <= value <= MAX_STEPS + 1, f"an accept length, 1 to {MAX_STEPS + 1}"
        hint = "an accept length counts the bonus token"
    else:
        fits, words, hint = value > 0, f"a number of {metric.unit} above 0", None
    return None if fits else (words, hint)


def meanings(metric: Metric, number: float) -> tuple[str, str] | None:
    """The two ways in which a number without a unit could be meant; None = its metric's name tells the unit.

    `ttft_s <= 500` is hardly 500 s; `accept_rate >= 1` may be 1 % or all of them.
    """
    if metric.unit == "share":
        return ("100 %", "1 %") if number == 1 else None
    if metric.unit == "s":
        limit = BARE_SECONDS_PER_TOKEN if _bare_name(metric).startswith(PER_TOKEN) else BARE_SECONDS
        return (f"{number:g} ms", f"{number:g} s") if number > limit else None
    return None


def _bare_name(metric: Metric) -> str:
    return metric.name.removeprefix("declared.").removeprefix("best.")
