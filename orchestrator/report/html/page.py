"""The document as one HTML file."""

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any

from orchestrator.report.document.blocks import Block, Chart, Document, Items, Table, Text
from orchestrator.report.document.values import without_samples
from orchestrator.report.document_json import json_text
from orchestrator.report.html.drawing import DASHES, drawn, role_of
from orchestrator.report.html.shown import shown
from orchestrator.report.html.svg import inline

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_DATA = 1_000_000
"""Bytes of JSON that a page carries along."""
POLICY = "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
VERDICT_CLASSES = {
    "improved": "good",
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
    data, whole = _data(document)
    return environment.get_template("page.html").render(
        document=document,
        style=style,
        policy=POLICY.format(digest=digest),
        data=data,
        data_whole=whole,
        data_name=f"{file_stem(document)}.json",
    )


def file_stem(document: Document) -> str:
    """A file's name made of the title, without an ending."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"report-{document.title}")[:100].strip("-.")


def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - other formats need none

    environment = Environment(
        loader=PackageLoader("orchestrator.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "kind": _kind, "svg": _svg, "verdict_class": _verdict_class}
    environment.globals["role_of"] = role_of
    environment.globals["dash_of"] = _dash_of
    return environment


def _kind(block: Block) -> str:
    return {Text: "text", Items: "items", Table: "table", Chart: "chart"}[type(block)]


def _svg(chart: Chart) -> Any:
    """Markup made here alone: the element's texts are escaped where it is written."""
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(inline(drawn(chart), name=chart.name, title=shown(chart.title), told=shown(chart.told)))  # noqa: S704


def _verdict_class(text: str) -> str:
    return VERDICT_CLASSES.get(text, "unsure")


def _dash_of(number: int, style: str) -> str:
    """A swatch's dashes, like the line's."""
    dash = DASHES[1] if style == "step" else DASHES[number % len(DASHES)]
    return "" if isinstance(dash, str) else ",".join(map(str, dash[1]))


def _data(document: Document) -> tuple[str | None, bool]:
    """The values as a data URL, without raw samples where they are too many; None where even that is too much."""
    text, whole = json_text(document.values), True
    if len(text) > MOST_DATA:
        text, whole = json_text(without_samples(dict(document.values))), False
    if len(text) > MOST_DATA:
        return None, False
    return f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}", whole
