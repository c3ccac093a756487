"""What is to be mended before speculation can be judged by its speed, and what a mended pair would accept.

A mended length is only what was measured of a reading that can be served: the walk of the best reading over the served
text, or over its own rows. The best reading of broken files, or one that predicts little, is no such length; and where
something else was loaded, or another drafter is served, not even the cost of a step is that of the pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.compare.stats import Estimate, bounded, pooled_ratio
from orchestrator.diagnosis.decision.inputs import SPLITS, Known, Offline
from orchestrator.diagnosis.decision.offline_axes import weighty
from orchestrator.diagnosis.decision.same_weights import captured_model, models
from orchestrator.diagnosis.decision.served_axes import served_signals
from orchestrator.diagnosis.diagnose import DOUBTED_BY
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_engine import DRAFTER
from orchestrator.diagnosis.verdict import WiringVerdict, is_poor

LOST = ("below", "little_below", "dead")
"""Answers of what was served that are less than the drafter gives."""


@dataclass(frozen=True, kw_only=True)
class Mending:
    """What lowers the accept length, and the length without it."""

    faults: tuple[str, ...]
    """What is to be mended, in words; empty = nothing is known to be."""
    is_other_drafter: bool
    """Whether what was served is not the pair that is judged, so that its step cost is another's as well."""
    is_measurable: bool
    """Whether a mended length can be known before the fault is mended."""
    length: Estimate | None
    """Accept length of the best reading; None = not measured, or nothing is to be mended."""
    where: str = ""
    """Of which text `length` is."""
    how: str = ""
    """What else belongs to its definition."""


def mending_of(known: Known) -> Mending:
    """What is known of it; a pair without a fault has none of both."""
    lost = any(signal.answer in LOST for signal in served_signals(known))
    other = tuple(_other_drafter(known))
    unreadable = tuple(_unreadable(known.offline))
    faults = (*other, *unreadable, *_misfed(known), *(("what the server loses",) if lost else ()))
    measurable = not other and not unreadable
    length, where = _length(known, lost=lost) if faults and measurable else (None, "")
    return Mending(
        faults=tuple(dict.fromkeys(faults)),
        is_other_drafter=bool(other),
        is_measurable=measurable,
        length=length,
        where=where,
        how=next((told.how for split in SPLITS if (told := known.foretold(split, "best")) is not None), ""),
    )


def _other_drafter(known: Known) -> Iterator[str]:
    """What says that something else is served than the drafter that is judged."""
    served = known.served
    if served is not None and any(item.title == DRAFTER.title and weighty(item) for item in served.diagnosis.results):
        yield "which drafter the server loads"
    others = [*models(known), *([] if (captured := captured_model(known)) is None else [captured])]
    if any(model.answer == "other" for model in others):
        yield "which weights are served"


def _unreadable(offline: Offline | None) -> Iterator[str]:
    """Faults with which no reading is that of a whole drafter."""
    if offline is None:
        return
    broken = [item for item in offline.diagnosis.findings if item.cause == "loading" and weighty(item)]
    if broken and not _is_read_as_mended(offline, broken):
        yield "the drafter's files"
    if any(item.cause == "data" and item.check in DOUBTED_BY and weighty(item) for item in offline.diagnosis.findings):
        yield "the rows that it is judged on"
    elif not broken and is_poor(offline.wiring.best):
        yield "why no reading is good"


def _is_read_as_mended(offline: Offline, broken: list[CheckResult]) -> bool:
    """Whether the best reading is of a drafter without the fault: with another vocabulary map it reads well."""
    best = offline.wiring.best
    mapped = any(change.startswith("vocabulary=") for change in best.facts.changes)
    return mapped and not is_poor(best) and all(item.check == "K3" for item in broken)


def _misfed(known: Known) -> Iterator[str]:
    """Other states than it was trained on, or another computation."""
    offline, fed, trained = known.offline, known.fed, known.trained
    states = fed.states if fed is not None else None if known.resolved is None else known.resolved.states
    other = states is not None and trained is not None and tuple(states) != tuple(trained)
    if other or (fed is not None and trained is not None and fed.changed):
        yield "what it is fed"
    elif offline is not None and not _reads_best(offline.wiring, told=states is not None and trained is not None):
        yield "what it is fed, or how it is computed"


def _reads_best(wiring: WiringVerdict, *, told: bool) -> bool:
    """Whether no other reading is better; where it is `told` that it is fed as trained, rival states are no fault."""
    best, declared = wiring.best, wiring.declared
    if best is declared:
        return True
    computed_alike = declared is not None and best.facts.changes == declared.facts.changes
    return told and wiring.verdict == "cannot_separate" and computed_alike


def _length(known: Known, *, lost: bool) -> tuple[Estimate | None, str]:
    """What the best reading would accept with as many steps: on served text, held-out first, else on its own rows.

    `lost`: whether the server loses drafts; then only what was walked of the served text tells.
    """
    steps = None if known.served is None else known.served.figures.draft.depth
    offline = known.offline
    for split in reversed(SPLITS):
        found = known.foretold(split, "best")
        if found is not None and found.requests and steps is not None:
            sums = [(item.verifies + item.accepted, item.verifies) for item in found.requests]
            told = bounded(pooled_ratio([a for a, _ in sums], [b for _, b in sums]), 1, steps + 1)
            return told, f"on {'training' if split == 'train' else split} prompts"
    if offline is None or lost:
        return None, ""
    figures = offline.wiring.best.figures
    return (figures.accept_length_walk, "on its training rows") if figures.steps == steps else (None, "")
