"""Columns of text."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Left-aligned columns, two spaces apart; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        (indent + "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True))).rstrip() for row in rows
    ]
