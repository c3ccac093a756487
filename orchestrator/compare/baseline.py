"""What may become a baseline: a run that succeeded and left figures, or a number somebody typed."""

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import NAME_RULE, BaselineEntry, BaselineNumber, RunRecord, is_name


def entry_of_run(record: RunRecord, problems: tuple[str, ...], *, source: str, note: str, now: float) -> BaselineEntry:
    """A run as a baseline; `problems` are those of its result files. Raises InvalidRunError with the reason."""
    if record.phase != "succeeded":
        raise InvalidRunError(
            f"a baseline must be a run that succeeded, `{record.run_id}` is: {record.phase}",
            hint="a run that is still going on can be finished with `eagle3-remote attach`",
        )
    if record.job_kind != "standalone":
        raise InvalidRunError(
            f"a baseline must be a run with figures to compare, `{record.run_id}` is a run of: {record.job_kind}"
        )
    if problems:
        raise InvalidRunError(
            f"the result of `{record.run_id}` is not whole on this laptop: {'; '.join(problems)}",
            hint=f"`eagle3-remote attach {record.run_id}` fetches it again",
        )
    return BaselineEntry(run_id=record.run_id, source=source, note=note, set_at_unix_s=now)


def number_of_text(text: str, unit: str | None) -> BaselineNumber:
    """Read `METRIC=VALUE`. Raises UsageError."""
    metric, equals, value = text.partition("=")
    if not equals or not is_name(metric):
        raise UsageError(f"expected METRIC=VALUE, the metric of {NAME_RULE}, found: {text!r}")
    try:
        return BaselineNumber(metric=metric, value=float(value), unit=unit)
    except ValueError:
        raise UsageError(f"expected a finite number for `{metric}`, found: {value!r}") from None


def entry_of_numbers(numbers: tuple[BaselineNumber, ...], *, source: str, note: str, now: float) -> BaselineEntry:
    """Typed numbers as a baseline. Raises UsageError where a metric is given twice."""
    try:
        return BaselineEntry(numbers=numbers, source=source, note=note, set_at_unix_s=now)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None
