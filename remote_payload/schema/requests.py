"""What the laptop asks of the payload's verbs: one JSON object on stdin, answered by frames on stdout."""

from dataclasses import field

from remote_payload.schema.record import Record, require
from remote_payload.schema.run import RunSpec, RunState, require_run_id


class Cursor(Record):
    """How many bytes of each stream the laptop already has."""

    events: int = 0
    stdout: int = 0
    stderr: int = 0

    def __post_init__(self) -> None:
        require(min(self.events, self.stdout, self.stderr) >= 0, "a cursor must not be negative")


class LaunchRequest(Record):
    """`launch`: claim the run directory, start the supervisor, answer; then follow in the same channel if asked."""

    nonce: str
    root: str
    spec: RunSpec
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """Values by environment name; go to the worker's environment and nowhere else."""
    follow: bool = True
    until_running: bool = False
    """As of FollowRequest."""
    inline_limit_bytes: int = 1 << 20


class FollowRequest(Record):
    """`follow`: stream state, events and logs from the cursor on, until the run is over or the channel closes."""

    nonce: str
    root: str
    run_id: str
    cursor: Cursor = field(default_factory=Cursor)
    pulse_s: float = 2.0
    """A pulse frame is sent whenever nothing else was for this long."""
    wait: bool = True
    """False: send what is there now and end."""
    until_running: bool = False
    """End as soon as it waits for nothing any more and its worker runs."""
    collect: bool = True
    """After a terminal state, send the manifest and, inline, files while they fit `inline_limit_bytes`."""
    inline_limit_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        require_run_id(self.run_id)
        require(self.pulse_s > 0, "`pulse_s` must be positive")


class StatusRequest(Record):
    """`status`: the state of one run, or of every run under the root when `run_id` is None."""

    nonce: str
    root: str
    run_id: str | None = None
    prefix: str = ""
    """Of every run, only those whose id begins like this: the units of a sweep."""

    def __post_init__(self) -> None:
        if self.run_id is not None:
            require_run_id(self.run_id)


class StatusAnswer(Record):
    """The states asked for, each with its spec; and the run directories that could not be read."""

    states: tuple[RunState, ...]
    specs: tuple[RunSpec, ...]
    heartbeat_ages_s: tuple[float | None, ...]
    unreadable: tuple[str, ...] = ()


class CancelRequest(Record):
    """`cancel`: TERM, grace, KILL, until the supervisor's whole tree is empty."""

    nonce: str
    root: str
    run_id: str
    grace_s: float = 5.0

    def __post_init__(self) -> None:
        require_run_id(self.run_id)
        require(0 <= self.grace_s <= 600, "`grace_s` must be 0..600")


class CancelAnswer(Record):
    """What cancel did: the state after it, whether the run had been over before, pids it could not kill."""

    state: RunState
    was_terminal: bool
    survivors: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    """Pids that no supervisor looked after any more, or that nothing but the kernel knew of, and that are ended now."""
    unproved: str | None = None
    """Why nobody can say that nothing of the run is left; None = it was seen."""
