"""The runs of a report in one table: what each is, and its primary figures."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.compare.metrics import metric_of
from orchestrator.records.measurement import Fact
from orchestrator.report.document.blocks import Block, Items, Section, Table, Text
from orchestrator.report.document.figures import case_words, figure, named, series_of, title_of
from orchestrator.report.document.subject import Reported, Subject, in_time
from orchestrator.report.moments import moment
from orchestrator.report.words import UNKNOWN

MOST_COLUMNS = 6
UNFOLDED = 12
SHOWN_REASONS = 20
ORIGINS = {
    "own": "measured by this tool",
    "imported": "imported: measured by another tool",
    "typed": "typed in: no measurement of ours",
    "published": "published: no measurement of ours",
}
PRIMARY = ("output_throughput_tok_s", "accept_length_pooled", "accept_length_walk", "first_step_accuracy")


def runs_section(reported: Reported) -> Section:
    """Every run, newest first where there are many."""
    runs = in_time(reported.subjects)
    columns = _columns(runs)
    head = (
        "run",
        "place",
        "measured",
        "by",
        "on",
        *(f"{title_of(name)}, {case_words(case)}" for name, case in columns),
    )
    rows = tuple(_row(place, run, columns) for place, run in reversed(list(enumerate(runs, start=1))))
    head = (*head, "no measurement because")
    caption = f"{len(rows)} runs, newest first; [..] are 95 % intervals"
    blocks: list[Block] = [Table(caption=caption, head=head, rows=rows, folded=len(rows) > UNFOLDED)]
    if len(rows) == 1:
        told = tuple((name, cell) for name, cell in zip(head, rows[0], strict=True) if cell and name != "place")
        blocks = [Table(caption="What it is; [..] are 95 % intervals", head=("what", "value"), rows=told)]
    problems = [f"{named(run.run_id)}: {reason}" for run in runs for reason in run.invalid]
    if problems and len(rows) > UNFOLDED:
        more = (f"and {len(problems) - SHOWN_REASONS} more",) if len(problems) > SHOWN_REASONS else ()
        blocks.append(Items(title="No measurements", items=(*problems[:SHOWN_REASONS], *more)))
    if reported.left_out:
        blocks.append(Items(title="Left out", items=reported.left_out))
    if not columns:
        blocks.append(Text(text="No run here has a figure.", kind="warning"))
    return Section(name="runs", title="Runs" if len(rows) > 1 else "The run", blocks=tuple(blocks))


def _columns(runs: Sequence[Subject]) -> list[tuple[str, tuple[Fact, ...]]]:
    counts: Counter[tuple[str, tuple[Fact, ...]]] = Counter()
    for run in runs:
        for one in run.measured.measurements:
            shown = {f"{role}{name}" for name in PRIMARY for role in ("", "declared.", "best.")}
            counts.update((series.metric, one.case) for series in one.series if series.metric in shown)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], _is_secondary(item[0][0])))
    return [key for key, _ in ranked[:MOST_COLUMNS]]


def _is_secondary(metric: str) -> bool:
    known = metric_of(metric)
    return known is None or not known.primary


def _row(place: int, run: Subject, columns: Sequence[tuple[str, tuple[Fact, ...]]]) -> tuple[str, ...]:
    measured = run.measured
    cells = []
    for metric, case in columns:
        one = next((item for item in measured.measurements if item.case == case), None)
        series = None if one is None else series_of(one, (metric,))
        cells.append("-" if one is None or series is None else figure(series, one).words)
    by = measured.tool if measured.origin == "own" else f"{measured.tool} ({ORIGINS[measured.origin]})"
    if measured.tool == measured.origin:
        by = ORIGINS[measured.origin]
    said = ", ".join(part for part in (measured.label, run.note, *run.tags) if part)
    name = f"{measured.run_id} ({said})" if said else measured.run_id
    when = moment(measured.created_unix_s)
    return (name, str(place), when, by, measured.host or UNKNOWN, *cells, "; ".join(run.invalid))
