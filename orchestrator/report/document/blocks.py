"""What a report is made of: a verdict, then sections of texts, tables and charts; no format knows more than these.

All texts are plain: whoever writes a format escapes them. Numbers in charts are raw, in base units or as said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Tone = Literal["plain", "good", "bad", "unsure"]


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph, or lines that are there to be copied."""

    text: str
    kind: Literal["plain", "note", "warning", "definition", "copy"] = "plain"


@dataclass(frozen=True, kw_only=True)
class Items:
    """A list."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under one head; the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    verdicts: int | None = None
    """The column that holds verdicts, which a format may colour."""
    folded: bool = False
    """Detail: shown when asked for, where a format can fold."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One line, one set of points, or the bars of one run."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    """Ends of each y's interval; empty or None = none is known."""
    style: Literal["line", "points", "step"] = "line"


@dataclass(frozen=True, kw_only=True)
class Guide:
    """A line that tells something: y = slope * x + height."""

    name: str
    height: float = 0.0
    slope: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One figure. `x_label` and `y_label` are our own words; names of traces may be anything, and stand outside."""

    name: str
    """Short and unique in the document, e.g. `throughput-1`."""
    title: str
    told: str
    """The whole content in words, for who cannot see it."""
    definition: str
    x_label: str
    y_label: str
    kind: Literal["traces", "bars"] = "traces"
    traces: tuple[Trace, ...]
    guides: tuple[Guide, ...] = ()
    x_ticks: tuple[str, ...] = ()
    """Words for x = 0, 1, ...; empty = a numeric axis."""
    y_from_zero: bool = True
    log2_x: bool = False


Block = Text | Items | Table | Chart


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and what stands under it."""

    name: str
    """Unique in the document; letters and hyphens."""
    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Document:
    """The whole report."""

    title: str
    file_stem: str
    """A file's name for it, without an ending."""
    verdict: str
    """The answer in a sentence."""
    tone: Tone = "plain"
    about: str
    """What was compared or shown, and when."""
    sections: tuple[Section, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    """The same as values for a machine; unknown is None."""
    tool: str = "eagle3-remote"
