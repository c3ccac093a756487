"""What a server would get from a reading at every depth up to the measured one: one deep run replaces a sweep.

Draft step k of a chain does not depend on how much deeper the chain goes, so a server of k steps accepts the leading
hits among the first k. Exact for chains (top-k 1) on the target's own greedy text; other text, trees and sampling are
not covered. The speed-up is AL / r with r given: its interval is the accept length's alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.compare.chains import chains_of
from orchestrator.compare.stats import Estimate, bounded, pooled_ratio
from orchestrator.compare.step_cost import StepCost, best_steps
from orchestrator.compare.walk import Walk, serving_walks, total
from remote_payload.schema import ReadingHits, RowFacts


@dataclass(frozen=True, kw_only=True)
class Depth:
    """A server that drafts `steps` tokens a step."""

    steps: int
    accept_length: Estimate
    """Of the serving walk, bonus token included; interval over rows."""
    walk: Walk
    break_even: float | None
    """r: the accept length at which speculation costs what it saves; None = r unknown."""
    speedup: Estimate | None
    """Accept length / r; None = r unknown."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Every depth of one reading."""

    reading: str
    depths: tuple[Depth, ...]
    cost: StepCost | None
    """None = nobody said what a step costs, so there is no speed-up."""
    best_steps: int | None
    """The depth with the largest speed-up; None = r unknown, or the same at every depth: then no depth is best."""
    judged_steps: int | None
    """The depth that `pays` speaks of: the best one, or the deepest where none is; None = r unknown."""
    pays: bool | None
    """Whether the speed-up there is above 1, its whole interval; None = r unknown, or the interval holds 1."""
    suspicious: bool
    """r below 1 at some depth: a verify step cannot be cheaper than a plain one, so the plain baseline is in doubt."""

    @property
    def judged(self) -> Depth | None:
        """The depth of `judged_steps`."""
        return None if self.judged_steps is None else self.depths[self.judged_steps - 1]


def predict(
    reading: str,
    rows: Sequence[RowFacts],
    hits: Sequence[ReadingHits],
    cost: StepCost | None,
    *,
    max_new_tokens: int | None = None,
) -> Prediction:
    """Walk every depth. Raises InvalidRunError where the reading's hits are missing or do not fit the rows."""
    chains = chains_of(reading, rows, hits)
    depths = []
    for steps in range(1, chains[0].steps + 1):
        walks = [total(serving_walks(item, depth=steps, max_new_tokens=max_new_tokens), steps) for item in chains]
        depths.append(_depth(steps, walks, cost))
    lengths = [depth.accept_length.value for depth in depths]
    best = None if cost is None or not cost.per_step else best_steps(lengths, cost)
    judged = best
    if cost is not None and not cost.per_step:
        judged = max((depth.steps for depth in depths if depth.accept_length.value is not None), default=None)
    speedup = None if judged is None else depths[judged - 1].speedup
    return Prediction(
        reading=reading,
        depths=tuple(depths),
        cost=cost,
        best_steps=best,
        judged_steps=judged,
        pays=None if speedup is None else _above_one(speedup),
        suspicious=cost is not None and any(cost.ratio(depth.steps) < 1 for depth in depths),
    )


def _depth(steps: int, walks: Sequence[Walk], cost: StepCost | None) -> Depth:
    verifies = [walk.verifies for walk in walks]
    accepted = [walk.accepted + walk.verifies for walk in walks]
    length = bounded(pooled_ratio(accepted, verifies), 1, steps + 1)
    return Depth(
        steps=steps,
        accept_length=length,
        walk=total(tuple(walks), steps),
        break_even=None if cost is None else cost.ratio(steps),
        speedup=None if cost is None else _divided(length, cost.ratio(steps)),
    )


def _divided(estimate: Estimate, by: float) -> Estimate:
    def part(value: float | None) -> float | None:
        return None if value is None else value / by

    return replace(
        estimate,
        value=part(estimate.value),
        low=part(estimate.low),
        high=part(estimate.high),
        standard_error=part(estimate.standard_error),
    )


def _above_one(speedup: Estimate) -> bool | None:
    if speedup.low is None or speedup.high is None:
        return None
    return True if speedup.low > 1 else False if speedup.high < 1 else None
