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
    """The host of each item: the dearest first, to the host whose sum stays smallest; ties by count, then by order.

    `needed` names what an item wants to have beside it, once a host, and `extra` what that costs.
    """
    sums, counts = [0.0] * hosts, [0] * hosts
    has: list[set[str]] = [set() for _ in range(hosts)]
    found: dict[int, int] = {}
    for at in sorted(range(len(costs)), key=lambda at: (-costs[at], at)):

        def after(host: int, at: int = at) -> float:
            return sums[host] + costs[at] + sum(extra[key] for key in needed[at] if key not in has[host])

        host = min(range(hosts), key=lambda one: (after(one), counts[one], one))
        sums[host] = after(host)
        counts[host] += 1
        has[host].update(needed[at])
        found[at] = host
    return tuple(found[at] for at in range(len(costs)))


def rest(changes: Mapping[str, Any]) -> str:
    """What is not speculation, the load among it: a point's plain decoding has the same."""
    return json.dumps({key: value for key, value in changes.items() if key not in SPECULATION}, sort_keys=True)
