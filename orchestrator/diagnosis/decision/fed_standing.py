"""How the states that are fed stand to those that the drafter was trained on: measured, or only said.

A set counts as the trained one where it is surely read best, or where the trainer's word, or config.json in vLLM's
numbering, names what is read as well as anything. That other states are fed is certain only where those are measured
and surely behind, or where two witnesses, word and readings, name the same set and the rows do not hold what is fed.
"""

from collections.abc import Sequence
from typing import Literal

from orchestrator.compare.stats import paired_difference
from orchestrator.diagnosis.decision.inputs import SPLITS, Known, Predicted, SplitName
from orchestrator.diagnosis.mis_wired import is_vllms_numbering

Stands = Literal["trained", "other", "said", "alike", "open"]
"""`other`: measured, or by two witnesses; `said`: other than the trainer's word alone; `alike`: as good as the best."""


def stands(known: Known, states: Sequence[int | None]) -> Stands:
    """Of the states that a server returned, or that its source names; a None among them is like none of the rows'."""
    fed, trained = tuple(states), known.trained
    found = None if known.offline is None else known.offline.contest
    measured = "unmeasured" if found is None or None in fed else found.standing(_named(fed))
    if trained is None:
        return "other" if measured == "behind" else "open" if measured == "unmeasured" else "alike"
    if fed == trained:
        return "trained"
    if not is_other(fed, trained):
        return "open"
    if measured == "behind" or is_walked_behind(known, fed, trained):
        return "other"
    if measured == "unmeasured":
        witnesses = (known.word is not None or names_best(known)) and found is not None
        return "other" if witnesses else "open" if known.word is None else "said"
    return "alike" if known.word is None else "said"


def is_other(states: Sequence[int | None], trained: Sequence[int]) -> bool:
    """Whether a state that is surely a captured one is not the one it was trained on there."""
    identified = any(state is not None for state in states)
    pairs = zip(states, trained, strict=False)
    return identified and (
        len(states) != len(trained) or any(state is not None and state != wanted for state, wanted in pairs)
    )


def names_best(known: Known) -> bool:
    """Whether config.json itself, in vLLM's numbering, names what the drafter reads best."""
    test = known.offline
    return test is not None and is_vllms_numbering(test.measured.result, test.wiring.best)


def is_walked_behind(known: Known, fed: tuple[int | None, ...], trained: tuple[int, ...]) -> bool:
    """Whether the replay of what was served surely gives less with the fed states than with the trained ones."""
    return any(_is_behind(known, split, fed, trained) for split in SPLITS)


def _is_behind(known: Known, split: SplitName, fed: tuple[int | None, ...], trained: tuple[int, ...]) -> bool:
    ours, theirs = known.foretold(split, "best"), known.foretold(split, "as served")
    if ours is None or theirs is None or (ours.states, theirs.states) != (trained, fed):
        return False
    sides = [_sums(side) for side in (ours, theirs)]
    prompts = [prompt for prompt in sides[0] if prompt in sides[1]]
    a, b = (([side[one][0] for one in prompts], [side[one][1] for one in prompts]) for side in sides)
    low = paired_difference(a, b).low if prompts else None
    return low is not None and low > 0


def _sums(told: Predicted) -> dict[int, tuple[int, int]]:
    """(verify steps + accepted, verify steps) by prompt: their ratio is the accept length."""
    return {item.prompt: (item.verifies + item.accepted, item.verifies) for item in told.requests}


def _named(states: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(state for state in states if state is not None)
