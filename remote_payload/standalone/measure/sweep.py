"""The staged search for the reading that fits: slots and offset, then single changes of the computation, then jointly.

The naive product of all choices is never run. Slots and token offset are screened under the checkpoint's own
computation; around the best wiring, and around the declared one, every single change of the computation runs against
what it changes, on the same positions. A likely gain is taken over and everything is looked at again from there, until
nothing gains; what is not surely needed on these and further rows is taken back; then slots and offset are screened
anew. A sound drafter therefore ends at its own computation.
"""

from dataclasses import dataclass

from remote_payload.schema.standalone import SkippedReading
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.graph_search import GraphSearch
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.slot_search import SlotSearch
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.measure.task import Task, Track, wiring

ROUNDS = 2
"""How often slots and offset are screened anew under a changed computation."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The outcome of the search."""

    best: Reading
    runner_up: Reading | None
    """The best one of the same computation with other slots or another offset."""
    told: tuple[Tally, ...]
    """Everything measured, in the order it was."""
    skipped: tuple[SkippedReading, ...]


def sweep(task: Task, sample: Sample, further: Sample) -> Found:
    """Search in stages on `sample`; changes of the computation must hold on `further` rows as well."""
    track = Track()
    slots = SlotSearch(task, sample, track)
    ranked = slots.run(task.own)
    best = ranked[0].reading
    if task.choices is not None:
        graphs = GraphSearch(task, task.choices, sample, further, track)
        best = _computation(task, graphs, best)
        best, ranked = _wire_again(task, slots, graphs, best, ranked)
        graphs.control(best)
        track.skipped += task.choices.skipped
    others = (tally.reading for tally in ranked if wiring(tally.reading) != wiring(best))
    runner_up = next((task.under(reading, task.graph(best)) for reading in others), None)
    return Found(best=best, runner_up=runner_up, told=tuple(track.told), skipped=tuple(track.skipped))


def _computation(task: Task, graphs: GraphSearch, best: Reading) -> Reading:
    """The best wiring with what its computation gains by; the declared one instead where it then does better."""
    found, declared = graphs.climb(best), task.declared
    if declared is not None and wiring(declared) != wiring(best):
        base, rivals = graphs.single(declared)
        if max(tally.score for tally in (base, *rivals)) > found.score:
            found = min(found, graphs.climb(declared), key=lambda tally: tally.rank)
    return found.reading


def _wire_again(
    task: Task, slots: SlotSearch, graphs: GraphSearch, best: Reading, ranked: list[Tally]
) -> tuple[Reading, list[Tally]]:
    """Under a changed computation slots and offset are screened anew, as a wrong one may have hidden them."""
    screened = task.own
    for _ in range(ROUNDS):
        if task.graph(best) == screened:
            break
        screened = task.graph(best)
        ranked = slots.run(screened)
        if wiring(ranked[0].reading) == wiring(best):
            break
        # Another wiring may need fewer changes than led to it.
        best = graphs.proven(graphs.climb(ranked[0].reading).reading, task.own)
    return best, ranked
