"""Published numbers as a table and as JSON values: always with who published them, never as if measured here."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from orchestrator.records.published import PublishedPoint
from orchestrator.report.lines import wrapped
from orchestrator.report.table import listed


def published_text(points: Sequence[PublishedPoint], model: str | None, width: int) -> str:
    """A line a point, by source, or two where one is too long; `!` marks a plain side that cannot be right."""
    if not points:
        return f"nobody published numbers of `{model}` that are known here"
    lines = wrapped("Published by others, not measured by this tool. AL = accept length, bonus token in.", width)
    sources = dict.fromkeys((point.source, point.tool) for point in points)
    for source, tool in sources:
        mine = [point for point in points if (point.source, point.tool) == (source, tool)]
        lines += ["", *wrapped(f"{source} ({tool})", width)]
        lines += listed([["published:", "users", "AL", "tok/s", "plain", "speed-up"], *map(_cells, mine)], width)
    if any(point.is_suspicious for point in points):
        words = "! a speculative step would cost less than a plain one: that plain side is suspicious"
        lines += ["", *wrapped(words, width)]
    words = (
        "`baseline show published:NAME` tells more, `diff RUN --against published:NAME` compares; the beginning of a "
        "name, up to a `/`, means all below it. Unknown is `-`."
    )
    return "\n".join([*lines, "", *wrapped(words, width)])


def published_json(points: Sequence[PublishedPoint]) -> dict[str, Any]:
    """The same as values."""
    return {
        "origin": "published",
        "points": [
            {**dataclasses.asdict(point), "speedup": point.speedup, "suspicious": point.is_suspicious}
            for point in points
        ],
    }


def _cells(point: PublishedPoint) -> list[str]:
    mark = " !" if point.is_suspicious else ""
    return [
        point.name,
        "-" if point.concurrency is None else str(point.concurrency),
        _number(point.accept_length, 3),
        _number(point.output_tok_s, 1),
        _number(point.plain_output_tok_s, 1),
        _number(point.speedup, 2) + mark,
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
