"""What the payload's verbs print: one frame a line, `NONCE JSON`, so that banners and shell noise are skipped.

A frame line is exactly the nonce, a space, the JSON and a newline; every other line of stdout is noise.
"""

from typing import Literal

from remote_payload.schema.capture_rule import WiringFacts
from remote_payload.schema.corrected import CorrectFrame
from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.group import TellFrame
from remote_payload.schema.hold import HoldFacts
from remote_payload.schema.host import HostFacts
from remote_payload.schema.housekeeping import GcItem, GcTotals
from remote_payload.schema.record import Record, SchemaError, from_value, parse_json
from remote_payload.schema.requests import CancelAnswer, StatusAnswer
from remote_payload.schema.run import Manifest, RunState
from remote_payload.schema.schedule import EngineAnswer, Standing
from remote_payload.schema.sweep import PathIdentity, SweepAttempt
from remote_payload.schema.top import TopFacts


class LaunchedFrame(Record):
    """The supervisor reported back: it is alive on its own."""

    kind: Literal["launched"] = "launched"
    state: RunState
    adopted: bool = False
    """True when this run id with this same spec had been launched before (an answer was lost, or a second laptop)."""


class StateFrame(Record):
    """The run's state, sent at the start and at every change."""

    kind: Literal["state"] = "state"
    state: RunState


class ChunkFrame(Record):
    """Bytes of a stream, base64, starting at `offset`."""

    kind: Literal["chunk"] = "chunk"
    stream: Literal["events", "stdout", "stderr"]
    offset: int
    data_base64: str


class PulseFrame(Record):
    """The link and the follower are alive; carries the age of the supervisor's heartbeat in seconds."""

    kind: Literal["pulse"] = "pulse"
    heartbeat_age_s: float | None = None


class ManifestFrame(Record):
    """The result's manifest; None when the run left none."""

    kind: Literal["manifest"] = "manifest"
    manifest: Manifest | None


class FileFrame(Record):
    """One whole small result file, base64."""

    kind: Literal["file"] = "file"
    name: str
    data_base64: str


RefusalCode = Literal[
    "bad_request",
    "claimed_by_other_spec",
    "no_such_run",
    "root_not_writable",
    "disk_full",
    "supervisor_did_not_start",
    "schedule_refused",
    "sweep_goes_on",
    "lease_over",
    "wrong_place",
    "changed_meanwhile",
]
"""Why a verb did not do what was asked."""


class ErrorFrame(Record):
    """The verb could not do what was asked; `code` is for programs, the rest for people."""

    kind: Literal["error"] = "error"
    code: Literal[RefusalCode, "payload_bug"]
    message: str
    hint: str | None = None


class EndFrame(Record):
    """The last frame: nothing was cut off."""

    kind: Literal["end"] = "end"


class StatusFrame(Record):
    """Answer of `status`."""

    kind: Literal["status"] = "status"
    answer: StatusAnswer


class CancelFrame(Record):
    """Answer of `cancel`."""

    kind: Literal["cancel"] = "cancel"
    answer: CancelAnswer


class ProbeFrame(Record):
    """Answer of `probe`."""

    kind: Literal["probe"] = "probe"
    facts: HostFacts


class SweepFrame(Record):
    """Answer of `sweep`: some of its attempts, in order; the last frame carries the state."""

    kind: Literal["sweep"] = "sweep"
    attempts: tuple[SweepAttempt, ...]
    state: RunState | None = None
    drivers: tuple[int, ...] = ()
    """In the last frame: processes that still drive the sweep, although its state says that it is over."""


class NextFrame(Record):
    """In an answer of `gather`: the frames that follow are of this run, or there are none and why."""

    kind: Literal["next"] = "next"
    run_id: str
    problem: str | None = None


class IdentifyFrame(Record):
    """Answer of `identify`, in the order of the paths asked for; versions by package, none = unknown, or not asked."""

    kind: Literal["identify"] = "identify"
    paths: tuple[PathIdentity, ...]
    installed: dict[str, str]
    whole: tuple[str | None, ...] = ()
    """sha256 of each of the texts asked for; None = a file of it cannot be read."""
    folders: tuple[FolderFacts, ...] = ()
    """In the order of those asked for."""


class HoldFrame(Record):
    """Answer of `hold`."""

    kind: Literal["hold"] = "hold"
    facts: HoldFacts


class TopFrame(Record):
    """Answer of `top`."""

    kind: Literal["top"] = "top"
    facts: TopFacts


class GcFrame(Record):
    """Answer of `gc`: some of what is there; the last frame carries the totals."""

    kind: Literal["gc"] = "gc"
    items: tuple[GcItem, ...]
    totals: GcTotals | None = None


class ScheduleFrame(Record):
    """Answer of `schedule`: those asked for, also what is only an entry of an engine; and how the engines are."""

    kind: Literal["schedule"] = "schedule"
    standings: tuple[Standing, ...]
    engines: tuple[EngineAnswer, ...]
    zone: str
    """The host's, in words."""
    time_unix_s: float


class WiringFrame(Record):
    """Answer of `wiring`."""

    kind: Literal["wiring"] = "wiring"
    facts: WiringFacts


Frame = (
    LaunchedFrame
    | StateFrame
    | ChunkFrame
    | PulseFrame
    | ManifestFrame
    | FileFrame
    | ErrorFrame
    | EndFrame
    | StatusFrame
    | CancelFrame
    | ProbeFrame
    | HoldFrame
    | TopFrame
    | SweepFrame
    | IdentifyFrame
    | TellFrame
    | NextFrame
    | GcFrame
    | ScheduleFrame
    | CorrectFrame
    | WiringFrame
)
FRAME_KINDS: dict[str, type[Frame]] = {
    "launched": LaunchedFrame,
    "state": StateFrame,
    "chunk": ChunkFrame,
    "pulse": PulseFrame,
    "manifest": ManifestFrame,
    "file": FileFrame,
    "error": ErrorFrame,
    "end": EndFrame,
    "status": StatusFrame,
    "cancel": CancelFrame,
    "probe": ProbeFrame,
    "hold": HoldFrame,
    "top": TopFrame,
    "sweep": SweepFrame,
    "identify": IdentifyFrame,
    "tell": TellFrame,
    "next": NextFrame,
    "schedule": ScheduleFrame,
    "gc": GcFrame,
    "correct": CorrectFrame,
    "wiring": WiringFrame,
}


def frame_from_json(text: str) -> Frame:
    """Read a frame by its `kind`. Raises SchemaError."""
    value = parse_json(text, "a frame")
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in FRAME_KINDS:
        raise SchemaError(f"$.kind: expected one of {', '.join(FRAME_KINDS)}, found: {kind!r}")
    return from_value(FRAME_KINDS[kind], value)
