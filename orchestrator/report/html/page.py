"""The document as one HTML file."""

import base64
import gzip
import hashlib
from typing import TYPE_CHECKING, Any

from orchestrator.report.document.blocks import Block, Chart, Document, Items, Table, Text
from orchestrator.report.document.values import without_samples
from orchestrator.report.document_json import json_text
from orchestrator.report.html.drawing import DASHES, drawn, role_of
from orchestrator.report.html.svg import inline
from orchestrator.report.shown import shown

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_DATA = 3_000_000
"""Bytes of data, packed, that a page carries along."""
PACKED_FROM = 200_000
"""Bytes of JSON from which it is packed."""
POLICY = "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
LONG_WORD = 26
MOST_STACKED = 60
"""Rows up to which a table of many columns becomes a card a row where the window is narrow; longer ones scroll."""
FEW_COLUMNS = 3
"""Columns that a narrow window has room for."""
MARKS = (
    "M10 5a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M10 1h8v8h-8z",
    "M14 0l5 5-5 5-5-5z",
    "M14 0l5 9h-10z",
    "M14 10l5-9h-10z",
    "M12.5 0h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
    "M10.5 0l3.5 3.3L17.5 0 19 1.5 15.7 5 19 8.5 17.5 10 14 6.7 10.5 10 9 8.5 12.3 5 9 1.5z",
    "M14 0l1.3 3.6h3.7l-3 2.3 1.1 3.7-3.1-2.2-3.1 2.2L12 5.900 9 3.600h3.700z",
)
"""The markers of `drawing.MARKERS` in their order."""
VERDICT_CLASSES = {
    "improved": "good",
    "equivalent": "plain",
    "the same run": "plain",
    "pays": "good",
    "regressed": "bad",
    "invalid": "bad",
    "not comparable": "bad",
    "does not pay": "bad",
}


def html_page(document: Document) -> str:
    """The whole file; the same for the same document."""
    environment = _environment()
    style = environment.get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    data, ending, whole = _data(document)
    return environment.get_template("page.html").render(
        document=document,
        style=style,
        policy=POLICY.format(digest=digest),
        data=data,
        data_ending=ending,
        data_whole=whole,
        data_name=f"{document.file_stem}.{ending}",
    )


def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - other formats need none

    environment = Environment(
        loader=PackageLoader("orchestrator.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shown": shown,
        "kind": _kind,
        "svg": _svg,
        "classes": _classes,
        "breaks": _breaks,
        "stacks": _stacks,
    }
    environment.globals["role_of"] = role_of
    environment.globals["dash_of"] = _dash_of
    environment.globals["marker_of"] = _marker_of
    return environment


def _kind(block: Block) -> str:
    return {Text: "text", Items: "items", Table: "table", Chart: "chart"}[type(block)]


def _svg(chart: Chart) -> Any:
    """Markup made here alone: the element's texts are escaped where it is written."""
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(inline(drawn(chart), name=chart.name, title=shown(chart.title), told=shown(chart.told)))  # noqa: S704


def _classes(cell: str, is_verdict: bool) -> str:
    """What a cell's style depends on."""
    found = ["long"] if _breaks(cell) else []
    found += [] if cell else ["empty"]
    return " ".join([*found, *(("mark", VERDICT_CLASSES.get(cell, "unsure")) if is_verdict else ())])


def _stacks(block: Table) -> bool:
    """Whether a narrow window shows a card a row: columns beside each other would be cut, the verdict first of all."""
    return len(block.head) > FEW_COLUMNS and len(block.rows) <= MOST_STACKED


def _breaks(text: str) -> bool:
    """Whether a cell holds a word that must be broken, or it would push the others out of sight."""
    return any(len(word) > LONG_WORD for word in text.split())


def _marker_of(number: int) -> str:
    """A swatch's mark, like the line's, as the path of an SVG."""
    return MARKS[number % len(MARKS)]


def _dash_of(number: int, style: str) -> str:
    """A swatch's dashes, like the line's."""
    dash = DASHES[1] if style == "step" else DASHES[number % len(DASHES)]
    return "" if isinstance(dash, str) else ",".join(map(str, dash[1]))


def _data(document: Document) -> tuple[str | None, str, bool]:
    """The values as a data URL with its file's ending, and whether raw samples are among them.

    None where even the figures alone are too much.
    """
    for whole in (True, False):
        values = document.values if whole else without_samples(dict(document.values))
        data, kind, ending = json_text(values).encode(), "application/json", "json"
        if len(data) > PACKED_FROM:
            data, kind, ending = gzip.compress(data, mtime=0), "application/gzip", "json.gz"
        if len(data) <= MOST_DATA:
            return f"data:{kind};base64,{base64.b64encode(data).decode()}", ending, whole
    return None, "", False
