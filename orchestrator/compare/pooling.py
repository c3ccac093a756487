"""Several runs as one side of a comparison: the same loads put together, and what of them is not alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.compare.metrics import metric_of
from orchestrator.compare.possible import asked_again
from orchestrator.compare.shared_results import each_result_once
from orchestrator.compare.statistics import disagreement, merge_series
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series

Case = tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One side of a comparison: what was asked for, and the runs that it means."""

    label: str
    sets: tuple[MeasurementSet, ...]
    word: str = ""
    """What was asked for, as it was written; the label of a single run is its id."""
    notes: tuple[str, ...] = ()
    """What is to be known of how it was put together."""

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """Those of all its runs, a result that several of them share once; a load whose figures cannot be is none."""
        return tuple(item for one in each_result_once(self.sets) for item in asked_again(one).measurements)

    @property
    def is_typed(self) -> bool:
        """Whether it is somebody's bare numbers, of which nobody said how they were counted."""
        return any(one.origin == "typed" for one in self.sets)


def pooled(operand: Operand, keep: Callable[[Measurement], bool]) -> dict[Case, Measurement]:
    """A measurement for each load that `keep` keeps, over all runs of the side, in the order they come."""
    groups: dict[Case, list[Measurement]] = {}
    for item in operand.measurements:
        if keep(item):
            groups.setdefault(item.case, []).append(item)
    return {case: some[0] if len(some) == 1 else put_together(some) for case, some in groups.items()}


def put_together(some: Sequence[Measurement]) -> Measurement:
    """Several measurements of one load; series of one metric that do not fit each other are left out and named.

    Runs whose acceptance differs on the same prompts are named in a warning: their mean hides it.
    """
    by_metric: dict[str, list[Series]] = {}
    for item in some:
        for series in item.series:
            by_metric.setdefault(series.metric, []).append(series)
    merged, left_out, apart = [], [], []
    for metric, several in by_metric.items():
        if len({(series.unit, series.definition, series.level, bool(series.x)) for series in several}) > 1:
            left_out.append(f"{metric} means something else in some of the runs put together: left out")
        elif several[0].level == "summary" and len(several) > 1:
            left_out.append(f"{metric} has no samples in some of the runs put together: left out")
        else:
            merged.append(merge_series(several))
            known = metric_of(metric)
            if known is not None and known.primary and (told := disagreement(known, several)):
                apart.append(told)
    return Measurement(
        case=some[0].case,
        series=tuple(merged),
        hard=_joined([item.hard for item in some]),
        soft=_joined([item.soft for item in some]),
        arguments=_joined([item.arguments for item in some]),
        invalid=tuple(dict.fromkeys(text for item in some for text in item.invalid)),
        warnings=tuple(dict.fromkeys((*left_out, *apart, *(text for item in some for text in item.warnings)))),
        histogram=_summed([item.histogram for item in some]),
    )


def _joined(groups: Sequence[tuple[Fact, ...]]) -> tuple[Fact, ...]:
    """Each fact once; values that differ from run to run are all told, so that they differ from anyone's one value."""
    values: dict[str, dict[str, None]] = {}
    for facts in groups:
        for fact in facts:
            known = values.setdefault(fact.name, {})
            if fact.value is not None:
                known[fact.value] = None
    return tuple(Fact(name=name, value=" / ".join(sorted(known)) or None) for name, known in values.items())


def _summed(histograms: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    if not all(histograms):
        return ()
    width = max(map(len, histograms))
    return tuple(sum(found[i] if i < len(found) else 0 for found in histograms) for i in range(width))
