"""A line of the table: which answers together mean what, and what to run where they do not tell."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.decision.axes import AXES, Answer, Axis
from orchestrator.diagnosis.finding import Cause

Kind = Literal["fault", "also", "ask", "healthy", "sound"]
"""`fault`: a cause is named; `also`: true beside it; `ask`: cannot be told yet; `healthy`: nothing is at fault;
`sound`: the same, but for the speed, which is not judged."""
Step = Literal["standalone", "sweep", "more_rows", "other_rows", "check_rows", "heldout", "more_heldout", "capture",
               "serve_train", "serve_heldout", "predict", "more_prompts", "bench", "baseline", "repeats",
               "again"]  # fmt: skip
"""What to run next, by name; see `next_runs`."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    kind: Kind
    when: str
    """`axis=answer|answer`, or `axis!=answer|answer` for any other; all of them must hold."""
    why: str
    """What the line says, and why that follows."""
    cause: Cause | None = None
    tells: tuple[Axis, ...] = ()
    """Whose results are told; the first leads. Of a fault as findings, else as what is true beside them."""
    asks: tuple[Step, ...] = ()
    doubts: bool = False
    """Whether what is named elsewhere may change once this is answered."""
    essential: bool = False
    """For `ask`: nothing can be called healthy before."""
    bars_fix: bool = False
    """Whether no config is changed while this holds: of an `ask`, two proofs speak against each other."""

    @functools.cached_property
    def conditions(self) -> Mapping[Axis, frozenset[Answer]]:
        """`when`, read. Raises ValueError where it names what there is not."""
        found: dict[Axis, frozenset[Answer]] = {}
        for part in self.when.split():
            name, _, words = part.partition("=")
            axis = next((known for known in AXES if known == name.removesuffix("!")), None)
            answers = frozenset(words.split("|"))
            if axis is None or not answers <= set(AXES[axis]):
                raise ValueError(f"row {self.name}: no such condition: {part}")
            found[axis] = frozenset(AXES[axis]) - answers if name.endswith("!") else answers
        return found

    def holds(self, place: Mapping[Axis, Answer]) -> bool:
        """Whether this row speaks of that cell."""
        return all(place[axis] in answers for axis, answers in self.conditions.items())
