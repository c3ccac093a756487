"""K15 before anything is served: the accept length that the drafter reaches on its rows against a known step cost.

The cost is `[[step_costs]]` of eagle3.toml, a number without an interval, or r of an earlier benchmark of the same pair
on the same host, at that number of steps alone. Only an accept length whose whole interval lies on one side decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.compare.prediction import Prediction, predict
from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.decision.axes import Signal
from orchestrator.diagnosis.decision.economics import ECONOMICS, depth_words, economics, every_depth
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.finding import CheckResult, Evidence, figure


@dataclass(frozen=True, kw_only=True)
class Cost:
    """r at one number of steps, and who says so."""

    steps: int
    ratio: float
    low: float
    high: float
    """Ends of its interval; both are `ratio` where one number is all that is known."""
    source: str

    @property
    def words(self) -> str:
        """e.g. `3.0 to 3.7`, or `3.66` where one number is all that is known."""
        return f"{self.low:.2f}" if self.low == self.high else f"{self.low:.2f} to {self.high:.2f}"


def foreseen_pays(known: Known) -> Iterator[Signal]:
    """Whether speculation can pay with what is asked for; none where it was measured, or no cost or length is known."""
    cost = cost_of(known)
    if cost is None or economics(known) is not None:
        return
    ceiling = cost.steps + 1
    best = _length(known, cost.steps)
    if cost.low >= ceiling or (best is not None and best.high is not None and best.high < cost.low):
        yield Signal(axis="pays", answer="foreseen_loses", results=(_loses(known, cost, best),))
    elif best is not None and best.low is not None and best.low > cost.high:
        text = (
            f"not measured; by a step cost of {cost.words} ({cost.source}) speculation would pay at the accept length "
            f"{best.value or 0:.2f} that the best reading has"
        )
        yield Signal(axis="pays", answer="foreseen_pays", results=(ECONOMICS.passed(text, _evidence(cost, best)),))


def cost_of(known: Known) -> Cost | None:
    """The step cost at the number of steps that is asked for; an earlier benchmark's before what somebody wrote."""
    planned = known.planned
    steps = None if planned is None or not planned.is_chain else planned.num_steps
    if steps is None:
        return None
    earlier = known.earlier
    if earlier is not None and earlier.steps == steps:
        source = f"run {earlier.run_id}"
        return Cost(steps=steps, ratio=earlier.ratio, low=earlier.low, high=earlier.high, source=source)
    if known.cost is None:
        return None
    ratio = known.cost.ratio(steps)
    return Cost(steps=steps, ratio=ratio, low=ratio, high=ratio, source=known.cost.source or "given")


def _length(known: Known, steps: int) -> Estimate | None:
    """The best reading's accept length with so many steps, on held-out rows where there are; None = not measured."""
    found = _depths(known)
    return found.depths[steps - 1].accept_length if found is not None and len(found.depths) >= steps else None


def _depths(known: Known) -> Prediction | None:
    offline = known.offline
    if offline is None:
        return None
    if known.cost is not None:
        return every_depth(known)
    reading = offline.wiring.best.facts.name
    for rows in (offline.measured.heldout, offline.measured.train):
        if rows is not None and any(item.reading == reading for item in rows.hits):
            return predict(reading, rows.rows, rows.hits, None)
    return None


def _loses(known: Known, cost: Cost, best: Estimate | None) -> CheckResult:
    read = "" if best is None or best.value is None else f", {best.value:.2f} foretold of the best reading"
    draft = f"{cost.steps} draft step{'' if cost.steps == 1 else 's'}"
    found = every_depth(known)
    lines = [] if found is None else [depth_words(found)]
    return ECONOMICS.finding(
        f"speculation cannot pay below accept length {cost.words} at this step cost ({cost.source}): at most "
        f"{cost.steps + 1} with {draft}{read}",
        severity="serious",
        cause="economics",
        evidence=_evidence(cost, best),
        remedy=(*lines, "measure 1, 2, 3 and more draft steps with `sweep`, each beside plain decoding"),
        refuted_by="a served benchmark beside plain decoding that is surely faster",
    )


def _evidence(cost: Cost, best: Estimate | None) -> tuple[Evidence, ...]:
    one = cost.low == cost.high
    r = Evidence(
        name=f"break-even accept length r at {cost.steps} draft step{'' if cost.steps == 1 else 's'}",
        value=cost.ratio,
        low=None if one else cost.low,
        high=None if one else cost.high,
        confidence=None if one else 0.95,
    )
    return (r,) if best is None else (r, figure("accept length foretold of the best reading", best, "tokens"))
