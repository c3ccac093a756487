"""The table of a sweep as text and as values: every figure with its n and interval, every failure kept."""

import dataclasses
from typing import Any

from orchestrator.compare.metrics import metric_of
from orchestrator.compare.stats import Estimate
from orchestrator.report.lines import wrapped
from orchestrator.report.sweep_text import counts_text, failures_text, progress_json
from orchestrator.report.table import listed
from orchestrator.report.words import UNKNOWN
from orchestrator.sweep.confirmation import recommended
from orchestrator.sweep.points import point_words
from orchestrator.sweep.table import Row, SweepTable

HEADS = {
    "output_throughput_tok_s": "tok/s",
    "accept_length_pooled": "accept length",
    "best.accept_length_walk": "accept length (walk)",
    "best.first_step_accuracy": "step 1 accuracy",
}
"""What the text shows; the values have the rest as well."""
LEGEND = (
    "n = blocks measured of those planned, each a start of its own; [..] is the 95 % interval: of tok/s over the "
    "starts, of the others over prompts or rows."
)
COMPARED = (
    "against plain = change of tok/s against plain decoding at the same load; verdicts are corrected over the table "
    "(Benjamini-Hochberg)."
)
UNCONFIRMED = (
    "The best of many looks better than it is: `eagle3-remote sweep confirm {run_id}` measures the best afresh."
)


def table_text(table: SweepTable, width: int) -> str:
    """The whole report."""
    lines = [f"{table.run_id} on {table.host}: {table.progress.phase}", f"  points  {counts_text(table.progress)}", ""]
    for words in table.job.drift:
        lines[-1:-1] = wrapped(f"DRIFT: {words}; earlier and later measurements need not be alike", width, "  ")
    is_compared = any(row.against_plain is not None for row in table.rows)
    shown = [name for name in table.metrics if name in HEADS]
    heads = ["point", "n", *(HEADS[name] for name in shown), *(["against plain"] if is_compared else [])]
    rows = [heads]
    for row in table.rows:
        cells = ["-" if _is_none(row, name) else _figure(row.figures.get(name), name) for name in shown]
        rows.append([point_words(row.point), _blocks(row), *cells, *([_against(row)] if is_compared else [])])
    lines += listed(rows, width)
    for row in table.rows:
        for words in row.invalid:
            lines += wrapped(f"INVALID {point_words(row.point)}: {words}", width, "  ")
    failures = failures_text(table.progress.standings, table.job, width)
    if failures:
        lines += ["", "Not measured:", *failures]
    if table.proposals:
        names = {row.point.point_id: point_words(row.point) for row in table.rows}
        lines += ["", f"Proposed to leave out (`sweep resume {table.run_id} --prune` does):"]
        lines += [
            line for one in table.proposals for line in wrapped(f"{names[one.point_id]}: {one.reason}", width, "  ")
        ]
    if table.absent:
        lines += ["", *wrapped(_absent(table), width)]
    lines += _recommendation(table, width)
    if table.metrics:
        legend = f"{LEGEND} {COMPARED}" if is_compared else LEGEND
        if is_compared and table.job.confirms is None:
            legend += f" {UNCONFIRMED.format(run_id=table.run_id)}"
        lines += ["", *wrapped(legend, width)]
        lines += [
            line for name in shown for line in wrapped(f"{HEADS[name]}: {table.definitions.get(name, UNKNOWN)}", width)
        ]
    return "\n".join(lines)


def table_json(table: SweepTable) -> dict[str, Any]:
    """The same as values; unknown is null."""
    told = progress_json(table.run_id, table.host, table.job, table.progress)
    told["rows"] = [
        {
            "point_id": row.point.point_id,
            "point": point_words(row.point),
            "baseline": row.point.is_baseline,
            "measured": row.measured,
            "planned": len(row.standings),
            "figures": {
                name: {
                    **dataclasses.asdict(figure),
                    "unit": None if (metric := metric_of(name)) is None else metric.unit,
                    "definition": table.definitions.get(name),
                }
                for name, figure in row.figures.items()
            },
            "against_plain": None if row.against_plain is None else dataclasses.asdict(row.against_plain),
            "invalid": list(row.invalid),
        }
        for row in table.rows
    ]
    told["absent"] = list(table.absent)
    told["proposals"] = [dataclasses.asdict(one) for one in table.proposals]
    told["drift"] = list(table.job.drift)
    told["confirms"] = table.job.confirms
    told["recommended"] = [
        {"load": one.load, "point_id": None if one.row is None else one.row.point.point_id}
        for one in (recommended(table) if table.job.confirms and table.progress.is_over else ())
    ]
    return told


def _is_none(row: Row, metric: str) -> bool:
    """What plain decoding cannot have."""
    return row.point.is_baseline and metric.startswith("accept_length")


def _blocks(row: Row) -> str:
    return f"{row.measured} of {len(row.standings)}"


def _figure(figure: Estimate | None, metric: str) -> str:
    if figure is None or figure.value is None:
        return UNKNOWN
    digits = ".4g" if metric == "output_throughput_tok_s" else ".2f"
    if figure.low is None or figure.high is None:
        return f"{figure.value:{digits}}"
    return f"{figure.value:{digits}} [{figure.low:{digits}}, {figure.high:{digits}}]"


def _against(row: Row) -> str:
    found = row.against_plain
    if row.point.is_baseline:
        return "-"
    if found is None or found.change.value is None:
        return UNKNOWN
    return f"{100 * found.change.value:+.1f} % {found.verdict}"


def _recommendation(table: SweepTable, width: int) -> list[str]:
    """Of a confirmation alone, once it is over."""
    if table.job.confirms is None or not table.progress.is_over:
        return []
    lines = ["", f"From these fresh starts alone (they confirm {table.job.confirms}):"]
    for one in recommended(table):
        at = f"at {one.load}: " if one.load else ""
        change = None if one.comparison is None else one.comparison.change
        if one.row is None or change is None or change.value is None:
            words = "no recommendation, none is surely better than plain decoding"
        else:
            low, high = (UNKNOWN if bound is None else f"{100 * bound:+.1f} %" for bound in (change.low, change.high))
            settings = point_words(one.row.point)
            words = f"take {settings}: {100 * change.value:+.1f} % tok/s against plain decoding, 95 % {low} to {high}"
        lines += wrapped(f"{at}{words}", width, "  ")
    return lines


def _absent(table: SweepTable) -> str:
    runs = "run is" if len(table.absent) == 1 else "runs are"
    return (
        f"{len(table.absent)} measured {runs} not on this laptop: "
        f"`eagle3-remote sweep collect {table.run_id}` brings them home"
    )
