"""A sweep over several hosts as each of its hosts is told of it: which share has which points, before any is launched.

What no host of a group knows of another it could not refuse; so every share is told to all that answer.
"""

from typing import Literal

from remote_payload.schema.record import Record
from remote_payload.schema.run import Setting, require_run_id


class ToldShare(Record):
    """One share, told to a host that it need not be on."""

    group_id: str
    run_id: str
    """The sweep that measures the share."""
    host: str
    """Where, as the laptop names it that made the share; empty = on the host that is told."""
    destination: str
    place: str | None = None
    """Of that host's root, as `TellFrame.place`; None = nobody asked."""
    job_json: str
    settings: tuple[Setting, ...] = ()
    over: tuple[str, ...] = ()
    """Shares that may have some of the same points: whoever made this one knows what became of them."""
    never_begun: tuple[str, ...] = ()
    """Those among them that were nowhere found: they must not begin any more."""
    told_by: str
    """user@machine."""
    told_unix_s: float = 0.0
    """By the clock of the host that is told."""

    def __post_init__(self) -> None:
        require_run_id(self.group_id)
        for run_id in (self.run_id, *self.over, *self.never_begun):
            require_run_id(run_id)


class TellRequest(Record):
    """`tell`: what this host was told of a group's shares; before that, take in more, all or none."""

    nonce: str
    root: str
    group_id: str
    shares: tuple[ToldShare, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """Shares that were told and certainly will not begin."""
    known: tuple[str, ...] = ()
    """Shares that the answer need not tell of: they may have thousands of points."""

    def __post_init__(self) -> None:
        for run_id in (self.group_id, *self.withdrawn, *self.known):
            require_run_id(run_id)


class TellFrame(Record):
    """Answer of `tell`, in the order in which the host was told."""

    kind: Literal["tell"] = "tell"
    shares: tuple[ToldShare, ...]
    here: tuple[str, ...]
    """Of all shares, also of those that the request knows, the ones that are runs of this host."""
    gone: tuple[str, ...] = ()
    """Those that were, until `gc` took them away."""
    place: str | None
    """Tells this root from every other, also of another host that goes by the same name; None = it cannot be kept."""
