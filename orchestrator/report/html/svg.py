"""matplotlib's SVG made fit to stand inside a page.

No style attributes (a strict policy forbids them), ids of its own, roles as classes, a title and a description for who
cannot see it.
"""

import re
from xml.etree import ElementTree  # written by ourselves a moment before

from orchestrator.report.html.drawing import ROLES

SVG = "http://www.w3.org/2000/svg"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
DROPPED = ("metadata", "style")
_BY_COLOUR = {colour: role for role, colour in ROLES.items()}
_LINK = re.compile(r"url\(#([^)]+)\)")
_KEPT = (
    "fill-opacity", "font-size", "opacity", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap",
    "stroke-linejoin", "stroke-opacity", "stroke-width", "text-anchor",
)  # fmt: skip
"""Properties that are attributes as well."""


def inline(svg: str, *, name: str, title: str, told: str) -> str:
    """The figure as an `<svg>` element for the body of a page; `name` makes its ids unique."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg.encode())  # noqa: S314 - our own text
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in DROPPED:
                parent.remove(child)
    for element in root.iter():
        _own_ids(element, name)
        _without_style(element)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-told")
    root.set("preserveAspectRatio", "xMidYMid meet")
    for tag, end, text in (("desc", "told", told), ("title", "title", title)):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{end}"})
        element.text = text
        root.insert(0, element)
    return ElementTree.tostring(root, encoding="unicode")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _own_ids(element: ElementTree.Element, name: str) -> None:
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    link = element.attrib.pop(XLINK_HREF, None)
    if link is not None:
        element.set("href", f"#{name}-{link.removeprefix('#')}")
    for key, value in element.attrib.items():
        element.set(key, _LINK.sub(rf"url(#{name}-\1)", value))


def _without_style(element: ElementTree.Element) -> None:
    classes = []
    for part in element.attrib.pop("style", "").split(";"):
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if not colon:
            continue
        if key in ("fill", "stroke"):
            role = _BY_COLOUR.get(value)
            if role is None:
                element.set(key, value)
            else:
                classes.append(f"{key}-{role}")
        elif key == "font":
            element.set("font-size", value.split()[0])
        elif key in _KEPT:
            element.set(key, value)
    for key in ("fill", "stroke"):  # some come as attributes
        role = _BY_COLOUR.get(element.attrib.get(key, ""))
        if role is not None:
            del element.attrib[key]
            classes.append(f"{key}-{role}")
    if classes:
        element.set("class", " ".join(classes))
