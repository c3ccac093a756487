"""What the reader of a report adds to what was measured; in a file of its own because figures take 0.1 s to import."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.step_cost import StepCost


@dataclass(frozen=True, kw_only=True)
class Question:
    """How a server is run, and what its steps cost."""

    max_new_tokens: int | None = None
    """As the server's, for the walk; None = each request to the end of its response."""
    costs: Sequence[StepCost] = ()
    """The first that holds for the result's target and device is taken."""
