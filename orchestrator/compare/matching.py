"""Which load of one side belongs to which of the other."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.compare.pooling import Case
from orchestrator.records.measurement import Measurement

PREFERRED = {"side": "spec", "split": "train"}
"""What a number that names no load is held against: the drafter's side; the rows that the test was asked for."""

LOADS = frozenset({"concurrency", "request_rate"})
"""How a server was asked: by users at once, or by requests a second."""


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Pairs of loads, and those that are left."""

    pairs: tuple[tuple[Measurement, Measurement], ...]
    only_ours: tuple[Case, ...]
    only_theirs: tuple[Case, ...]
    notes: tuple[str, ...]


def matched(ours: Mapping[Case, Measurement], theirs: Mapping[Case, Measurement], factors: frozenset[str]) -> Matched:
    """Loads that are alike but for the factors; then loads of which one side tells less, where that names one alone."""
    left, right = dict(ours), dict(theirs)
    pairs: list[tuple[Measurement, Measurement]] = []
    same = [case for case in left if case in right and not _has(case, factors)]
    pairs += [(left.pop(case), right.pop(case)) for case in same]
    pairs += _by_the_rest(left, right, factors)
    notes: list[str] = []
    pairs += _by_less(left, right, factors, notes)
    pairs += [(mine, other) for other, mine in _by_less(right, left, factors, notes)]
    if not pairs and not notes:
        notes += _apart(tuple(ours), tuple(theirs))
    order = {case: index for index, case in enumerate(ours)}
    pairs.sort(key=lambda pair: order[pair[0].case])
    return Matched(pairs=tuple(pairs), only_ours=tuple(left), only_theirs=tuple(right), notes=tuple(notes))


def having(
    pairs: Sequence[tuple[Measurement, Measurement]], metrics: Collection[str]
) -> Sequence[tuple[Measurement, Measurement]]:
    """The pairs of which a side has one of the metrics, e.g. no load without speculation has an accept length.

    All of them where none has, or no metric is asked for; one that is no measurement stays.
    """
    found = [
        pair for pair in pairs if any(one.invalid or any(item.metric in metrics for item in one.series) for one in pair)
    ]
    return found if metrics and found else pairs


def case_words(case: Case) -> str:
    """e.g. `side=spec concurrency=4`."""
    return " ".join(f"{fact.name}={fact.value}" for fact in case)


def _by_the_rest(
    left: dict[Case, Measurement], right: dict[Case, Measurement], factors: frozenset[str]
) -> list[tuple[Measurement, Measurement]]:
    """Loads alike but for the factors: one each, or where both sides have several the equal ones."""
    pairs = []
    for rest in list(dict.fromkeys(_rest(case, factors) for case in left)):
        mine = [case for case in left if _rest(case, factors) == rest]
        others = [case for case in right if _rest(case, factors) == rest]
        one_each = _one_each(mine, others)
        if one_each is not None:
            pairs.append((left.pop(one_each[0]), right.pop(one_each[1])))
            continue
        pairs += [(left.pop(case), right.pop(case)) for case in mine if case in right]
    return pairs


def _one_each(mine: Sequence[Case], others: Sequence[Case]) -> tuple[Case, Case] | None:
    """The pair, where a side has one load alone: with the other's only one, or its only one that really varies."""
    if len(mine) == 1:
        chosen = list(others) if len(others) == 1 else [case for case in others if case != mine[0]]
        return (mine[0], chosen[0]) if len(chosen) == 1 else None
    if len(others) == 1:
        varying = [case for case in mine if case != others[0]]
        return (varying[0], others[0]) if len(varying) == 1 else None
    return None


def _by_less(
    more: dict[Case, Measurement], less: dict[Case, Measurement], factors: frozenset[str], notes: list[str]
) -> list[tuple[Measurement, Measurement]]:
    """Cases of `less` that tell fewer facts than those of `more`, where one alone agrees with what they tell.

    Where none does, one that agrees but for the factors.
    """
    pairs = []
    for case in list(less):
        larger = [other for other in more if len(other) > len(case)]
        fitting = [other for other in larger if set(case) <= set(other)]
        fitting = fitting or [other for other in larger if set(_rest(case, factors)) <= set(_rest(other, factors))]
        chosen = _preferred(fitting)
        if len(chosen) == 1:
            pairs.append((more.pop(chosen[0]), less.pop(case)))
        elif chosen:
            name = next(fact for fact in chosen[0] if fact not in chosen[1])
            notes.append(
                f"{case_words(case) or 'a number without a load'} fits {len(chosen)} loads: choose one, e.g. "
                f"--where {name.name}={name.value}"
            )
    return pairs


def _apart(ours: Sequence[Case], theirs: Sequence[Case]) -> list[str]:
    """What loads of which none is on both sides would have to be compared across."""
    if not ours or not theirs:
        return []
    mine, other = _preferred(ours)[0], _preferred(theirs)[0]
    if not {fact.name for fact in mine} & {fact.name for fact in other}:
        told = f"{case_words(mine)} and {case_words(other)} are measurements of different kinds"
        loads = [fact.name for fact in (*mine, *other) if fact.name in LOADS]
        keys = " ".join(f"--vary {name}" for name in loads)
        return [f"{told}: {keys} compares across them all the same" if len(loads) > 1 else told]
    both = {fact.name for fact in mine} & {fact.name for fact in other}
    names = dict.fromkeys(fact.name for fact in mine if fact.name in both and fact not in other) or dict.fromkeys(
        fact.name for fact in (*mine, *other) if fact.name not in both
    )
    keys = " ".join(f"--vary {name}" for name in names)
    return [f"no load is on both sides, {case_words(mine)} and {case_words(other)}: {keys} compares across them"]


def _preferred(cases: Sequence[Case]) -> Sequence[Case]:
    for name, value in PREFERRED.items():
        better = [case for case in cases if any(fact.name == name and fact.value == value for fact in case)]
        cases = better or cases
    return cases


def _has(case: Case, factors: frozenset[str]) -> bool:
    return any(fact.name in factors for fact in case)


def _rest(case: Case, factors: frozenset[str]) -> Case:
    return tuple(fact for fact in case if fact.name not in factors)
