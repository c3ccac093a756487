"""Runs made by hand, for the store and everything that reads from it."""

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from orchestrator.records import RunHost, RunRecord, record_bytes
from orchestrator.store import Store
from remote_payload.rundir import RunDir
from remote_payload.schema import (
    Manifest,
    ManifestFile,
    ReadingHits,
    RowFacts,
    RunSpec,
    RunState,
    Setting,
    StandaloneJob,
    StandaloneResult,
    to_json,
)
from remote_payload.schema.record import Record
from remote_payload.schema.run import RunPhase


def made_run(
    run_id: str = "20260102-030405-standalone-ab12",
    *,
    phase: RunPhase | None = "succeeded",
    created_unix_s: float = 1767323045.0,
    sequence: int = 3,
) -> RunRecord:
    """A standalone run of `gpu1`."""
    state = None
    if phase is not None:
        state = RunState(
            run_id=run_id,
            sequence=sequence,
            phase=phase,
            started_unix_s=created_unix_s + 1,
            finished_unix_s=None if phase in ("queued", "starting", "running") else created_unix_s + 61,
        )
    return RunRecord(
        host=RunHost(name="gpu1", destination="me@gpu1.example:22"),
        spec=RunSpec(
            run_id=run_id,
            job_kind="standalone",
            job_json=to_json(StandaloneJob(draft="/srv/drafter", rows="/srv/rows", states=(0, 2, 4, 5))),
            settings=(Setting(key="steps", value="4", source="default"),),
            python="/usr/bin/python3",
            payload_sha256="ab" * 32,
            environment={},
            launched_by="me@laptop",
            created_unix_s=created_unix_s,
        ),
        state=state,
        state_seen_unix_s=None if state is None else created_unix_s + 62,
    )


def put_files(run: RunDir, files: dict[str, bytes]) -> None:
    """Write result files and the manifest that fits them."""
    run.result.mkdir(exist_ok=True)
    entries = []
    for name, data in files.items():
        (run.result / name).write_bytes(data)
        entries.append(ManifestFile(name=name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
    run.manifest.write_text(to_json(Manifest(run_id=run.path.name, files=tuple(entries))))


def put_many(home: Path, count: int, first: int = 0) -> None:
    """Runs as they lie on the disk, without the syncs that make a real one durable."""
    text = record_bytes(made_run("run-000000")).decode()
    for number in range(first, first + count):
        run_id = f"run-{number:06d}"
        folder = home / "runs" / run_id
        folder.mkdir(parents=True)
        told = text.replace("run-000000", run_id).replace("1767323045.0", f"{1767323045.0 + number}")
        (folder / "run.json").write_text(told)


def put_standalone(
    store: Store,
    record: RunRecord,
    result: StandaloneResult,
    rows: tuple[RowFacts, ...],
    hits: tuple[ReadingHits, ...],
    heldout: tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]] | None = None,
) -> RunRecord:
    """A finished standalone run in the store, result and hits included."""
    run = store.begin(record)
    files = {
        "standalone.json": json.dumps(json.loads(to_json(result))).encode(),
        "hits.jsonl.gz": packed_json_lines((*rows, *hits)),
    }
    if heldout is not None:
        files["heldout.jsonl.gz"] = packed_json_lines((*heldout[0], *heldout[1]))
    put_files(run, files)
    return record


def packed_json_lines(records: Sequence[Record]) -> bytes:
    """Records, a line each, as a job writes them."""
    return gzip.compress("".join(f"{to_json(item)}\n" for item in records).encode(), mtime=0)
