"""What a search is asked for, and what it leaves: shared by its stages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from remote_payload.schema.standalone import SkippedReading
from remote_payload.standalone.graph import Graph, Reading
from remote_payload.standalone.measure.factors import Choices
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Tally

STAGES = ("full", "search", "factor", "screen")
"""The furthest first."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is searched for, and how widely."""

    captured: int
    slots: int
    states: tuple[int, ...] | None
    """Labels of the captured states."""
    declared: Reading | None
    """The wiring that the config declares, under the checkpoint's own computation."""
    wanted: Reading | None = None
    """A wiring that is measured on all rows whatever the search finds."""
    offsets: tuple[int, ...]
    steps: int
    keep: int
    """How many readings survive the first screen."""
    own: Graph
    """The checkpoint's own computation."""
    choices: Choices | None
    """What else it may be; None = slots and offsets alone are searched."""

    def graph(self, reading: Reading) -> Graph:
        """The computation of a reading."""
        return reading.graph or self.own

    def under(self, reading: Reading, graph: Graph) -> Reading:
        """The reading's slots and offset under another computation."""
        return reading.with_graph(graph, self.own)


@dataclass
class Track:
    """What the stages of one search leave behind."""

    told: list[Tally] = field(default_factory=list)
    skipped: list[SkippedReading] = field(default_factory=list)

    def skip(self, name: str, reason: str) -> None:
        """Note what was not tried, or not kept."""
        self.skipped.append(SkippedReading(name=name, reason=reason))

    def all_steps(self, sample: Sample, reading: Reading, steps: int) -> Tally:
        """One reading on the whole sample."""
        tally = Tally(reading=reading, stage="search")
        for row in sample.rows("all steps of one reading"):
            row.add([tally], steps)
        self.told.append(tally)
        return tally


def wiring(reading: Reading) -> tuple[tuple[int, ...], int]:
    """Slots and offset."""
    return reading.slots, reading.token_offset


def once(told: Sequence[Tally]) -> list[Tally]:
    """Every reading once, as far as it got, with the seconds of all its stages; the furthest and best first.

    Of equal rows the one that was held against another reading stands.
    """
    seconds: dict[str, float] = {}
    kept: dict[str, Tally] = {}
    for tally in told:
        name = tally.reading.name
        seconds[name] = seconds.get(name, 0.0) + tally.seconds
        if name not in kept or _extent(tally) > _extent(kept[name]):
            kept[name] = tally
    for name, tally in kept.items():
        tally.seconds = seconds[name]
    return sorted(kept.values(), key=lambda tally: (STAGES.index(tally.stage), *tally.rank))


def _extent(tally: Tally) -> tuple[bool, bool, int, bool]:
    return tally.stage == "full", tally.stage != "screen", tally.rows, tally.pair is not None
