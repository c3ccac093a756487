"""Which of several hosts measures what: the points are split once, by configuration and cost. Pure.

What is given to a host is a configuration with all its loads and blocks, and the plain decoding that it is held against
as well, so that no speed-up is ever computed across two machines, not even of one class. The other way, whole blocks a
host, would leave each machine with a start or none of every point: no interval, and nothing to split where there is one
block. The price is plain decoding on every host.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.sweep.file import SweepFile
from orchestrator.sweep.plan import cost_of, starts_of
from orchestrator.sweep.points import SPECULATION, Point


def split(file: SweepFile, points: Sequence[Point], hosts: int) -> tuple[tuple[Point, ...], ...]:
    """The points of each of so many hosts, in the file's order; the same for the same file, whoever asks.

    The dearest configuration first, each to the host that has least to do with it. A host may get nothing.
    """
    plain = {rest(point.changes): point for point in points if point.is_baseline}
    starts = starts_of(file, [point for point in points if not point.is_baseline])
    needed = [sorted({rest(point.changes) for point in start.points} & plain.keys()) for start in starts]
    costs = [start.cost for start in starts]
    given = shared_out(costs, needed, {key: cost_of(point.job) for key, point in plain.items()}, hosts)
    chosen: list[set[int]] = [set() for _ in range(hosts)]
    for start, keys, host in zip(starts, needed, given, strict=True):
        chosen[host] |= {id(point) for point in start.points} | {id(plain[key]) for key in keys}
    told = set().union(*chosen)
    chosen[0] |= {id(point) for point in plain.values() if id(point) not in told}
    return tuple(tuple(point for point in points if id(point) in some) for some in chosen)


def shared_out(
    costs: Sequence[float], needed: Sequence[Sequence[str]], extra: Mapping[str, float], hosts: int
) -> tuple[int, ...]:
    """The host of each item, so that the busiest has little to do; `needed` names what an item wants beside it.

    `extra`: what each of these costs, once a host. Items one by one, or all with the same needs together: whichever
    leaves the busiest host less, then all of them less.
    """
    singly = [[at] for at in range(len(costs))]
    bundles: dict[tuple[str, ...], list[int]] = {}
    for at, keys in enumerate(needed):
        bundles.setdefault(tuple(keys), []).append(at)
    tried = [_greedy(some, costs, needed, extra, hosts) for some in (singly, list(bundles.values()))]
    return min(tried, key=lambda one: one[0])[1]


def _greedy(
    groups: Sequence[Sequence[int]],
    costs: Sequence[float],
    needed: Sequence[Sequence[str]],
    extra: Mapping[str, float],
    hosts: int,
) -> tuple[tuple[float, float], tuple[int, ...]]:
    """The dearest group first, to the host whose sum stays smallest; ties by count, then by order.

    Returns the largest sum and the sum of all, and the host of each item.
    """
    sums, counts = [0.0] * hosts, [0] * hosts
    has: list[set[str]] = [set() for _ in range(hosts)]
    found: dict[int, int] = {}
    cost_of_group = [sum(costs[at] for at in some) for some in groups]
    for group in sorted(range(len(groups)), key=lambda one: (-cost_of_group[one], one)):
        keys = {key for at in groups[group] for key in needed[at]}
        after = [
            sums[host] + cost_of_group[group] + sum(extra[key] for key in keys - has[host]) for host in range(hosts)
        ]
        host = min(range(hosts), key=lambda one: (after[one], counts[one], one))
        sums[host] = after[host]
        counts[host] += len(groups[group])
        has[host] |= keys
        found.update(dict.fromkeys(groups[group], host))
    return (max(sums), sum(sums)), tuple(found[at] for at in range(len(costs)))


def rest(changes: Mapping[str, Any]) -> str:
    """What is not speculation, the load among it: a point's plain decoding has the same."""
    return json.dumps({key: value for key, value in changes.items() if key not in SPECULATION}, sort_keys=True)
