"""The table of a sweep as text and as values: every figure with its n and interval, every failure kept."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from orchestrator.compare.metrics import metric_of
from orchestrator.compare.stats import Estimate
from orchestrator.report.lines import wrapped
from orchestrator.report.sweep_text import counts_text, failures_text, progress_json, skipped_text
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
    lines += rows_text((table,), width)
    failures = failures_text(table.progress, table.job, width)
    if failures:
        lines += ["", "Not measured:", *failures]
    if table.job.skipped:
        lines += ["", *skipped_text(table.job, width)]
    if table.proposals:
        names = {row.point.point_id: point_words(row.point) for row in table.rows}
        lines += ["", f"Proposed to leave out (`sweep resume {table.run_id} --prune` does):"]
        lines += [
            line for one in table.proposals for line in wrapped(f"{names[one.point_id]}: {one.reason}", width, "  ")
        ]
    if table.absent:
        lines += ["", *wrapped(_absent(table), width)]
    lines += _recommendation(table, width)
    told = None if table.job.confirms is not None else UNCONFIRMED.format(run_id=table.run_id)
    lines += legend_text((table,), width, told)
    return "\n".join(lines)


def rows_text(tables: Sequence[SweepTable], width: int) -> list[str]:
    """The rows of one table, or of several that stand as one: then with the host of each."""
    several = len(tables) > 1
    is_compared, shown = _is_compared(tables), _shown(tables)
    heads = ["point", *(["host"] if several else []), "n", *(HEADS[name] for name in shown)]
    rows = [[*heads, *(["against plain"] if is_compared else [])]]
    notes: list[str] = []
    for table in tables:
        for row in table.rows:
            cells = ["-" if _is_none(row, name) else _figure(row.figures.get(name), name) for name in shown]
            where = [table.host] if several else []
            compared = [_against(row)] if is_compared else []
            rows.append([point_words(row.point), *where, _blocks(row), *cells, *compared])
            on = f" on {table.host}" if several else ""
            for words in row.invalid:
                notes += wrapped(f"INVALID {point_words(row.point)}{on}: {words}", width, "  ")
    return [*listed(rows, width), *notes]


def legend_text(tables: Sequence[SweepTable], width: int, unconfirmed: str | None) -> list[str]:
    """What the columns mean; nothing where nothing was measured. `unconfirmed`: what is said of the best of many."""
    shown = _shown(tables)
    if not any(table.metrics for table in tables):
        return []
    words = [LEGEND, COMPARED] if _is_compared(tables) else [LEGEND]
    if _is_compared(tables) and unconfirmed is not None:
        words.append(unconfirmed)
    lines = ["", *wrapped(" ".join(words), width)]
    for name in shown:
        found = dict.fromkeys(table.definitions[name] for table in tables if name in table.definitions)
        lines += wrapped(f"{HEADS[name]}: {' | '.join(found) or UNKNOWN}", width)
    return lines


def _shown(tables: Sequence[SweepTable]) -> list[str]:
    return [name for name in HEADS if any(name in table.metrics for table in tables)]


def _is_compared(tables: Sequence[SweepTable]) -> bool:
    return any(row.against_plain is not None for table in tables for row in table.rows)


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
    told["skipped"] = [{"settings": json.loads(one.changes_json), "reason": one.reason} for one in table.job.skipped]
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
    lacking = sum(row.measured < len(row.standings) for row in table.rows)
    if lacking:
        lines.append(f"  {lacking} of its {len(table.rows)} points are not measured in every block")
    return lines


def _absent(table: SweepTable) -> str:
    runs = "run is" if len(table.absent) == 1 else "runs are"
    return (
        f"{len(table.absent)} measured {runs} not on this laptop: "
        f"`eagle3-remote sweep collect {table.run_id}` brings them home"
    )
