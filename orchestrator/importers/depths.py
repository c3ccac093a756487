"""Acceptance by depth: of the verify steps that accepted so many drafts, the share that accepted one more."""

from collections.abc import Sequence

from orchestrator.compare import definitions as ours
from orchestrator.importers.point import Figure

DEEPEST = 16


def by_depth(joint: Sequence[float]) -> list[Figure]:
    """Conditional shares from joint ones: of all verify steps, those that accepted at least 1, 2, ... drafts.

    Ends where nothing more is accepted, or where the shares rise, which they cannot.
    """
    found: list[Figure] = []
    before = 1.0
    for depth, share in enumerate(joint[:DEEPEST], 1):
        if before <= 0 or share > before:
            break
        words = ours.FIRST_STEP_ACCEPTANCE if depth == 1 else ours.STEP_ACCEPTANCE.format(before=depth - 1)
        found.append(Figure(metric=f"step{depth}_acceptance", unit="share", definition=words, value=share / before))
        before = share
    return found
