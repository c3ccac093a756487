"""The table of a sweep: a row a point, its blocks put together, each figure with its n and interval. Pure.

Blocks are starts of their own, so a figure over several blocks knows what the luck of a start is worth. Every point is
held against plain decoding at the same load; the verdicts share Benjamini-Hochberg's correction over the whole table.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import Comparison
from orchestrator.compare.diff import compare_case
from orchestrator.compare.metrics import metric_of
from orchestrator.compare.pooling import put_together
from orchestrator.compare.served_part import EARLY
from orchestrator.compare.statistics import adjust
from orchestrator.compare.statistics.starts import by_start
from orchestrator.compare.statistics.unpaired import estimate
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Measurement, MeasurementSet
from orchestrator.sweep.points import LOADS
from orchestrator.sweep.pruning import Chain, Proposal, is_as_asked, propose, settings_of
from orchestrator.sweep.shares import rest
from orchestrator.sweep.standing import Progress, Standing
from remote_payload.schema import SweepJob, SweepPoint

SPEED = "output_throughput_tok_s"
ACCEPT_LENGTH = "accept_length_pooled"
SHOWN = (SPEED, ACCEPT_LENGTH, "best.accept_length_walk", "best.first_step_accuracy", "ttft_s")
"""In this order; a sweep shows those that any of its points has."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One point over all its blocks."""

    point: SweepPoint
    standings: tuple[Standing, ...]
    figures: Mapping[str, Estimate]
    against_plain: Comparison | None = None
    """Its tokens a second against plain decoding at the same load."""
    invalid: tuple[str, ...] = ()
    """What speaks against its measurements, a sentence each."""
    histogram: tuple[int, ...] = ()
    """Verify steps by accepted drafts, over its blocks; empty = not known."""
    served: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    """What its servers really ran with, by argument; empty = not known."""

    @property
    def measured(self) -> int:
        """Blocks that were measured."""
        return sum(one.word == "measured" for one in self.standings)


@dataclass(frozen=True, kw_only=True)
class SweepTable:
    """Everything that can be said of a sweep now."""

    run_id: str
    host: str
    job: SweepJob
    progress: Progress
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    definitions: Mapping[str, str]
    """What each metric counts, as the measurements say."""
    absent: tuple[str, ...] = ()
    """Measured points whose runs are not on this laptop."""

    @property
    def chains(self) -> tuple[Chain, ...]:
        """What was measured soundly, for what it tells of shallower chains."""
        found = []
        for row in self.rows:
            speed, length = row.figures.get(SPEED), row.figures.get(ACCEPT_LENGTH)
            settings = settings_of(self.job, row.point)
            is_sound = speed is not None and speed.value is not None and not row.invalid
            if speed is not None and is_sound and is_as_asked(settings, row.served):
                found.append(
                    Chain(
                        settings=settings,
                        is_baseline=row.point.is_baseline,
                        speed_tok_s=speed,
                        accept_length=length,
                        histogram=row.histogram,
                    )
                )
        return tuple(found)

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """Points that were not measured yet and cannot win."""
        left = {row.point.point_id: settings_of(self.job, row.point) for row in self.rows if not row.measured}
        return propose(self.chains, left)


