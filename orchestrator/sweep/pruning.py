"""Which greedy chains cannot win by the intervals of what is measured at their load. Pure; trees are never judged.

For k steps, tokens a second are accept length AL(k) times verify steps a second V(k). Neither bound supposes a shape:
AL(k) <= min(k + 1, AL(K)) for a measured K > k, since a shallower greedy chain never accepts more; and V(k) <= V(j) for
a measured j < k, plain decoding (j = 0) among them, since a deeper chain drafts more and verifies more. Figures enter
by the end of their 95 % interval that favours the point, V(j) = speed / AL; a point is hopeless where that best case is
below the lower end of the best at its load. Figures without an interval, as of one start, rule nothing out.
Truncating the deeper chain's histogram gives the likely length as well.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.compare.stats import Estimate
from orchestrator.sweep.points import LOADS, SPECULATION
from remote_payload.schema import SweepJob, SweepPoint

MARGIN = 0.05
"""How much better than its best case the best must be: shapes may cost a shallow step a little more than a deep one."""
DEPTH = ("num_steps", "num_draft_tokens", "repeats")
"""What may differ between a chain and the deeper one that tells of it."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One point that was measured: a chain of draft steps, or plain decoding."""

    settings: Mapping[str, Any]
    """The whole job of the point, as `settings_of` gives it."""
    is_baseline: bool
    speed_tok_s: Estimate
    """Over its starts."""
    accept_length: Estimate | None = None
    """Over prompts."""
    histogram: tuple[int, ...] = ()
    """Verify steps by accepted drafts; empty = not known."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A point that need not be measured, and why."""

    point_id: str
    most_tok_s: float
    """Tokens a second of its best case, by the ends of 95 % intervals."""
    best_tok_s: float
    """The lower end of the best that is measured at its load."""
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


def is_as_asked(settings: Mapping[str, Any], served: Mapping[str, str | None]) -> bool:
    """Whether a server drafted as many steps, as wide, as its point says, for all that is known of it.

    One that SGLang set otherwise, or lets change while it runs, bounds no other depth.
    """
    if served.get("speculative_adaptive") == "true":
        return False
    for key in ("num_steps", "eagle_topk"):
        value = served.get(f"speculative_{key}")
        if value is not None and settings.get(key) is not None and value != str(settings[key]):
            return False
    return True


def propose(measured: Sequence[Chain], candidates: Mapping[str, Mapping[str, Any]]) -> tuple[Proposal, ...]:
    """The hopeless ones of the `candidates`, whole jobs by point id."""
    found = (_judged(point_id, settings, measured) for point_id, settings in candidates.items())
    return tuple(one for one in found if one is not None)


def nothing_said(measured: Sequence[Chain]) -> str:
    """Why nothing may be ruled out by these, for people who asked for it."""
    plain = [one for one in measured if one.is_baseline]
    if not plain:
        return "it has no plain decoding that was measured soundly" if measured else "it has no sound served benchmark"
    if not any(one.speed_tok_s.high is not None for one in plain):
        return "its plain decoding has no interval: measure three blocks"
    return "the intervals of its chains rule out no greedy chain of the same settings"


def _judged(point_id: str, settings: Mapping[str, Any], measured: Sequence[Chain]) -> Proposal | None:
    steps = settings.get("num_steps")
    if not isinstance(steps, int) or settings.get("eagle_topk") != 1 or settings.get("temperature") != 0:
        return None
    plain = next((one for one in measured if one.is_baseline and alike(one.settings, settings, SPECULATION)), None)
    if plain is None or plain.speed_tok_s.high is None:
        return None
    chains = {
        int(one.settings["num_steps"]): one
        for one in measured
        if not one.is_baseline and alike(one.settings, settings, DEPTH) and one.settings.get("num_steps") is not None
    }
    deeper = min((depth for depth in chains if depth > steps), default=None)
    if deeper is None or any(_is_cheaper(one, plain) for one in chains.values()):
        return None
    length = min(steps + 1.0, _ends(chains[deeper])[1])
    verifies, source = _most_verifies(chains, plain.speed_tok_s.high, steps)
    rivals = [one for one in measured if alike(one.settings, settings, (*SPECULATION, "repeats"))]
    best = max((one.speed_tok_s.low for one in rivals if one.speed_tok_s.low is not None), default=0.0)
    most = length * verifies
    if most * (1 + MARGIN) >= best:
        return None
    likely = truncated_length(chains[deeper].histogram, steps)
    told = "" if likely is None else f", likely {likely:.2f}"
    return Proposal(
        point_id=point_id,
        most_tok_s=most,
        best_tok_s=best,
        likely_length=likely,
        reason=f"cannot win: at most {most:.4g} tok/s (accept length at most {length:.2f} by the chain of {deeper} "
        f"steps{told}; at most {verifies:.4g} verify steps a second, by {source}), and the best at this load has at "
        f"least {best:.4g} (ends of 95 % intervals)",
    )


def _most_verifies(chains: Mapping[int, Chain], plain_tok_s: float, steps: int) -> tuple[float, str]:
    """Verify steps a second that a chain of so many steps cannot exceed, and by what."""
    shallower = max((depth for depth in chains if depth < steps), default=None)
    speed = None if shallower is None else chains[shallower].speed_tok_s.high
    if shallower is not None and speed is not None and speed / _ends(chains[shallower])[0] < plain_tok_s:
        return speed / _ends(chains[shallower])[0], f"the chain of {shallower} step{'' if shallower == 1 else 's'}"
    return plain_tok_s, "plain decoding"


def _is_cheaper(chain: Chain, plain: Chain) -> bool:
    """Whether its step takes less than a plain one: the plain decoding is in doubt then, and with it every bound."""
    length, speed, base = chain.accept_length, chain.speed_tok_s.value, plain.speed_tok_s.value
    if length is None or length.value is None or speed is None or base is None:
        return False
    return speed > base * length.value


def _ends(chain: Chain) -> tuple[float, float]:
    """Of its accept length; without an interval what any accept length of it may be."""
    found, steps = chain.accept_length, int(chain.settings["num_steps"])
    low, high = (None, None) if found is None else (found.low, found.high)
    return max(1.0, low or 1.0), steps + 1.0 if high is None else high


def truncated_length(histogram: Sequence[int], steps: int) -> float | None:
    """1 + the mean of accepted drafts, none beyond `steps` counted; None where nothing was counted."""
    total = sum(histogram)
    return 1 + sum(count * min(accepted, steps) for accepted, count in enumerate(histogram)) / total if total else None


def alike(a: Mapping[str, Any], b: Mapping[str, Any], but: Sequence[str]) -> bool:
    """Whether two whole jobs are the same, but for these settings."""
    return all(a.get(key) == b.get(key) for key in {*a, *b} if key not in but)
