"""What is left of a drafter's predictions when its states are taken away: the sweep's control."""

from remote_payload.schema import ReadingFacts, StandaloneResult

CHANGES = {"states=zeroed", "states=shuffled"}
"""Changes that take the states away."""


def without_states(result: StandaloneResult) -> ReadingFacts | None:
    """The control that reads best without its states; None where none was measured."""
    controls = [facts for facts in result.readings if set(facts.changes) & CHANGES and facts.positions]
    return max(controls, key=lambda facts: facts.first_step_hits / facts.positions, default=None)


def share_with_states(control: ReadingFacts, best: float) -> float:
    """Step-1 accuracy with the states on the control's own positions; `best`, of all rows, where it is not known."""
    paired = control.paired_first_step_hits
    return best if paired is None else paired / control.positions


def reads_none(result: StandaloneResult, best: float) -> bool:
    """Whether the drafter predicts no worse without its states than with them, as on states that are noise to it."""
    control = without_states(result)
    if control is None:
        return False
    return control.first_step_hits / control.positions >= share_with_states(control, best)
