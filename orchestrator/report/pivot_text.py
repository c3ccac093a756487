"""A pivot as a text, as Markdown and as JSON values."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from orchestrator.compare.definitions import read_out
from orchestrator.compare.matching import case_words
from orchestrator.compare.pivot import Cell, PivotTable
from orchestrator.report.diff_words import cell_within, change_words, p_words, samples, unsure_words
from orchestrator.report.lines import wrapped
from orchestrator.report.markdown_table import escaped, markdown_table
from orchestrator.report.table import listed
from orchestrator.report.words import some_of

MOST_NAMED = 4
LEGEND = (
    "[..] is a 95 % interval. The change is {against}; p and verdicts are corrected over the whole table "
    "(Benjamini-Hochberg). Confirm a winner in runs of its own: the best of many looks better than it is."
)


def pivot_text(tables: Sequence[PivotTable], width: int = 80, *, markdown: bool = False) -> str:
    """Every table, the metric first."""
    if not tables:
        return "no load to show"
    lines: list[str] = []
    for table in tables:
        rest, meaning = case_words(table.rest), read_out(table.definition)
        title = f"{table.metric} by {table.key}{f', {rest}' if rest else ''}"
        rows, remarks = _rows(table), [*_unsure(table), *_barred(table)]
        if markdown:
            lines += [f"**{escaped(title)}** ({escaped(meaning)})", "", *markdown_table(rows), ""]
            lines += [f"- {escaped(text)}" for text in remarks] + [""] * bool(remarks)
        else:
            lines += [*wrapped(title, width), *wrapped(meaning, width, "  "), *listed(rows, width)]
            lines += [line for text in remarks for line in wrapped(text, width, "  ")] + [""]
    lines += [
        line for text in uncompared(tables) for line in ([escaped(text), ""] if markdown else wrapped(text, width))
    ]
    single = len(tables[0].columns) == 1
    legend = LEGEND.format(against="against the first row" if single else f"against {tables[0].columns[0]}")
    return "\n".join([*lines, escaped(legend)] if markdown else [*lines, *wrapped(legend, width)])


def uncompared(tables: Sequence[PivotTable]) -> list[str]:
    """That a load was not compared at all, as each side has values of its own, and how it would be; else nothing."""
    apart = [table for table in tables if _is_apart(table)]
    if not apart:
        return []
    key, columns = apart[0].key, ",".join(apart[0].columns)
    loads = "; ".join(dict.fromkeys(case_words(table.rest) or "all" for table in apart))
    return [
        f"nothing was compared ({loads}): no value of {key} is on two sides. Taken together as one side they are "
        f"compared value by value: diff {columns} --by {key}"
    ]


def _is_apart(table: PivotTable) -> bool:
    cells = [cell for _, row in table.rows for cell in row if cell is not None]
    compared = any(cell.comparison is not None or cell.barred for cell in cells)
    return len(table.columns) > 1 and len(cells) > 1 and not compared


def pivot_json(tables: Sequence[PivotTable]) -> dict[str, Any]:
    """The same as values; unknown is None."""
    return {
        "report_version": 1,
        "notes": uncompared(tables),
        "tables": [
            {
                "key": table.key,
                "metric": table.metric,
                "unit": table.unit,
                "definition": table.definition,
                "load": {fact.name: fact.value for fact in table.rest},
                "columns": list(table.columns),
                "rows": [
                    {"value": value, "cells": [None if item is None else dataclasses.asdict(item) for item in row]}
                    for value, row in table.rows
                ],
            }
            for table in tables
        ],
    }


def _rows(table: PivotTable) -> list[list[str]]:
    """A line a value and side: its figure with interval and n, and the change from the reference with its p."""
    rows = [[table.key, "figure", "n", "change", "p", "verdict"]]
    for value, cells in table.rows:
        if not any(cells):  # e.g. accept lengths of plain decoding
            continue
        for column, item in zip(table.columns, cells, strict=True):
            rows.append([_named(table, value, column), *_words(item, table.unit)])
    return rows


def _words(item: Cell | None, unit: str) -> list[str]:
    if item is None:
        return ["-", "", "", "", ""]
    figure, compared = cell_within(item.figure, unit), item.comparison
    if compared is None:
        return [figure, str(item.figure.rows), "", "", "invalid" if item.barred else "reference"]
    return [figure, samples(compared), change_words(compared), p_words(compared), compared.verdict]


def _barred(table: PivotTable) -> list[str]:
    """Why lines have no change, each reason once with the lines it concerns."""
    found: dict[str, list[str]] = {}
    for value, cells in table.rows:
        for column, item in zip(table.columns, cells, strict=True):
            for reason in item.barred if item is not None else ():
                found.setdefault(reason, []).append(_named(table, value, column))
    return [f"not compared, {some_of(names, MOST_NAMED)}: {reason}" for reason, names in found.items()]


def _unsure(table: PivotTable) -> list[str]:
    """What the samples of unsure lines could not show."""
    return unsure_words(
        (_named(table, value, column), item.comparison)
        for value, cells in table.rows
        for column, item in zip(table.columns, cells, strict=True)
        if item is not None and item.comparison is not None
    )


def _named(table: PivotTable, value: str, column: str) -> str:
    return value if len(table.columns) == 1 else f"{value}: {column}"
