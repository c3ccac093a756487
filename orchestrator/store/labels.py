"""Tags, notes and verdicts of a run: read, changed, and never written into a folder that is gone."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.errors import StoreError, UsageError
from orchestrator.records import NAME_RULE, RunLabels, RunVerdict, is_name, read_record, record_bytes
from orchestrator.records.labels import MAX_NOTE
from orchestrator.store.files import read_text, write
from orchestrator.store.layout import LABELS, VERDICT
from orchestrator.store.lock import locked
from remote_payload.rundir import RunDir


def read_labels(run: RunDir, first: tuple[str, ...] = ()) -> RunLabels:
    """What was said about the run; before anything was, the tags it was launched with (`first`)."""
    path = run.path / LABELS
    if not path.is_file():
        return RunLabels(tags=tuple(dict.fromkeys(tag for tag in first if is_name(tag))))
    return read_record(RunLabels, read_text(path), where=str(path), error=StoreError)


def changed_tags(labels: RunLabels, changes: Sequence[str]) -> RunLabels:
    """The labels after `+a`, `a` (add) and `-b` (take away). Raises UsageError."""
    tags = list(labels.tags)
    for change in changes:
        tag = change.removeprefix("+") if not change.startswith("-") else change[1:]
        if not is_name(tag):
            raise UsageError(f"expected +TAG or -TAG, a tag of {NAME_RULE}, found: {change!r}")
        if change.startswith("-"):
            if tag not in tags:
                raise UsageError(f"expected a tag that the run has, found: {tag}", hint=f"it has: {', '.join(tags)}")
            tags.remove(tag)
        elif tag not in tags:
            tags.append(tag)
    return RunLabels(tags=tuple(tags), note=labels.note)


def noted(labels: RunLabels, note: str) -> RunLabels:
    """The labels with another note. Raises UsageError where it is too long."""
    if len(note) > MAX_NOTE:
        raise UsageError(f"expected a note of at most {MAX_NOTE} characters, found: {len(note)}")
    return RunLabels(tags=labels.tags, note=note)


def write_labels(run: RunDir, labels: RunLabels) -> None:
    """Replace what is said about the run; the caller holds the lock and knows that the run is there."""
    write(run.path / LABELS, record_bytes(labels))


def keep_verdict(home: Path, run: RunDir, verdict: str) -> None:
    """Remember what a review said of this result; a store that refuses is none the worse for it."""
    with suppress(StoreError, OSError):
        manifest = hashlib.sha256(run.manifest.read_bytes()).hexdigest()
        data = record_bytes(RunVerdict(manifest_sha256=manifest, verdict=verdict))
        path = run.path / VERDICT
        if path.is_file() and path.read_bytes() == data:
            return
        with locked(home):
            if run.path.is_dir():
                write(path, data)
