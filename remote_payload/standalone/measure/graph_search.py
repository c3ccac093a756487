"""The search for the computation around one wiring: single changes, joint confirmation, and proof on further rows."""

from dataclasses import dataclass, replace

from remote_payload.schema.standalone import Stage
from remote_payload.standalone.graph import Graph, Reading, distinct
from remote_payload.standalone.measure.factors import Choices
from remote_payload.standalone.measure.racing import SURE, is_ahead, race
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.measure.task import Task, Track

MOST_CHANGES = 5
"""So many changes of the computation are taken over at most."""
SURE_UNCONFIRMED = 4.0
"""Standard errors that are asked for where no further row can confirm."""
CONFIRMED = 2.0
"""Standard errors on rows that the search did not choose by."""


@dataclass(frozen=True)
class GraphSearch:
    """Climbs from a reading to the one that its computation gains most by."""

    task: Task
    choices: Choices
    sample: Sample
    confirming: Sample
    """Further rows."""
    track: Track

    def climb(self, reading: Reading) -> Tally:
        """Take over the surest single gain, look at all from there, and so on; then take back what is not needed."""
        start = self.task.graph(reading)
        base, rivals = self.single(reading)
        for _ in range(MOST_CHANGES):
            ahead = [rival for rival in rivals if self.is_ahead(rival, base)]
            if not ahead:
                break
            base, rivals = self.single(min(ahead, key=lambda tally: tally.rank).reading, stage="search")
        for name, without in self._reverted(base.reading, start):
            other = self.track.all_steps(self.sample, without, self.task.steps)
            if getattr(self.task.graph(base.reading), name) != getattr(start, name) and not self.is_ahead(base, other):
                base = other
        return base

    def single(self, reading: Reading, stage: Stage = "factor") -> tuple[Tally, list[Tally]]:
        """Every single change of a reading's computation against it; (itself, changes that ran on every row)."""
        task = self.task
        changed = [task.under(reading, graph) for graph in self.choices.changed(task.graph(reading))]
        base = Tally(reading=reading, stage="search")
        rivals = [Tally(reading=other, stage=stage) for other in distinct(changed)]
        live = race(self.sample, base, rivals, task.steps, f"{len(rivals)} changes of the computation")
        self.track.told += [base, *rivals]
        if not live:  # the race ended early, yet the reading itself is wanted on every row
            base = self.track.all_steps(self.sample, reading, task.steps)
        return base, live

    def confirmed(self, best: Reading) -> Reading:
        """Without the changes that gain nothing on rows the search did not choose by; as it is where there are none."""
        for name, _ in self._reverted(best, self.task.own):
            back = replace(self.task.graph(best), **{name: getattr(self.task.own, name)})
            pair = [Tally(reading=reading, stage="search") for reading in (best, self.task.under(best, back))]
            for row in self.confirming.rows(f"whether {name} holds on other rows"):
                row.add(pair, self.task.steps)
            if pair[0].positions and not is_ahead(pair[0].over(pair[1]), pair[1], CONFIRMED):
                self.track.skip(best.name, f"its gain by `{name}` did not hold on {pair[0].rows} further rows")
                best = pair[1].reading
        return best

    def control(self, best: Reading) -> None:
        """What the drafter does without its states."""
        graphs = self.choices.controls(self.task.graph(best))
        base = Tally(reading=best, stage="search")
        rivals = [Tally(reading=self.task.under(best, graph), stage="factor") for graph in graphs]
        for row in self.sample.rows("controls without states"):
            row.add([base, *rivals], self.task.steps)
        for rival in rivals:
            rival.hold_against(base)
        self.track.told += [base, *rivals]

    def is_ahead(self, rival: Tally, base: Tally) -> bool:
        """Whether a reading surely gains over another on the sample."""
        return is_ahead(rival.over(base), base, SURE if self.confirming.exists() else SURE_UNCONFIRMED)

    def _reverted(self, reading: Reading, base: Graph) -> list[tuple[str, Reading]]:
        """The reading with each of its changes from `base` taken back."""
        graph = self.task.graph(reading)
        names = [name for name in vars(base) if getattr(graph, name) != getattr(base, name)]
        return [(name, self.task.under(reading, replace(graph, **{name: getattr(base, name)}))) for name in names]
