"""What must be the same for an unfinished run's rows to be taken over, and the taking over."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import torch

from remote_payload.failure import JobFailure
from remote_payload.rundir import RunDir
from remote_payload.schema.job import StandaloneJob, job_from_json
from remote_payload.schema.record import SCHEMA_VERSION, from_json
from remote_payload.schema.run import RunSpec
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.measure.partial import Fingerprint, Partial, take_over
from remote_payload.standalone.rows.files import RowFolder

MOST_TRIES = 100
"""Runs that may each have taken over the one before."""
MATTERS = (
    "draft",
    "rows",
    "target",
    "merged",
    "states",
    "add_embedding",
    "wanted",
    "steps",
    "dtype",
    "max_rows",
    "search_rows",
    "keep_readings",
    "token_offsets",
    "heldout",
    "heldout_merged",
    "sweep",
)
"""Settings of the job that change what is measured."""


def open_partial(
    job: StandaloneJob,
    checkpoint: Checkpoint,
    folders: Iterable[RowFolder],
    device: str,
    run: RunDir,
    journal: Journal,
) -> Partial:
    """Begin this run's `partial.jsonl`, with the lines of the run that `job.resume` names.

    Raises JobFailure(job) where that run left nothing, or measured something else, unless `job.or_anew`.
    """
    found = fingerprint(job, checkpoint, folders, device)
    lines = []
    if job.resume is not None:
        runs = run.path.parent
        left_by = who_measured(job.resume, runs) if job.or_anew else job.resume
        try:
            lines = take_over(RunDir(runs / left_by).partial, left_by, found)
        except JobFailure as nothing:
            if not job.or_anew:
                raise
            journal.note("resume", f"measured anew: {nothing.failure.message}")
    return Partial(run.partial, found, lines)


def who_measured(run_id: str, runs: Path) -> str:
    """The run that left something: the one that is named, or, where it ended before it did, the one it took over."""
    for _ in range(MOST_TRIES):
        run = RunDir(runs / run_id)
        if run.partial.exists():
            return run_id
        try:
            before = job_from_json(from_json(RunSpec, run.spec.read_text(encoding="utf-8")).job_json)
        except (OSError, ValueError):  # it is gone, or damaged: the one that is named is told as lacking
            return run_id
        if not isinstance(before, StandaloneJob) or before.resume is None:
            return run_id
        run_id = before.resume
    return run_id


def fingerprint(job: StandaloneJob, checkpoint: Checkpoint, folders: Iterable[RowFolder], device: str) -> Fingerprint:
    """Settings, weights, files of rows and of the target by size and time, versions."""
    settings = {name: getattr(job, name) for name in MATTERS}
    target = [path for path in sorted(checkpoint.target.folder.iterdir()) if path.is_file()]
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()},
        "device": device,
        "weights": checkpoint.facts.weights_sha256,
        "config": hashlib.sha256(checkpoint.facts.config_json.encode()).hexdigest(),
        "target files": _listing(target),
        "row files": _listing(path for folder in folders for path in _files(folder)),
        "schema version": SCHEMA_VERSION,
        "payload": _own_version(),
        "torch": torch.__version__,
    }


def _files(folder: RowFolder) -> list[Path]:
    """Files that are read; the others need not even be there."""
    return sorted({file.path for file in folder.files if file.odd is None})


def _listing(paths: Iterable[Path]) -> str:
    """One hash of names, sizes and times."""
    told = hashlib.sha256()
    for path in paths:
        stat = path.stat()
        told.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return told.hexdigest()


def _own_version() -> str:
    """The payload's hash as its path tells it; `source` where it is not run from a payload file."""
    parts = Path(__file__).parts
    return next((part.partition(".")[0] for part in reversed(parts) if len(part.partition(".")[0]) == 64), "source")
