"""The names of a run's files on this laptop, beside those of `remote_payload.rundir.RunDir`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remote_payload.rundir import RunDir

if TYPE_CHECKING:
    from orchestrator.records import RunRecord

RECORD = "run.json"
"""RunRecord: a run of a host."""
MEASUREMENTS = "measurements.json"
"""MeasurementSet: all there is of an imported one; beside a run of a host only a copy, made from its result."""
KEY = "measurements.key"
"""What the measurements beside it were made of, and their own sha256."""
RAW = "source.gz"
"""What an imported set was read from, as it was."""
LABELS = "labels.json"
"""RunLabels: tags and a note."""
VERDICT = "verdict.json"
"""RunVerdict: what a review said."""
TOLD = "told.json"
"""That somebody was told of its end by this laptop."""
ATTEMPTS = "attempts.jsonl"
"""Beside a sweep's record: its attempts as the host told them last."""
NO_RESULT = "no_result.json"
"""That its host was asked for the result and said that there is none."""
DERIVED = frozenset({LABELS, VERDICT, TOLD, NO_RESULT})
"""Said about a run; no part of what it is."""


def record_path(run: RunDir) -> Path:
    """Where a run's RunRecord lies."""
    return run.path / RECORD


def is_imported(run: RunDir) -> bool:
    """Whether another tool measured it: it has measurements and never was a run of a host."""
    return (run.path / MEASUREMENTS).is_file() and not record_path(run).exists() and not run.spec.exists()


def has_capture(run: RunDir, record: RunRecord) -> bool:
    """Whether what a capture found came home whole; it has no figures to compare."""
    return record.job_kind == "capture" and record.phase == "succeeded" and run.manifest.is_file()


def has_figures(run: RunDir, record: RunRecord) -> bool:
    """Whether a result with figures to judge came home whole; of a served benchmark also one that ended early."""
    is_over = record.state is not None and record.state.is_terminal
    is_part = is_over and record.job_kind == "bench" and (run.result / "bench.json").is_file()
    is_done = record.job_kind in ("standalone", "bench") and record.phase == "succeeded"
    return (is_done or is_part) and run.manifest.is_file()
