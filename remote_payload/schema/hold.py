"""A hold: a run that leases GPUs and does nothing with them but let other runs use them, one after the other.

Its members are ordinary runs whose spec names it as `within`; they see its devices, wait for none of their own, and are
its children: who cancels it cancels them.
"""

from typing import Literal

from remote_payload.schema.record import Record, require, require_finite
from remote_payload.schema.run import RunState, require_run_id

IDLE_S = 600.0
"""How long a hold goes on where no member runs and nobody asks for one."""


class HoldJob(Record):
    """Hold what was leased until it is told that no more members come, or nobody came for long."""

    kind: Literal["hold"] = "hold"
    idle_s: float = IDLE_S
    """Seconds without a living member after which it ends by itself: whoever launches members is gone."""

    def __post_init__(self) -> None:
        require_finite(idle_s=self.idle_s)
        require(self.idle_s > 0, "`idle_s` must be positive")


class HoldRequest(Record):
    """`hold`: whether a hold is to go on; one that is not ends with its last member."""

    nonce: str
    root: str
    run_id: str
    goes_on: bool

    def __post_init__(self) -> None:
        require_run_id(self.run_id)


class HoldFacts(Record):
    """A hold at one moment."""

    state: RunState
    members: tuple[str, ...] = ()
    """Runs that are on their way in it now."""
