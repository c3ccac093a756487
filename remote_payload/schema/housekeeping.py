"""`gc`: what of the tool's root on a host may go, what it frees, and why the rest stays."""

from typing import Literal

from remote_payload.schema.record import Record, require, require_finite
from remote_payload.schema.run import require_run_id

GcKind = Literal["run", "sweep", "group", "payload", "leftover"]
"""`group`: what a host was told of a sweep over several hosts; looked at with the sweeps."""


class HomeRun(Record):
    """A run that the asking laptop has brought home."""

    run_id: str
    created_unix_s: float
    """Of its spec: another run of this id is not the one at home."""
    whole: bool
    """With the manifest of its result; False: only its state is known there."""

    def __post_init__(self) -> None:
        require_run_id(self.run_id)
        require_finite(created_unix_s=self.created_unix_s)


class HomeGroup(Record):
    """A sweep over several hosts as the asking laptop knows it."""

    group_id: str
    is_over: bool
    """Nothing more comes of any share, and everything is at home; not of hosts that were said to be dead."""

    def __post_init__(self) -> None:
        require_run_id(self.group_id)


class GcRules(Record):
    """What goes; without a limit no run and no sweep does."""

    kinds: tuple[GcKind, ...] = ("run", "sweep", "payload")
    """What is looked at; leftovers of a broken `gc` always are."""
    older_than_s: float | None = None
    """What ended longer ago than this goes, seconds; a payload: what was shipped longer ago."""
    keep_newest: int | None = None
    """So many runs and sweeps, counted together, stay whatever else is asked; alone: all others go."""
    max_bytes: int | None = None
    """The oldest go until the root takes no more than this, bytes allocated on its disk."""
    uncollected: bool = False
    """Also what the asking laptop has not brought home."""

    def __post_init__(self) -> None:
        require_finite(older_than_s=self.older_than_s)
        require(self.older_than_s is None or self.older_than_s >= 0, "`older_than_s` must not be negative")
        require(self.keep_newest is None or self.keep_newest >= 0, "`keep_newest` must not be negative")
        require(self.max_bytes is None or self.max_bytes >= 0, "`max_bytes` must not be negative")


class GcRequest(Record):
    """`gc`: look, and with `apply` remove."""

    nonce: str
    root: str
    rules: GcRules
    home: tuple[HomeRun, ...] = ()
    groups: tuple[HomeGroup, ...] = ()
    apply: bool = False


class GcItem(Record):
    """One thing under the root: a run, a sweep with its units, what was told of a group, a payload, a leftover."""

    kind: GcKind
    name: str
    runs: int = 0
    """How many run folders it has: 1 of a run; of a sweep its own, and those of its units that go or stay with it."""
    ended_unix_s: float | None = None
    """When it ended, by the host's clock; of a payload when it was shipped, of a group when something of it was told
    last; None = it goes on, or unknown."""
    size_bytes: int = 0
    """Allocated on the disk, hard links within it counted once."""
    frees_bytes: int = 0
    """Of these, what no other name on the disk holds; what went already counts for nothing."""
    goes: bool
    reason: str
    """Why it goes or stays, in words that are alike for all of whom the same holds."""
    detail: str = ""
    """What only holds for this one: who needs it, what could not be removed."""
    removed: bool = False
    """Whether it is gone now, all of it."""


class GcTotals(Record):
    """Bytes allocated on the root's disk."""

    root: str
    """As it is on the host, links resolved."""
    before_bytes: int
    """Of everything looked at."""
    removed_bytes: int
    """What was removed had so much."""
    disk_free_bytes: int | None
    """What the disk has left for this user, afterwards."""
