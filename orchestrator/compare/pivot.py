"""A table by the values of one circumstance: a row a value, a column a side; against the first side, or the first row.

Sweeps are explored with many comparisons at once, so their p-values share Benjamini-Hochberg's correction.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison
from orchestrator.compare.diff import compare_case, decides, is_same
from orchestrator.compare.fingerprint import implied, require_known, value_of
from orchestrator.compare.pooling import Case, Operand, put_together
from orchestrator.compare.same_work import same_numbers
from orchestrator.compare.statistics import adjust
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Measurement

UNTOLD = "not told"
Cells = dict[tuple[str, int], Measurement]
"""By value of the circumstance and number of the side."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One side at one value; no `comparison` where it is the reference, or the reference has nothing there."""

    figure: Estimate
    comparison: Comparison | None = None
    barred: tuple[str, ...] = ()
    """Why it cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class PivotTable:
    """One metric of otherwise equal loads."""

    key: str
    metric: str
    unit: str
    definition: str
    rest: Case
    """What the loads have in common."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    """(value, a cell a column); None where a side has no such load."""


def pivot(operands: Sequence[Operand], key: str, asked: Asked) -> tuple[PivotTable, ...]:
    """Every metric that decides, by `key`. Raises UsageError where no measurement tells of it."""
    everything = [item for operand in operands for item in operand.measurements]
    require_known((key,), "--by", everything)
    asked.require_loads(everything)
    varied = dataclasses.replace(asked, vary=(*asked.vary, key))
    tables: list[PivotTable] = []
    for rest, cells in _grouped(operands, key, asked).items():
        tables += _tables(rest, cells, operands, key, varied)
    return _corrected(tables)


def _grouped(operands: Sequence[Operand], key: str, asked: Asked) -> dict[Case, Cells]:
    """Loads that are alike but for the key's own facts; several runs of one value are put together."""
    factors = implied((key,))
    found: dict[Case, dict[tuple[str, int], list[Measurement]]] = {}
    for column, operand in enumerate(operands):
        for item in operand.measurements:
            if asked.keeps(item):
                rest = tuple(fact for fact in item.case if fact.name not in factors)
                value = value_of(item, key) or UNTOLD
                found.setdefault(rest, {}).setdefault((value, column), []).append(item)
    return {
        rest: {at: some[0] if len(some) == 1 else put_together(some) for at, some in cells.items()}
        for rest, cells in found.items()
    }


def _tables(rest: Case, cells: Cells, operands: Sequence[Operand], key: str, asked: Asked) -> list[PivotTable]:
    columns = tuple(item.label for item in operands)
    values = sorted({value for value, _ in cells}, key=_numerically)
    compared = {at: _against(at, cells, values, operands, asked) for at in cells}
    metrics: dict[str, tuple[str, str]] = {}
    for item in cells.values():
        itself = compare_case(item, item, dataclasses.replace(asked, force=True), typed=False).comparisons
        for line in itself:
            if decides(line, asked, itself):
                words = next(series.definition for series in item.series if series.metric == line.metric.name)
                metrics.setdefault(line.metric.name, (line.metric.unit, words))
    return [
        PivotTable(
            key=key,
            metric=name,
            unit=unit,
            definition=words,
            rest=rest,
            columns=columns,
            rows=tuple(
                (value, tuple(_cell(compared.get((value, column)), name) for column in range(len(columns))))
                for value in values
            ),
        )
        for name, (unit, words) in metrics.items()
    ]


def _against(
    at: tuple[str, int], cells: Cells, values: Sequence[str], operands: Sequence[Operand], asked: Asked
) -> CaseComparison:
    """With the first column of its row; with one column alone, with the first row. The reference with itself."""
    value, column = at
    reference = cells.get((value, 0) if len(operands) > 1 else (values[0], 0), cells[at])
    mine = cells[at]
    same = column > 0 and is_same(operands[column], operands[0]) and same_numbers(mine, reference)
    names = tuple(dict.fromkeys(item.metric for side in (mine, reference) for item in side.series))
    each = dataclasses.replace(asked, metrics=asked.metrics or names)  # also what the reference has not
    return compare_case(mine, reference, each, typed=False, same=same)


def _cell(case: CaseComparison | None, metric: str) -> Cell | None:
    if case is None:
        return None
    found = next((item for item in case.comparisons if item.metric.name == metric), None)
    if found is None or found.ours.value is None:
        return None
    barred = (*case.ours.invalid, *case.theirs.invalid, *(item.name for item in case.hard))
    if found.theirs.value is None:
        barred = (*barred, f"the reference has no {metric}")
    is_reference = case.ours is case.theirs
    return Cell(figure=found.ours, comparison=None if is_reference else found, barred=barred)


def _corrected(tables: Sequence[PivotTable]) -> tuple[PivotTable, ...]:
    flat = [
        cell.comparison
        for table in tables
        for _, row in table.rows
        for cell in row
        if cell is not None and cell.comparison is not None
    ]
    after = dict(zip(map(id, flat), adjust(flat, "Benjamini-Hochberg"), strict=True))

    def settled(cell: Cell | None) -> Cell | None:
        if cell is None or cell.comparison is None:
            return cell
        return dataclasses.replace(cell, comparison=after[id(cell.comparison)])

    return tuple(
        dataclasses.replace(
            table, rows=tuple((value, tuple(settled(cell) for cell in row)) for value, row in table.rows)
        )
        for table in tables
    )


def _numerically(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value
