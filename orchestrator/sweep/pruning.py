"""Which points of a chain cannot win, known from a deeper one: what draft step k yields does not depend on the depth.

Bounds that err on the point's side, for k steps beside a measured chain of K > k at the same load:
accept length AL(k) <= min(k + 1, AL(K)), for a shallower chain never accepts more; step cost r(k) >= base + k * (r(K) -
base) / K with base 1 (a verify step is at least a plain one; a larger base makes shallow chains dearer), or the line
through the measured r = AL / S where two depths or more are measured. So S(k) <= AL(k) / r(k), and a point is hopeless
where even that is surely below the best that is measured, plain decoding (S = 1) included. Truncating the deep chain's
histogram gives the likely length as well. Exact for greedy chains alone; trees are never judged.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.sweep.points import LOADS, SPECULATION
from remote_payload.schema import SweepJob, SweepPoint

MARGIN = 0.05
"""How much better than its bound the best must be: figures of few starts move by so much."""
DEPTH = ("num_steps", "num_draft_tokens", "repeats")
"""What may differ between a chain and the deeper one that tells of it."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One point that was measured: a chain of draft steps, or plain decoding."""

    settings: Mapping[str, Any]
    """The whole job of the point, as `settings_of` gives it."""
    is_baseline: bool
    speed_tok_s: float
    accept_length: float | None = None
    histogram: tuple[int, ...] = ()
    """Verify steps by accepted drafts; empty = not known."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A point that need not be measured, and why."""

    point_id: str
    most: float
    """The speed-up that it cannot exceed."""
    best: float
    """The best that is measured at its load."""
    likely_length: float | None
    """Its accept length, from the deeper chain's histogram."""
    reason: str


def settings_of(job: SweepJob, point: SweepPoint) -> dict[str, Any]:
    """The whole job of a point as JSON has it, its load as a list."""
    return settings_over(json.loads(job.base_json), point)


def settings_over(base: Mapping[str, Any], point: SweepPoint) -> dict[str, Any]:
    """The same over a base that is JSON already."""
    changes = json.loads(point.changes_json)
    value = {**base, **changes}
    if any(key in changes for key in LOADS):
        value |= {key: [changes[key]] if key in changes else [] for key in LOADS}
    return value


def propose(measured: Sequence[Chain], candidates: Mapping[str, Mapping[str, Any]]) -> tuple[Proposal, ...]:
    """The hopeless ones of the `candidates`, whole jobs by point id."""
    found = (_judged(point_id, settings, measured) for point_id, settings in candidates.items())
    return tuple(one for one in found if one is not None)


def _judged(point_id: str, settings: Mapping[str, Any], measured: Sequence[Chain]) -> Proposal | None:
    steps = settings.get("num_steps")
    plain = next((one for one in measured if one.is_baseline and _alike(one.settings, settings, SPECULATION)), None)
    if plain is None or not isinstance(steps, int) or settings.get("eagle_topk") != 1:
        return None
    chains = [one for one in measured if not one.is_baseline and _alike(one.settings, settings, DEPTH)]
    costs = {
        int(one.settings["num_steps"]): one.accept_length / (one.speed_tok_s / plain.speed_tok_s)
        for one in chains
        if one.accept_length is not None and isinstance(one.settings.get("num_steps"), int)
    }
    deep = next((one for one in chains if costs and one.settings.get("num_steps") == max(costs)), None)
    if deep is None or deep.accept_length is None or max(costs) <= steps:
        return None
    rivals = [one for one in measured if _alike(one.settings, settings, (*SPECULATION, "repeats"))]
    best = max(one.speed_tok_s / plain.speed_tok_s for one in rivals)
    cost = cost_at(costs, steps)
    most = min(steps + 1.0, deep.accept_length) / cost
    if min(costs.values()) < 1 or most * (1 + MARGIN) >= best:  # below 1 the plain decoding is in doubt
        return None
    likely = truncated_length(deep.histogram, steps)
    told = "" if likely is None else f", likely accept length {likely:.2f}"
    return Proposal(
        point_id=point_id,
        most=most,
        best=best,
        likely_length=likely,
        reason=f"cannot win: at most {most:.2f}x plain decoding (accept length at most "
        f"{min(steps + 1.0, deep.accept_length):.2f} from the chain of {max(costs)} steps{told}; a step costs at least "
        f"{cost:.2f}), and {best:.2f}x is measured at this load",
    )


def cost_at(costs: Mapping[int, float], steps: int) -> float:
    """The least that a step of so many draft steps costs, in plain steps: never below 1."""
    if len(costs) == 1:
        ((deepest, cost),) = costs.items()
        return max(1.0, 1 + (cost - 1) * steps / deepest)
    mean_k, mean_r = sum(costs) / len(costs), sum(costs.values()) / len(costs)
    slope = sum((k - mean_k) * (r - mean_r) for k, r in costs.items()) / sum((k - mean_k) ** 2 for k in costs)
    return max(1.0, mean_r + slope * (steps - mean_k))


def truncated_length(histogram: Sequence[int], steps: int) -> float | None:
    """1 + the mean of accepted drafts, none beyond `steps` counted; None where nothing was counted."""
    total = sum(histogram)
    return 1 + sum(count * min(accepted, steps) for accepted, count in enumerate(histogram)) / total if total else None


def _alike(a: Mapping[str, Any], b: Mapping[str, Any], but: Sequence[str]) -> bool:
    return all(a.get(key) == b.get(key) for key in {*a, *b} if key not in but)
