"""What each choice of the computation is worth: the best reading against itself with one choice as it is served.

A change is worth something only if it is surely so (paired by row, interval widened for the readings that were held
against each other); otherwise the simpler reading stands. The measure is accepted drafts a position (leading hits of
whole chains): step 1 cannot see how later steps are fed.
"""

from collections.abc import Sequence

from orchestrator.compare.figures import ReadingFigures, mean_sums, same_rows
from orchestrator.compare.stats import Estimate, paired_difference
from orchestrator.diagnosis.verdict import CHANGE_SEPARATION, Effect, MeasuredReading
from remote_payload.schema import CheckpointFacts

OWN = "the checkpoint's own"
"""A value that is not known in words: results that are older than the graph's flags."""
LARGE = 5 * CHANGE_SEPARATION
"""A lead beyond it is not waved through as chance, however few the rows."""


def changed(changes: Sequence[str]) -> dict[str, str]:
    """`("residual=normed",)` as {"residual": "normed"}."""
    return dict(change.split("=", 1) for change in changes if "=" in change)


def value_of(key: str, changes: Sequence[str], checkpoint: CheckpointFacts) -> str:
    """A choice's value in a reading with these changes; the checkpoint's own where it changes nothing there."""
    own = next((flag.value for flag in checkpoint.graph if flag.name == key), OWN)
    return changed(changes).get(key, own)


def accepted_difference(a: ReadingFigures, b: ReadingFigures, confidence: float) -> Estimate | None:
    """Accepted drafts a position of a minus those of b, paired by row; None on unlike rows."""
    if not same_rows(a, b):
        return None
    found = paired_difference(mean_sums(a), mean_sums(b), confidence)
    return None if found.value is None else found


def same_inputs(a: MeasuredReading, b: MeasuredReading) -> bool:
    """Whether both are fed the same states and tokens."""
    return a.facts.slots == b.facts.slots and a.facts.token_offset == b.facts.token_offset


def simplest(ranked: Sequence[MeasuredReading], declared: MeasuredReading | None, confidence: float) -> MeasuredReading:
    """The first reading, or a simpler one of the same inputs that it is not surely, nor by much, ahead of.

    What is served is the simplest, then the checkpoint's own computation, then the fewest changes.
    """
    top = ranked[0]
    others = sorted(
        (item for item in ranked if item is not top and same_inputs(item, top)),
        key=lambda item: (item is not declared, len(item.facts.changes)),
    )
    for item in others:
        simpler = item is declared or len(item.facts.changes) < len(top.facts.changes)
        ahead = accepted_difference(top.figures, item.figures, confidence) if simpler else None
        if ahead is None or top is declared or (ahead.value or 0.0) > LARGE:
            continue
        if ahead.low is None or ahead.low <= CHANGE_SEPARATION:
            return item
    return top


def effects(
    best: MeasuredReading,
    declared_changes: Sequence[str],
    measured: Sequence[MeasuredReading],
    checkpoint: CheckpointFacts,
    confidence: float,
) -> tuple[Effect, ...]:
    """An effect for each choice in which `best` and what is served differ; one for all where only that was measured."""
    ours, theirs = changed(best.facts.changes), changed(declared_changes)
    keys = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    single = [_effect(best, (key,), declared_changes, measured, checkpoint, confidence) for key in keys]
    if len(keys) > 1 and all(effect.reverted is None for effect in single):
        together = _effect(best, tuple(keys), declared_changes, measured, checkpoint, confidence)
        return (together,) if together.reverted is not None else tuple(single)
    return tuple(single)


def _effect(
    best: MeasuredReading,
    keys: tuple[str, ...],
    declared_changes: Sequence[str],
    measured: Sequence[MeasuredReading],
    checkpoint: CheckpointFacts,
    confidence: float,
) -> Effect:
    wanted, served = changed(best.facts.changes), changed(declared_changes)
    for key in keys:
        wanted.pop(key, None)
        if key in served:
            wanted[key] = served[key]
    reverted = next(
        (item for item in measured if same_inputs(item, best) and changed(item.facts.changes) == wanted), None
    )
    return Effect(
        keys=keys,
        best=tuple(value_of(key, best.facts.changes, checkpoint) for key in keys),
        served=tuple(value_of(key, declared_changes, checkpoint) for key in keys),
        reverted=reverted,
        difference=None if reverted is None else accepted_difference(best.figures, reverted.figures, confidence),
    )
