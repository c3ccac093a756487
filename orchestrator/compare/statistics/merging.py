"""Series of one metric from several runs, as one series of a set of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from orchestrator.errors import UsageError
from orchestrator.records.measurement import Series


def merge_series(series: Sequence[Series]) -> Series:
    """One series of all of them.

    Each run becomes one sample, the mean of its repeats: repeats share a server's start and a machine's state, and as
    samples of their own they would make the interval too narrow. A run that is there twice with the same numbers counts
    once. Of a prompt that several runs answered, y and x are the means over those runs, so that no prompt weighs more
    for having been asked more often.

    Raises UsageError for other units, definitions or kinds of samples, for several numbers without samples, and for one
    key with two numbers at run level; ValueError for no series at all.
    """
    if not series:
        raise ValueError("expected a series, found none")
    first = series[0]
    if len(series) == 1:
        return first
    for other in series[1:]:
        _alike(first, other)
    if first.level == "prompt":
        return _prompts(series)
    if first.level == "summary":
        raise UsageError(
            f"`{first.metric}`: expected runs with their samples, found: {len(series)} numbers without",
            hint="Compare such numbers one by one.",
        )
    values: dict[str, float] = {}
    for one in series:
        for key, value in zip(one.keys, one.y, strict=True):
            if values.setdefault(key, value) != value:
                raise UsageError(
                    f"`{one.metric}`: expected one number for `{key}`, found: {values[key]:g} and {value:g}",
                    hint="The same run is there twice with different numbers; name each run once.",
                )
    runs = {one.keys: one for one in series}  # the same run twice is one
    if len(runs) == 1:
        return first
    means = {_run_of(keys): fmean(one.y) for keys, one in runs.items()}
    return _rebuilt(first, keys=tuple(means), y=tuple(means.values()))


def _run_of(keys: tuple[str, ...]) -> str:
    """One repeat's key stays; of several, `RUN/REPEAT`, the first tells the run."""
    return keys[0] if len(keys) == 1 else f"{keys[0]}, mean of {len(keys)}"


@dataclass
class _Prompt:
    y: list[float] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    cluster: str = ""


def _prompts(series: Sequence[Series]) -> Series:
    prompts: dict[str, _Prompt] = {}
    for one in series:
        for index, key in enumerate(one.keys):
            prompt = prompts.setdefault(key, _Prompt())
            prompt.y.append(one.y[index])
            if one.x:
                prompt.x.append(one.x[index])
            if one.clusters and not prompt.cluster:
                prompt.cluster = one.clusters[index]
    clustered = any(prompt.cluster for prompt in prompts.values())
    return _rebuilt(
        series[0],
        keys=tuple(prompts),
        y=tuple(fmean(prompt.y) for prompt in prompts.values()),
        x=tuple(fmean(prompt.x) for prompt in prompts.values()) if series[0].x else (),
        clusters=tuple(prompt.cluster or key for key, prompt in prompts.items()) if clustered else (),
    )


def _alike(first: Series, other: Series) -> None:
    for what, one, two in (
        ("metric", first.metric, other.metric),
        ("unit", first.unit, other.unit),
        ("definition", first.definition, other.definition),
        ("kind of samples", first.level, other.level),
        ("sums over a denominator", str(bool(first.x)), str(bool(other.x))),
    ):
        if one != two:
            raise UsageError(
                f"`{first.metric}`: expected runs of one {what} in a set, found: {one} and {two}",
                hint="Compare such runs one by one.",
            )


def _rebuilt(
    first: Series,
    *,
    keys: tuple[str, ...],
    y: tuple[float, ...],
    x: tuple[float, ...] = (),
    clusters: tuple[str, ...] = (),
) -> Series:
    return Series(
        metric=first.metric,
        unit=first.unit,
        definition=first.definition,
        level=first.level,
        keys=keys,
        clusters=clusters,
        y=y,
        x=x,
    )
