"""A pivot as a text, as Markdown and as JSON values."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from orchestrator.compare.matching import case_words
from orchestrator.compare.pivot import Cell, PivotTable
from orchestrator.report.diff_words import cell, change_words
from orchestrator.report.lines import wrapped
from orchestrator.report.markdown_table import markdown_table
from orchestrator.report.table import listed

LEGEND = (
    "[..] is the 95 % interval of the change {against}; verdicts are corrected over the whole table "
    "(Benjamini-Hochberg). Confirm a winner in runs of its own: the best of many looks better than it is."
)


def pivot_text(tables: Sequence[PivotTable], width: int = 80, *, markdown: bool = False) -> str:
    """Every table, the metric first."""
    if not tables:
        return "no load to show"
    lines: list[str] = []
    for table in tables:
        rest = case_words(table.rest)
        title = f"{table.metric} by {table.key}{f', {rest}' if rest else ''}"
        rows = [[table.key, *table.columns], *([value, *map(_words(table), row)] for value, row in table.rows)]
        if markdown:
            lines += [f"**{title}** ({table.definition})", "", *markdown_table(rows), ""]
        else:
            lines += [*wrapped(title, width), *wrapped(table.definition, width, "  "), *_fitted(rows, width), ""]
    single = len(tables[0].columns) == 1
    legend = LEGEND.format(against="against the first row" if single else f"against {tables[0].columns[0]}")
    return "\n".join([*lines, legend] if markdown else [*lines, *wrapped(legend, width)])


def pivot_json(tables: Sequence[PivotTable]) -> dict[str, Any]:
    """The same as values; unknown is None."""
    return {
        "report_version": 1,
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


def _fitted(rows: list[list[str]], width: int) -> list[str]:
    """As columns where they fit, else a line a cell."""
    lines = listed(rows, width)
    if max(map(len, lines)) <= width:
        return lines
    found = []
    for value, *cells in rows[1:]:
        found.append(f"  {value}")
        found += [
            line
            for name, text in zip(rows[0][1:], cells, strict=True)
            for line in wrapped(f"  {name}: {text}", width, "  ")
        ]
    return found


def _words(table: PivotTable) -> Any:
    def words(item: Cell | None) -> str:
        if item is None:
            return "-"
        shown = cell(item.figure.value, table.unit)
        if item.comparison is None:
            return f"{shown} INVALID" if item.barred else shown
        if item.comparison.change.value is None:
            return f"{shown} ({item.comparison.verdict}{f': {item.barred[0]}' if item.barred else ''})"
        return f"{shown} {change_words(item.comparison)} {item.comparison.verdict}"

    return words
