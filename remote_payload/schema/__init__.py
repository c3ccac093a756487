"""THE records of the wire, and the only home of their definition.

The laptop validates these same classes with pydantic; the server, which has no pydantic, reads them with `from_json`.

Version history (`SCHEMA_VERSION`):
    1  first version: standalone, bench and selftest jobs, run states, events, manifest, frames, host facts; sweeps.
"""

import importlib
from typing import TYPE_CHECKING

# Every verb on the host and the worker pay for what they import, so a record's module is imported with the first of
# its records that is asked for.
if TYPE_CHECKING:
    from remote_payload.schema.bench_job import BenchJob
    from remote_payload.schema.frames import (
        FRAME_KINDS,
        CancelFrame,
        ChunkFrame,
        EndFrame,
        ErrorFrame,
        FileFrame,
        Frame,
        IdentifyFrame,
        LaunchedFrame,
        ManifestFrame,
        ProbeFrame,
        PulseFrame,
        StateFrame,
        StatusFrame,
        SweepFrame,
        frame_from_json,
    )
    from remote_payload.schema.host import Gpu, GpuProcess, HostFacts, ProbeRequest, PythonFacts
    from remote_payload.schema.job import (
        JOB_KINDS,
        Job,
        SelftestJob,
        StandaloneJob,
        UnitJob,
        job_from_json,
        job_from_value,
        job_of_unit,
    )
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
    from remote_payload.schema.standalone import (
        CaptureCheck,
        CaptureSlot,
        CheckpointFacts,
        ConfigNote,
        DataDialectFacts,
        DeclaredWiring,
        DialectFacts,
        GraphFlag,
        HeadRelation,
        HeadShift,
        MapReading,
        MaskEdge,
        MemoryPart,
        MemoryPlan,
        Phase,
        ReadingFacts,
        ReadingHits,
        RowFacts,
        RowsFacts,
        RowsLint,
        SelfFed,
        SharedTensorFacts,
        SkippedReading,
        SkippedRow,
        SlotFacts,
        StandaloneResult,
        TeacherFacts,
        TensorFact,
        TensorProblem,
        TensorStatistics,
        VocabularyFacts,
        WeightFile,
        Zone,
    )
    from remote_payload.schema.sweep import (
        IdentifyRequest,
        PathIdentity,
        PointOutcome,
        SkippedPoint,
        SweepAttempt,
        SweepDone,
        SweepJob,
        SweepPoint,
        SweepRequest,
        SweepUnit,
    )
else:
    _HOMES = (
        "record",
        "run",
        "sweep",
        "job",
        "host",
        "requests",
        "frames",
        "standalone",
    )  # what needs others: last

    def __getattr__(name):
        """Import the home of a record when it is first asked for (PEP 562)."""
        if name in __all__:
            for home in _HOMES:
                module = importlib.import_module(f"{__name__}.{home}")
                if hasattr(module, name):
                    globals()[name] = getattr(module, name)
                    return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FRAME_KINDS",
    "JOB_KINDS",
    "SCHEMA_VERSION",
    "TERMINAL_PHASES",
    "BenchJob",
    "CancelAnswer",
    "CancelFrame",
    "CancelRequest",
    "CaptureCheck",
    "CaptureSlot",
    "CheckpointFacts",
    "ChunkFrame",
    "ConfigNote",
    "Cursor",
    "DataDialectFacts",
    "DeclaredWiring",
    "DialectFacts",
    "EndFrame",
    "ErrorFrame",
    "Event",
    "Failure",
    "FileFrame",
    "FollowRequest",
    "Frame",
    "Gpu",
    "GpuProcess",
    "GraphFlag",
    "HeadRelation",
    "HeadShift",
    "HostFacts",
    "IdentifyFrame",
    "IdentifyRequest",
    "Job",
    "LaunchRequest",
    "LaunchedFrame",
    "Manifest",
    "ManifestFile",
    "ManifestFrame",
    "MapReading",
    "MaskEdge",
    "MemoryPart",
    "MemoryPlan",
    "PathIdentity",
    "Phase",
    "PointOutcome",
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
    "RowsLint",
    "RunSpec",
    "RunState",
    "SchemaError",
    "SelfFed",
    "SelftestJob",
    "Setting",
    "SharedTensorFacts",
    "SkippedPoint",
    "SkippedReading",
    "SkippedRow",
    "SlotFacts",
    "StandaloneJob",
    "StandaloneResult",
    "StateFrame",
    "StatusAnswer",
    "StatusFrame",
    "StatusRequest",
    "SweepAttempt",
    "SweepDone",
    "SweepFrame",
    "SweepJob",
    "SweepPoint",
    "SweepRequest",
    "SweepUnit",
    "TeacherFacts",
    "TensorFact",
    "TensorProblem",
    "TensorStatistics",
    "UnitJob",
    "VocabularyFacts",
    "WeightFile",
    "Zone",
    "frame_from_json",
    "from_json",
    "job_from_json",
    "job_from_value",
    "job_of_unit",
    "to_json",
]