def table(
    run_id: str,
    host: str,
    job: SweepJob,
    progress: Progress,
    sets: Mapping[str, MeasurementSet],
    *,
    raw: bool = False,
) -> SweepTable:
    """The table from what came home: `sets` by run id. `raw`: `corrected` will look at it beside others."""
    found = {point.point_id: _measurements(point, progress.of_point(point.point_id), sets) for point in job.points}
    whole = {key: some[0] if len(some) == 1 else put_together(some) for key, some in found.items() if some}
    compared = _compared(job, whole)
    rows = tuple(
        Row(
            point=point,
            standings=progress.of_point(point.point_id),
            figures=_figures(whole.get(point.point_id)),
            against_plain=compared.get(point.point_id),
            invalid=whole[point.point_id].invalid if point.point_id in whole else (),
            histogram=whole[point.point_id].histogram if point.point_id in whole else (),
            served={one.name: one.value for one in whole[point.point_id].arguments} if point.point_id in whole else {},
        )
        for point in job.points
        if progress.of_point(point.point_id)
    )
    absent = {
        one.run_id for one in progress.standings if one.word == "measured" and one.run_id and one.run_id not in sets
    }
    made = SweepTable(
        run_id=run_id,
        host=host,
        job=job,
        progress=progress,
        rows=rows,
        metrics=tuple(name for name in SHOWN if any(name in row.figures for row in rows)),
        absent=tuple(sorted(absent)),
        definitions=_definitions(list(whole.values())),
    )
    return made if raw else corrected((made,))[0]


def corrected(tables: Sequence[SweepTable]) -> tuple[SweepTable, ...]:
    """Tables that stand as one, their verdicts corrected for each other; they must not have been corrected yet."""
    lines = [row.against_plain for table in tables for row in table.rows if row.against_plain is not None]
    fixed = iter(adjust(tuple(lines), "Benjamini-Hochberg"))
    return tuple(
        dataclasses.replace(
            one,
            rows=tuple(
                row if row.against_plain is None else dataclasses.replace(row, against_plain=next(fixed))
                for row in one.rows
            ),
        )
        for one in tables
    )


def _definitions(measured: Sequence[Measurement]) -> dict[str, str]:
    """By metric; where points have several, as chains of several lengths, all of them."""
    found: dict[str, dict[str, None]] = {}
    for item in measured:
        for series in item.series:
            found.setdefault(series.metric, {})[series.definition] = None
    return {metric: " | ".join(words) for metric, words in found.items()}


def _measurements(
    point: SweepPoint, standings: Sequence[Standing], sets: Mapping[str, MeasurementSet]
) -> list[Measurement]:
    """The point's load in each run that measured it."""
    changes = json.loads(point.changes_json)
    wanted = {key: f"{changes[key]:g}" for key in LOADS if changes.get(key) is not None}
    found = []
    for one in standings:
        measured = sets.get(one.run_id or "") if one.word == "measured" else None
        for item in () if measured is None else measured.measurements:
            case = {fact.name: fact.value for fact in item.case}
            if case.get("split", "train") == "train" and all(case.get(key) == value for key, value in wanted.items()):
                found.append(_whole(item))
                break
    return found


def _whole(measured: Measurement) -> Measurement:
    """A load that was measured to its end, whatever became of its server under a later one."""
    kept = tuple(reason for reason in measured.invalid if not reason.startswith(EARLY))
    return dataclasses.replace(measured, invalid=kept)


def _figures(measured: Measurement | None) -> dict[str, Estimate]:
    found = {}
    for series in () if measured is None else measured.series:
        metric = metric_of(series.metric)
        if metric is not None and series.metric in SHOWN:
            found[series.metric] = estimate(by_start(series, metric), metric)  # repeats of one start are one sample
    return found


def _compared(job: SweepJob, whole: Mapping[str, Measurement]) -> dict[str, Comparison]:
    """Tokens a second of every point against its plain decoding, not corrected yet."""
    plain = {
        _rest(point): whole[point.point_id] for point in job.points if point.is_baseline and point.point_id in whole
    }
    found: dict[str, Comparison] = {}
    for point in job.points:
        mine, other = whole.get(point.point_id), plain.get(_rest(point))
        if point.is_baseline or mine is None or other is None:
            continue
        lines = compare_case(mine, other, Asked(vary=("side", "draft"), metrics=(SPEED,)), typed=False).comparisons
        for line in lines:
            if line.metric.name == SPEED:
                found[point.point_id] = line
    return found


def _rest(point: SweepPoint) -> str:
    return rest(json.loads(point.changes_json))
