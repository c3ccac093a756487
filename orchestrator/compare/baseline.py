"""What may become a baseline: a run that succeeded and left figures, or a number somebody typed."""

import re
from typing import Literal

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.records import NAME_RULE, BaselineEntry, BaselineNumber, RunRecord, is_name
from remote_payload.schema.job import MAX_STEPS

ROLES = ("declared", "best")
METRIC_NAMES = "first_step_accuracy, accept_length_walk, accept_length_mean, step2_acceptance, step3_acceptance, ..."
"""The metrics of a standalone run, each behind `declared.` and `best.`."""
LIMITS = {"share": (0.0, 1.0), "length": (1.0, MAX_STEPS + 1.0)}
KIND_WORDS = {"share": "a share, 0 to 1", "length": f"an accept length, 1 to {MAX_STEPS + 1}"}
_STEP_ACCEPTANCE = re.compile(r"step([2-9]|1[0-6])_acceptance")


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
        number = BaselineNumber(metric=metric, value=float(value), unit=unit)
    except ValueError:
        raise UsageError(f"expected a finite number for `{metric}`, found: {value!r}") from None
    kind = metric_kind(metric)
    if kind is not None and not LIMITS[kind][0] <= number.value <= LIMITS[kind][1]:
        raise UsageError(
            f"`{metric}`: expected {KIND_WORDS[kind]}, found: {value}",
            hint="a share of 71 % is written 0.71" if kind == "share" else "an accept length counts the bonus token",
        )
    return number


def metric_kind(name: str) -> Literal["share", "length"] | None:
    """What a metric of this tool's own is; None for a name that no run reports."""
    role, _, rest = name.partition(".")
    if role not in ROLES:
        return None
    if rest in ("accept_length_walk", "accept_length_mean"):
        return "length"
    return "share" if rest == "first_step_accuracy" or _STEP_ACCEPTANCE.fullmatch(rest) else None


def entry_of_numbers(numbers: tuple[BaselineNumber, ...], *, source: str, note: str, now: float) -> BaselineEntry:
    """Typed numbers as a baseline. Raises UsageError where a metric is given twice."""
    try:
        return BaselineEntry(numbers=numbers, source=source, note=note, set_at_unix_s=now)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from None
