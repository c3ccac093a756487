"""The document as Markdown, for a pull request or an issue: what stands folded in the page stays folded here."""

from collections.abc import Iterator

from orchestrator.report.document.blocks import Block, Chart, Document, Items, Table, Text
from orchestrator.report.markdown_table import escaped, markdown_table
from orchestrator.report.shown import shown

MOST_ROWS = 60
MOST_WORDS = 700
"""Characters of a figure's content in words."""


def document_markdown(document: Document) -> str:
    """The whole report. Figures are told in words, as Markdown cannot hold them."""
    lines = [f"# {_safe(document.title)}", "", f"**{_safe(document.verdict)}**", "", _safe(document.about), ""]
    for section in document.sections:
        lines += [f"## {_safe(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        if block.kind == "copy":
            fence = _fence(block.text)
            yield from (fence, shown(block.text), fence)
        else:
            yield f"_{_safe(block.text)}_" if block.kind in ("note", "definition") else _safe(block.text)
    elif isinstance(block, Items):
        if block.title:
            yield from (f"**{_safe(block.title)}**", "")
        yield from (f"- {_safe(item)}" for item in block.items)
    elif isinstance(block, Chart):
        yield f"**{_safe(block.title)}**: {_safe(block.told, MOST_WORDS)} _{_safe(block.definition)}_"
    else:
        yield from _table(block)


def _table(block: Table) -> Iterator[str]:
    caption = _safe(block.caption)
    rows = [block.head, *block.rows[:MOST_ROWS]]
    lines = markdown_table([[shown(cell, 300) for cell in row] for row in rows])
    more = len(block.rows) - MOST_ROWS
    tail = [f"and {more} rows more: `--format csv` has all"] if more > 0 else []
    if block.folded:
        yield from ("<details>", f"<summary>{_html(block.caption)}</summary>", "", *lines, "", *tail, "</details>")
    else:
        yield from (f"{caption}:", "", *lines, *(["", *tail] if tail else []))


def _safe(text: str, most: int = 2000) -> str:
    return escaped(shown(text, most))


def _html(text: str) -> str:
    from html import escape  # noqa: PLC0415

    return escape(" ".join(shown(text, 300).split()))


def _fence(text: str) -> str:
    """Longer than any run of backticks in the text."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)
