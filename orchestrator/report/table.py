"""Columns of text."""

from collections.abc import Sequence

from orchestrator.report.shown import visible


def listed(rows: Sequence[Sequence[str]], width: int, indent: str = "  ") -> list[str]:
    """A table, or where it is too wide its first column on lines of its own with the other columns below."""
    lines = table(rows, indent)
    if max(map(len, lines), default=0) <= width:
        return lines
    others = table([row[1:] for row in rows], f"{indent}    ")
    names = [f"{indent}{row[0]}" for row in rows]
    return [line for pair in zip(names, others, strict=True) for line in pair]


def table(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Left-aligned columns, two spaces apart; the last column is not padded.

    A cell is one line whatever it holds: a line end in a name from elsewhere would forge a row.
    """
    if not rows:
        return []
    rows = [[visible(cell, kept="") for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        (indent + "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True))).rstrip() for row in rows
    ]
