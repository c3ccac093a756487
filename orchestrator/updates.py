"""What a run tells while it goes on: values, so that a terminal, a log and a script can each show them their way."""

from dataclasses import dataclass
from typing import Literal

from remote_payload.schema import Event, RunState


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something worth a line: what was chosen, what was skipped."""

    name: str
    """`connected`, `python`, `payload`, `launched`, `collected`, `stored`, ..."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Progressed:
    """One line of the run's events.jsonl."""

    event: Event


@dataclass(frozen=True, kw_only=True)
class StateChanged:
    """The run's state on the host."""

    state: RunState


@dataclass(frozen=True, kw_only=True)
class LogArrived:
    """Bytes of the worker's output, as they came."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Reconnecting:
    """The link broke; the job goes on and so do we."""

    attempt: int
    reason: str


Update = Note | Progressed | StateChanged | LogArrived | Reconnecting
