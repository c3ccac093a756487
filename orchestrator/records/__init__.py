"""Records on the laptop: its own (a run, a baseline, a measurement), and how all records are read."""

from orchestrator.records.baseline import Baseline, BaselineEntry, BaselineNumber
from orchestrator.records.labels import RunLabels, RunTold, RunVerdict, WayTold
from orchestrator.records.names import NAME_RULE, is_name
from orchestrator.records.reading import lined_bytes, read_frame, read_record, record_bytes, record_of
from orchestrator.records.run import RunHost, RunRecord

__all__ = [
    "NAME_RULE",
    "Baseline",
    "BaselineEntry",
    "BaselineNumber",
    "RunHost",
    "RunLabels",
    "RunRecord",
    "RunTold",
    "RunVerdict",
    "WayTold",
    "is_name",
    "lined_bytes",
    "read_frame",
    "read_record",
    "record_bytes",
    "record_of",
]
