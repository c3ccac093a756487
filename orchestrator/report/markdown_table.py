"""Tables and words for Markdown; nothing that a run brought along can end a cell or become markup."""

from collections.abc import Sequence

_SPECIAL = "\\`*_{}[]<>()#+-!|~@&$"
_PLAIN = "_+-()"  # harmless within a cell, and figures are full of them


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first row is the head; columns but the first are right-aligned."""
    head, *body = rows
    rule = ["---", *("---:" for _ in head[1:])]
    return [
        f"| {' | '.join(row)} |"
        for row in ([escaped(cell) for cell in head], rule, *([escaped(c) for c in r] for r in body))
    ]


def escaped(text: str) -> str:
    """The text as it is read, whatever it holds."""
    found = "".join(f"\\{char}" if char in _SPECIAL and char not in _PLAIN else char for char in text)
    return " ".join(found.split())
