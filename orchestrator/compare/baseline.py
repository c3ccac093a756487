"""What may become a baseline: measurements without anything against them, or a number somebody typed."""

import math
import re
from collections.abc import Sequence

from orchestrator.compare.closest import closest
from orchestrator.compare.condition import UNITS
from orchestrator.compare.metrics import METRICS, Metric, metric_of, near_metrics
from orchestrator.compare.possible import impossible, impossible_figures
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import NAME_RULE, BaselineEntry, BaselineNumber, RunRecord, is_name
from orchestrator.records.measurement import Fact, MeasurementSet

_NUMBER = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)(?:\s*([A-Za-z%]\S*)|)")
"""A number, and a unit or none: Python reads `9_0` and digits of other scripts as numbers, too."""
LOAD = {
    "side": (r"spec|plain", "spec|plain"),
    "concurrency": (r"[1-9][0-9]{0,5}", "USERS"),
    "request_rate": (r"(?=.*[1-9])[0-9]{0,6}(?:\.[0-9]{1,6})?", "REQUESTS-A-SECOND"),
    "split": (r"train|held-out", "train|held-out"),
}
"""What names a load, how its value is written, and that in words."""


def require_over(record: RunRecord, problems: Sequence[str]) -> None:
    """Only a run that succeeded, whose files are whole (`problems` of its manifest), can be a baseline.

    Raises InvalidRunError with the reason.
    """
    if record.phase != "succeeded":
        raise InvalidRunError(
            f"a baseline must be a run that succeeded, `{record.run_id}` is: {record.phase}",
            hint="a run that is still going on can be finished with `eagle3-remote attach`",
        )
    if record.job_kind not in ("standalone", "bench"):
        raise InvalidRunError(
            f"a baseline must be a run with figures to compare, `{record.run_id}` is a run of: {record.job_kind}"
        )
    if problems:
        raise InvalidRunError(
            f"the result of `{record.run_id}` is not whole on this laptop: {'; '.join(problems)}",
            hint=f"`eagle3-remote attach {record.run_id}` fetches it again",
        )


def require_valid(measured: MeasurementSet) -> None:
    """What failed, or cannot be, must not become what others are held against: the next fault would pass.

    Raises InvalidRunError.
    """
    found = [
        (one.case, reason)
        for one in measured.measurements
        for reason in dict.fromkeys((*one.invalid, *impossible_figures(one)))
    ]
    if not measured.measurements:
        found = [((), "it has no figures")]
    if found:
        told = "; ".join(f"{_case_words(case)}{reason}" for case, reason in found[:3])
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise InvalidRunError(
            f"a baseline must be a valid measurement, `{measured.run_id}` is none: {told}{more}",
            hint="run it again without the fault; a baseline that hides one would pass the next",
        )


def number_of_text(text: str, unit: str | None) -> BaselineNumber:
    """Read `METRIC=VALUE` or `METRIC=VALUE UNIT`; `unit` is what was said for all.

    A unit that an expectation may have (`ms`, `%`) is brought into the metric's own. Raises UsageError, also for a name
    that no run reports and that is close to one which is.
    """
    name, equals, said = text.partition("=")
    if not equals or not is_name(name):
        raise UsageError(f"expected METRIC=VALUE, the metric of {NAME_RULE}, found: {text!r}")
    metric, found = metric_of(name), _NUMBER.fullmatch(said.strip())
    if found is None or not math.isfinite(float(found[1])):
        raise UsageError(f"expected a finite number for `{name}`, found: {said.strip()!r}")
    if metric is None and (near := near_metrics(name)):
        raise UsageError(f"no run reports `{name}`", hint=f"did you mean: {', '.join(near)}?")
    own, worth = _unit(metric, name, found[2] or unit)
    number = BaselineNumber(metric=name, value=float(found[1]) * worth, unit=own)
    wrong = None if metric is None else impossible(metric, number.value)
    if wrong is not None:
        raise UsageError(f"`{name}`: expected {wrong[0]}, found: {found[1]}", hint=wrong[1])
    return number


def _unit(metric: Metric | None, name: str, unit: str | None) -> tuple[str, float]:
    """The unit of the number, the catalogue's where that knows the metric, and what one of those said is worth in it.

    Raises UsageError.
    """
    if metric is None:
        if not unit:
            raise UsageError(
                f"expected a unit for `{name}`, which no run reports yet",
                hint=f"{_closest(name)}--unit says what it is in; `ratio` where it has none",
            )
        return unit, 1.0
    if unit is None:
        raise UsageError(
            f"expected a unit: `{name}` is in `{metric.unit}`", hint=f"--unit {metric.unit} says that it is meant so"
        )
    known = UNITS.get(metric.unit, {metric.unit: 1.0})
    if unit not in known:
        others = ", ".join(f"`{one}`" for one in known if one != metric.unit)
        told = f"`{metric.unit}`" + (f" ({others})" if others else "")
        raise UsageError(f"expected `{name}` in {told}, found the unit: {unit!r}")
    return metric.unit, known[unit]


def load_of_texts(texts: Sequence[str]) -> tuple[Fact, ...]:
    """Read `KEY=VALUE` of a load, in the order in which runs tell theirs. Raises UsageError naming what may stand."""
    found: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition("=")
        form = LOAD.get(key)
        if form is None or not re.fullmatch(form[0], value):
            told = f"`{key}={form[1]}`" if form is not None else ", ".join(f"`{k}={w}`" for k, (_, w) in LOAD.items())
            raise UsageError(f"--load: expected {told}, found: {text!r}")
        if key in found:
            raise UsageError(f"--load: expected `{key}` once, found it twice")
        found[key] = f"{float(value):g}" if key == "request_rate" else value
    if {"concurrency", "request_rate"} <= found.keys() or ("split" in found and len(found) > 1):
        told = " ".join(f"{key}={value}" for key, value in found.items())
        raise UsageError(f"--load: expected `concurrency` or `request_rate`, or `split` alone, found: {told}")
    return tuple(Fact(name=key, value=found[key]) for key in LOAD if key in found)


def entry_of_numbers(
    numbers: tuple[BaselineNumber, ...], *, load: tuple[Fact, ...] = (), source: str, note: str, now: float
) -> BaselineEntry:
    """Typed numbers as a baseline. Raises UsageError where a metric is given twice."""
    try:
        return BaselineEntry(numbers=numbers, load=load, source=source, note=note, set_at_unix_s=now)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None


def unknown_metrics(numbers: Sequence[BaselineNumber]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Metrics that no run reports, each with the closest that one does."""
    return tuple((one.metric, _close(one.metric)) for one in numbers if metric_of(one.metric) is None)


def _close(name: str) -> tuple[str, ...]:
    known = [*METRICS, *(f"{role}.{name}" for role in ("declared", "best") for name in METRICS)]
    return closest(name, known)


def _closest(name: str) -> str:
    close = _close(name)
    return f"did you mean: {', '.join(close)}? " if close else ""


def _case_words(case: Sequence[Fact]) -> str:
    return " ".join(f"{fact.name}={fact.value}" for fact in case) + (": " if case else "")
