"""THE records of the wire, and the only home of their definition.

The laptop validates these same classes with pydantic; the server, which has no pydantic, reads them with `from_json`.

Version history (`SCHEMA_VERSION`):
    1  first version: standalone and selftest jobs, run states, events, manifest, frames, host facts.
"""

from typing import TYPE_CHECKING

from remote_payload.schema.frames import (
    FRAME_KINDS,
    CancelFrame,
    ChunkFrame,
    EndFrame,
    ErrorFrame,
    FileFrame,
    Frame,
    LaunchedFrame,
    ManifestFrame,
    ProbeFrame,
    PulseFrame,
    StateFrame,
    StatusFrame,
    frame_from_json,
)
from remote_payload.schema.host import Gpu, GpuProcess, HostFacts, ProbeRequest, PythonFacts
from remote_payload.schema.job import JOB_KINDS, Job, SelftestJob, StandaloneJob, job_from_json
from remote_payload.schema.record import SCHEMA_VERSION, Record, SchemaError, from_json, to_json
from remote_payload.schema.requests import (
    CancelAnswer,
    CancelRequest,
    Cursor,
    FollowRequest,
    LaunchRequest,
    StatusAnswer,
    StatusRequest,
)
from remote_payload.schema.run import (
    TERMINAL_PHASES,
    Event,
    Failure,
    Manifest,
    ManifestFile,
    ResourceUse,
    RunSpec,
    RunState,
    Setting,
)

# Only the standalone job and readers of its result need these, and every verb on the host pays for what is imported.
if TYPE_CHECKING:
    from remote_payload.schema.standalone import (
        CheckpointFacts,
        DeclaredWiring,
        Phase,
        ReadingFacts,
        ReadingHits,
        RowFacts,
        RowsFacts,
        SkippedRow,
        StandaloneResult,
        TensorFact,
        TensorProblem,
    )
else:

    def __getattr__(name):
        """Import the records of the standalone result when they are first asked for (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from remote_payload.schema import standalone  # noqa: PLC0415

        return getattr(standalone, name)


__all__ = [
    "FRAME_KINDS",
    "JOB_KINDS",
    "SCHEMA_VERSION",
    "TERMINAL_PHASES",
    "CancelAnswer",
    "CancelFrame",
    "CancelRequest",
    "CheckpointFacts",
    "ChunkFrame",
    "Cursor",
    "DeclaredWiring",
    "EndFrame",
    "ErrorFrame",
    "Event",
    "Failure",
    "FileFrame",
    "FollowRequest",
    "Frame",
    "Gpu",
    "GpuProcess",
    "HostFacts",
    "Job",
    "LaunchRequest",
    "LaunchedFrame",
    "Manifest",
    "ManifestFile",
    "ManifestFrame",
    "Phase",
    "ProbeFrame",
    "ProbeRequest",
    "PulseFrame",
    "PythonFacts",
    "ReadingFacts",
    "ReadingHits",
    "Record",
    "ResourceUse",
    "RowFacts",
    "RowsFacts",
    "RunSpec",
    "RunState",
    "SchemaError",
    "SelftestJob",
    "Setting",
    "SkippedRow",
    "StandaloneJob",
    "StandaloneResult",
    "StateFrame",
    "StatusAnswer",
    "StatusFrame",
    "StatusRequest",
    "TensorFact",
    "TensorProblem",
    "frame_from_json",
    "from_json",
    "job_from_json",
    "to_json",
]
