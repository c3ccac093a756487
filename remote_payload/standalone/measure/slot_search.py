"""The search for slots and token offset under one computation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from remote_payload.standalone.graph import Graph, Reading, distinct
from remote_payload.standalone.measure import wirings
from remote_payload.standalone.measure.racing import screen, search
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.measure.task import Task, Track

ASCENTS = 2
"""How often every fc slot is tried with every captured state."""
STARTS = 3
"""From so many starts."""
FEWEST_TRIES = 240
"""Of many states so many choices may be tried, however few rows there are."""
TIMES_ONE_READING = 2
"""And as many as cost so many times what one reading with all steps costs on all rows."""


@dataclass(frozen=True)
class SlotSearch:
    """Screens wirings: first step of all, then all steps of the survivors."""

    task: Task
    sample: Sample
    track: Track

    def run(self, graph: Graph) -> list[Tally]:
        """The best wirings under a computation, all steps on the sample, best first."""
        task = self.task
        few = wirings.count(task.captured, task.slots) <= wirings.FEW
        slots = wirings.every(task.captured, task.slots) if few else self._ascend(graph)
        readings = [self._reading(choice, graph) for choice in slots]
        product = len(readings) * len(task.offsets) <= wirings.FEW
        if product:
            readings = wirings.with_offsets(readings, task.offsets)
        readings = self._with_declared(self._mapped(readings), graph)
        survivors = self._screen(readings, task.keep, f"first step of {len(readings)} wirings")
        kept = self._with_declared([tally.reading for tally in survivors], graph)
        if not product:
            kept = distinct([*kept, *wirings.with_offsets(kept[: max(1, task.keep // 2)], task.offsets)])
        ranked, dropped = search(self.sample, kept, task.steps, f"all steps of {len(kept)} wirings")
        self.track.told += [*dropped, *ranked]
        return ranked

    def _reading(self, choice: tuple[int, ...], graph: Graph) -> Reading:
        return self.task.under(Reading(slots=choice, token_offset=1), graph)

    def _with_declared(self, readings: Sequence[Reading], graph: Graph) -> list[Reading]:
        """The declared wiring first: of equals the first stays first."""
        declared = self.task.declared
        return distinct([*([self.task.under(declared, graph)] if declared else []), *readings])

    def _mapped(self, readings: Sequence[Reading]) -> list[Reading]:
        """The readings at offset +1 also under the vocabulary's other maps: the same drafts, so they cost nothing."""
        task = self.task
        maps = task.choices.values.get("vocabulary", ()) if task.choices else ()
        others = [
            task.under(reading, replace(task.graph(reading), vocabulary=other))
            for reading in readings
            for other in maps
            if reading.token_offset == 1
        ]
        return distinct([*readings, *others])

    def _ascend(self, graph: Graph) -> list[tuple[int, ...]]:
        """Choices of many captured states: a few starts, then each fc slot tried with every state in turn."""
        task = self.task
        declared = task.declared.slots if task.declared else None
        begun = wirings.starts(task.captured, task.slots, task.states, declared)
        allowed, every = self._allowed(), True
        begun = wirings.thinned(begun, allowed // 3)
        best = self._first_steps(begun, graph, "starts")
        tried = set(begun)
        for _ in range(ASCENTS):
            before = best
            for slot in (*range(task.slots), None):
                left = (allowed - len(tried)) // (task.slots + 1 - (task.slots if slot is None else slot))
                rivals, whole = wirings.rivals(best, slot, task.captured, left)
                every = every and whole
                if rivals:
                    tried.update(rivals)
                    what = "neighbours of the best" if slot is None else f"fc slot {slot} with other states"
                    best = self._first_steps([*best, *rivals], graph, what)
            if best == before:
                break
        total = wirings.count(task.captured, task.slots)
        how = (
            "each fc slot was tried with every state" if every else "each fc slot with as many as so few rows are worth"
        )
        self.track.skip(
            f"{total - len(tried):,} of {total:,} ordered choices of captured states",
            f"too many to try all: starts spread over all states, then {how}",
        )
        return list(dict.fromkeys([*best, *wirings.orders(best[0])]))

    def _allowed(self) -> int:
        """How many choices may be tried: one is tried by its first step on about one row."""
        return max(FEWEST_TRIES, TIMES_ONE_READING * self.sample.rows_in_all * self.task.steps)

    def _first_steps(self, choices: Iterable[tuple[int, ...]], graph: Graph, what: str) -> list[tuple[int, ...]]:
        readings = [self._reading(choice, graph) for choice in dict.fromkeys(choices)]
        best = self._screen(readings, STARTS, f"{what}: first step of {len(readings)} wirings")
        return [tally.reading.slots for tally in best]

    def _screen(self, readings: Sequence[Reading], keep: int, doing: str) -> list[Tally]:
        survivors, dropped = screen(self.sample, readings, keep, doing)
        self.track.told += [*dropped, *survivors]
        return survivors
