"""Tables and words for Markdown; nothing that a run brought along can end a cell or become markup."""

from collections.abc import Sequence

_SPECIAL = "\\`*_{}[]<>()#+-!|~@&$"
_PLAIN = "_+-()"  # harmless within a cell, and figures are full of them
LONGEST_FIGURE = 40
"""Characters; a longer cell is prose."""


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first row is the head; columns of figures are right-aligned, those of prose and the first are not."""
    head, *body = rows
    prose = [any(len(row[at]) > LONGEST_FIGURE for row in body) for at in range(len(head))]
    rule = ["---" if at == 0 or is_prose else "---:" for at, is_prose in enumerate(prose)]
    return [
        f"| {' | '.join(row)} |"
        for row in ([escaped(cell) for cell in head], rule, *([escaped(c) for c in r] for r in body))
    ]


def escaped(text: str) -> str:
    """The text as it is read, whatever it holds."""
    found = "".join(f"\\{char}" if char in _SPECIAL and char not in _PLAIN else char for char in text)
    return " ".join(found.split())
