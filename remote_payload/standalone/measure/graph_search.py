"""The search for the computation around one wiring: single changes, then jointly, then proof on further rows."""

from dataclasses import dataclass, replace

from remote_payload.schema.standalone import Stage
from remote_payload.standalone.graph import Graph, Reading, distinct
from remote_payload.standalone.measure.factors import Choices
from remote_payload.standalone.measure.racing import LIKELY, is_ahead, race
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.measure.task import Task, Track

MOST_CHANGES = 5
"""So many changes of the computation are taken over at most."""
SURE = 3.5
"""Standard errors that what a change gains on all rows looked at must be above: some twenty are tried."""


@dataclass(frozen=True)
class GraphSearch:
    """Climbs from a reading to the one that its computation gains most by."""

    task: Task
    choices: Choices
    sample: Sample
    further: Sample
    """Rows that changes must hold on as well."""
    track: Track

    def climb(self, reading: Reading) -> Tally:
        """Take over the likeliest single gain, look at all from there, and so on; then keep what is proven."""
        base, rivals = self.single(reading)
        for _ in range(MOST_CHANGES):
            ahead = [rival for rival in rivals if is_ahead(rival.over(base), base, LIKELY)]
            if not ahead:
                break
            base, rivals = self.single(min(ahead, key=lambda tally: tally.rank).reading, stage="search")
        proven = self.proven(base.reading, self.task.graph(reading))
        return base if proven == base.reading else self.track.all_steps(self.sample, proven, self.task.steps)

    def proven(self, reading: Reading, start: Graph) -> Reading:
        """Without the changes from `start` that gain nothing sure on the sample and further rows together."""
        while True:
            pairs = [(name, *self._pair(reading, without)) for name, without in self._reverted(reading, start)]
            unproven = [pair for pair in pairs if not is_ahead(pair[1].over(pair[2]), pair[2], SURE)]
            if not unproven:
                return reading
            name, ours, without = min(unproven, key=lambda pair: pair[1].over(pair[2]).mean)
            gained = ours.over(without)
            self.track.skip(
                reading.name,
                f"`{name}` gained {gained.mean:.3f} accepted drafts a position on {ours.rows} rows, standard error "
                f"{gained.error:.3f}: not surely anything",
            )
            reading = without.reading

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

    def _pair(self, ours: Reading, theirs: Reading) -> tuple[Tally, Tally]:
        """Two readings on the sample and on further rows."""
        pair = (Tally(reading=ours, stage="search"), Tally(reading=theirs, stage="search"))
        for sample in (self.sample, self.further):
            for row in sample.rows("whether a change holds on further rows"):
                row.add(pair, self.task.steps)
        return pair

    def _reverted(self, reading: Reading, base: Graph) -> list[tuple[str, Reading]]:
        """The reading with each of its changes from `base` taken back."""
        graph = self.task.graph(reading)
        names = [name for name in vars(base) if getattr(graph, name) != getattr(base, name)]
        return [(name, self.task.under(reading, replace(graph, **{name: getattr(base, name)}))) for name in names]
