"""What may become a baseline: measurements without anything against them, or a number somebody typed."""

import difflib
import re
from collections.abc import Sequence

from orchestrator.compare.metrics import METRICS, Metric, metric_of
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import NAME_RULE, BaselineEntry, BaselineNumber, RunRecord, is_name
from orchestrator.records.measurement import Fact, MeasurementSet
from remote_payload.schema.job import MAX_STEPS

LENGTHS = frozenset(name for name, metric in METRICS.items() if metric.unit == "tokens")
_PERCENT = re.compile(r"%|percent|points?")


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
    """What failed must not become what others are held against: the next fault would pass. Raises InvalidRunError."""
    found = [(one.case, reason) for one in measured.measurements for reason in one.invalid]
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
    """Read `METRIC=VALUE` or `METRIC=VALUE UNIT`; `unit` is what was said for all. Raises UsageError."""
    name, equals, said = text.partition("=")
    if not equals or not is_name(name):
        raise UsageError(f"expected METRIC=VALUE, the metric of {NAME_RULE}, found: {text!r}")
    value, _, own = said.strip().partition(" ")
    metric = metric_of(name)
    try:
        number = BaselineNumber(metric=name, value=float(value), unit=_unit(metric, name, own.strip() or unit))
    except ValueError:
        raise UsageError(f"expected a finite number for `{name}`, found: {value!r}") from None
    if metric is not None:
        _require_possible(metric, number, value)
    return number


def _unit(metric: Metric | None, name: str, unit: str | None) -> str | None:
    """The unit that was said, which must be the catalogue's. Raises UsageError."""
    if metric is None or unit == metric.unit:
        return unit
    if unit is None:
        raise UsageError(
            f"expected a unit: `{name}` is in `{metric.unit}`", hint=f"--unit {metric.unit} says that it is meant so"
        )
    hint = "a share of 71 % is written 0.71" if metric.unit == "share" and _PERCENT.fullmatch(unit) else None
    raise UsageError(f"expected `{name}` in `{metric.unit}`, found the unit: {unit!r}", hint=hint)


def _require_possible(metric: Metric, number: BaselineNumber, text: str) -> None:
    """Raises UsageError for what the metric can never be."""
    bare = metric.name.removeprefix("declared.").removeprefix("best.")
    if metric.unit == "share":
        fits, words, hint = 0 <= number.value <= 1, "a share, 0 to 1", "a share of 71 % is written 0.71"
    elif bare in LENGTHS:
        fits, words = 1 <= number.value <= MAX_STEPS + 1, f"an accept length, 1 to {MAX_STEPS + 1}"
        hint = "an accept length counts the bonus token"
    else:
        fits, words, hint = number.value > 0, f"a number of {metric.unit} above 0", ""
    if not fits:
        raise UsageError(f"`{metric.name}`: expected {words}, found: {text}", hint=hint or None)


def entry_of_numbers(numbers: tuple[BaselineNumber, ...], *, source: str, note: str, now: float) -> BaselineEntry:
    """Typed numbers as a baseline. Raises UsageError where a metric is given twice."""
    try:
        return BaselineEntry(numbers=numbers, source=source, note=note, set_at_unix_s=now)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None


def unknown_metrics(numbers: Sequence[BaselineNumber]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Metrics that no run reports, each with the closest that one does."""
    known = [*METRICS, *(f"{role}.{name}" for role in ("declared", "best") for name in METRICS)]
    names = [number.metric for number in numbers if metric_of(number.metric) is None]
    return tuple((name, tuple(difflib.get_close_matches(name, known, n=3))) for name in names)


def _case_words(case: Sequence[Fact]) -> str:
    return " ".join(f"{fact.name}={fact.value}" for fact in case) + (": " if case else "")
