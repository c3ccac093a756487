"""Which captured states may feed the drafter's fc: every ordered choice where few exist, a staged choice where many do.

With 61 captured states there are 215,940 ordered choices of three. States of neighbouring layers are alike, so a choice
that is nearly right already shows; from the best of a few starts each fc slot is tried with every state in turn.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations, islice, permutations, product
from math import perm

from remote_payload.standalone.graph import Reading, distinct

FEW = 120
"""So many ordered choices are all tried."""
COARSE = 8
"""Of many states, so many spread over all are combined for a start."""
MOVED = 4
"""Up to so many slots are moved each on its own when neighbours are tried (81 choices); more are moved together."""
CLOSE = 1
"""How far a declared state is moved, in captured states."""

Slots = tuple[int, ...]


def count(captured: int, slots: int) -> int:
    """How many ordered choices there are."""
    return perm(captured, slots)


def every(captured: int, slots: int) -> list[Slots]:
    """Every ordered choice, ascending."""
    return list(permutations(range(captured), slots))


def starts(captured: int, slots: int, states: tuple[int, ...] | None, declared: Slots | None) -> list[Slots]:
    """Choices worth a look where there are too many to try all, each once.

    The declared one and its neighbours; engines' default layers, where `states` labels the captured ones; windows of
    neighbouring states; ascending choices of a few states spread over all.
    """
    found: list[Slots] = [declared] if declared else []
    found += [_moved(declared, step) for step in (-CLOSE, CLOSE) if declared]
    if states:
        found += _defaults(states, slots)
    found += [tuple(range(first, first + slots)) for first in range(captured - slots + 1)]
    spread = sorted({round(at * (captured - 1) / (COARSE - 1)) for at in range(COARSE)})
    found += list(combinations(spread, slots))
    usable = [choice for choice in found if len(set(choice)) == slots and all(0 <= at < captured for at in choice)]
    return list(dict.fromkeys(usable))


def replaced(choice: Slots, slot: int, captured: int) -> list[Slots]:
    """The choice with every state in fc slot `slot`, itself among them; no state twice."""
    others = {*choice[:slot], *choice[slot + 1 :]}
    return [(*choice[:slot], at, *choice[slot + 1 :]) for at in range(captured) if at not in others]


def beside(choice: Slots, captured: int) -> list[Slots]:
    """The choice with each state moved by at most one captured state, itself first; no state twice.

    Trying a slot at a time stops where two slots are both one off: the numbering of layers that differs by one between
    trainers and engines moves all of them at once.
    """
    moves = product((0, -CLOSE, CLOSE), repeat=len(choice)) if len(choice) <= MOVED else _together(len(choice))
    moved = (tuple(at + step for at, step in zip(choice, move, strict=True)) for move in moves)
    usable = (other for other in moved if len(set(other)) == len(other) and all(0 <= at < captured for at in other))
    return list(dict.fromkeys(usable))


def thinned(choices: list[Slots], most: int) -> list[Slots]:
    """At most so many of the choices, spread over all of them; the first ones, which are likely ones, all stay."""
    first, rest = choices[: most // 4], choices[most // 4 :]
    room = max(1, most - len(first))
    return first + [rest[at * len(rest) // room] for at in range(room)] if len(rest) > room else choices


def rivals(best: Sequence[Slots], slot: int | None, captured: int, most: int) -> tuple[list[Slots], bool]:
    """At most so many rivals of the best choices, and whether these are all of the first one's.

    All of each choice; else of the first alone; else some of these, spread over all. A choice's rivals have other
    states in fc slot `slot`; without a slot they are its neighbours with all slots moved.
    """
    for choices in (best, best[:1]):
        several = (beside(one, captured) if slot is None else replaced(one, slot, captured) for one in choices)
        found = [rival for rival in dict.fromkeys(rival for own in several for rival in own) if rival not in best]
        if len(found) <= most:
            return found, True
    return [found[at * len(found) // most] for at in range(most)] if most > 0 else [], False


def orders(choice: Slots) -> list[Slots]:
    """The choice's states in other orders, at most `FEW`."""
    return [other for other in islice(permutations(choice), FEW) if other != choice]


def with_offsets(readings: Iterable[Reading], offsets: Sequence[int]) -> list[Reading]:
    """The readings at other token offsets, under their own computation."""
    return distinct(
        Reading(slots=reading.slots, token_offset=offset, graph=reading.graph, changes=reading.changes)
        for reading in readings
        for offset in offsets
    )


def _together(slots: int) -> list[Slots]:
    return [(step,) * slots for step in (0, -CLOSE, CLOSE)]


def _moved(choice: Slots, step: int) -> Slots:
    return tuple(at + step for at in choice)


def _defaults(states: tuple[int, ...], slots: int) -> list[Slots]:
    """Engines' and trainers' default layers of a target with as many layers as the last label; three slots alone."""
    layers, at = max(states), {label: slot for slot, label in enumerate(states)}
    if slots != 3:
        return []
    wanted = [(2, layers // 2, layers - 3), (0, 2, layers // 2), (1, layers // 2 - 1, layers - 4)]
    return [tuple(at[label] for label in labels) for labels in wanted if all(label in at for label in labels)]
