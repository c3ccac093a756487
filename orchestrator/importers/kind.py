"""How one kind of file is known and read."""

import datetime
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from orchestrator.importers.point import Point
from orchestrator.importers.row import Row


def nothing(_row: Row) -> None:
    """For a kind without it."""


class Kind(NamedTuple):
    """One tool's results."""

    name: str
    words: str
    """The tool; also the harness of its figures."""
    fits: Callable[[Row], bool]
    """Whether a row is one of its results, or one that it passes over."""
    points: Callable[[Row], Sequence[Point]]
    """What a row measured. Raises InvalidRunError naming place and key."""
    unknown: tuple[str, ...] = ()
    """What no file of this kind tells."""
    passed_over: Callable[[Row], str | None] = nothing
    """Why a row is no measurement, in a sentence; None = it is one."""
    when: Callable[[Row], datetime.datetime | None] = nothing
    """When the row says that it was measured; without a time zone where the tool tells none."""


_STAMP = re.compile(r"(?<!\d)(20\d{6})[-_](\d{6})(?!\d)")


def stamp_in(text: str) -> datetime.datetime | None:
    """The moment in a text such as `20260131-235959`; None where there is none."""
    found = _STAMP.search(text)
    try:
        return None if found is None else datetime.datetime.strptime("".join(found.groups()), "%Y%m%d%H%M%S")
    except ValueError:
        return None
