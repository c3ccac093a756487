"""What of a served benchmark was measured before it ended early: worth a look, never a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.counted import counted
from remote_payload.schema.bench import BenchResult, RequestSample

EARLY = "the run ended early"
"""How the reason begins why no load of such a run is a measurement by itself."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """An unfinished run: how far it came."""

    done: int
    """Points (or calls of SGLang's own tool) that were measured to their end."""
    planned: int
    repeats_done: int | None
    """Repeats of which every load was measured, on both sides where there are two; None = not known of its own tool."""
    repeats: int
    lost_requests: int
    """Requests that were answered within the point that was never finished; they are in no figure."""

    @property
    def words(self) -> str:
        """e.g. `2 of 3 repeats finished, 5 of 6 points`."""
        points = f"{self.done} of {counted(self.planned, 'call' if self.repeats_done is None else 'point')}"
        if self.repeats_done is None or self.repeats < 2:
            told = f"{points} finished"
        else:
            told = f"{self.repeats_done} of {self.repeats} repeats finished, {points}"
        if not self.lost_requests:
            return told
        counts = "counts" if self.lost_requests == 1 else "count"
        return f"{told}; {counted(self.lost_requests, 'request')} of the next one came back and {counts} nowhere"


def unfinished(result: BenchResult, requests: Sequence[RequestSample]) -> Part | None:
    """None where the run came to its end; `requests`: all that came home."""
    if result.whole:
        return None
    done = len(result.points) + len(result.harness)
    planned, repeats = max(result.planned or done, done), result.repeats or 1
    known = {point.point for point in result.points}
    return Part(
        done=done,
        planned=planned,
        repeats_done=None if result.harness else _whole_repeats(result, planned // repeats),
        repeats=repeats,
        lost_requests=sum(item.point not in known and item.error is None for item in requests),
    )


def _whole_repeats(result: BenchResult, points_each: int) -> int:
    """How many repeats have all their points."""
    of = [point.repeat for point in result.points]
    return sum(of.count(repeat) == points_each for repeat in set(of))
