"""`result/standalone.json`: everything measured, raw, with units; figures and verdicts are made on the laptop."""

from typing import Literal

from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.record import SCHEMA_VERSION, Record
from remote_payload.schema.standalone.checkpoint import CheckpointFacts, DeclaredWiring
from remote_payload.schema.standalone.readings import ReadingFacts, SelfFed, SkippedReading, Zone
from remote_payload.schema.standalone.rows import CaptureCheck, RowsFacts


class Phase(Record):
    """One phase of the job and what it took."""

    name: str
    seconds: float
    tokens: int | None = None


class MemoryPart(Record):
    """One item of the memory plan."""

    name: str
    size_bytes: int
    mapped: bool = False
    """Pages of files, which the kernel can take back where memory is short, at the cost of reading them again."""


class MemoryPlan(Record):
    """What the job expected to need before it began, and the limit it kept to."""

    expected_peak_bytes: int
    limit_bytes: int | None = None
    """`max_memory_bytes` of the job; None = no limit was asked for."""
    parts: tuple[MemoryPart, ...] = ()
    where: Literal["host", "gpu"] = "host"


class StandaloneResult(Record):
    """`result/standalone.json`."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["standalone"] = "standalone"
    checkpoint: CheckpointFacts
    declared: DeclaredWiring
    rows: RowsFacts
    readings: tuple[ReadingFacts, ...]
    steps: int
    dtype: str
    device: str
    device_name: str
    torch: str
    python: str
    threads: int
    phases: tuple[Phase, ...]
    peak_memory_bytes: int | None
    peak_gpu_memory_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    heldout: RowsFacts | None = None
    """The held-out rows; their hits lie in `heldout.jsonl.gz`, of the same form as `hits.jsonl.gz`."""
    heldout_readings: tuple[ReadingFacts, ...] = ()
    """The finalists on the held-out rows, all at stage `full`."""
    skipped_readings: tuple[SkippedReading, ...] = ()
    self_fed: SelfFed | None = None
    zones: tuple[Zone, ...] = ()
    capture: CaptureCheck | None = None
    memory: MemoryPlan | None = None
    resumed_from: str | None = None
    """The run whose finished rows were taken over; None = everything was measured here."""
    resumed_rows: int | None = None
    """How many rows of both splits that was; None = everything was measured here, or an earlier version."""
    target: FolderFacts | None = None
    """By content, to know the same weights again where they are served; None = an earlier version."""
    draft: FolderFacts | None = None
