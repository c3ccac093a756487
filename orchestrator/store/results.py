"""What a run brought home: checked against its manifest, and read as records. Works on any collected run directory."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import InvalidRunError, StoreError
from orchestrator.records import read_record
from orchestrator.store.files import read_text, translated
from remote_payload.rundir import RunDir
from remote_payload.schema import Manifest, ManifestFile, ReadingHits, RowFacts, StandaloneResult
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_machine import MachineSample
from remote_payload.schema.capture import CaptureResult
from remote_payload.schema.record import Record

_CHUNK_BYTES = 1 << 20

R = TypeVar("R", bound=Record)


def verify(run: RunDir) -> tuple[str, ...]:
    """Compare `result/` with its manifest; each problem is a sentence naming the file, none means all is well."""
    if not run.manifest.is_file():
        return (f"no manifest, the result is not complete: {run.manifest}",)
    manifest = read_record(Manifest, read_text(run.manifest), where=str(run.manifest), error=StoreError)
    if manifest.run_id != run.path.name:
        return (f"expected the manifest of `{run.path.name}`, found: {manifest.run_id}",)
    problems = [problem for file in manifest.files for problem in _file_problems(run.result / file.name, file)]
    named = {file.name for file in manifest.files} | {run.manifest.name}
    with translated("list", run.result):
        there = sorted(p.relative_to(run.result).as_posix() for p in run.result.rglob("*") if p.is_file())
    return (*problems, *(f"`{name}` is not in the manifest" for name in there if name not in named))


def read_standalone(run: RunDir) -> StandaloneResult:
    """The result of a standalone run. Raises InvalidRunError where the run left none, StoreError where it is broken."""
    path = run.result / "standalone.json"
    if not path.is_file():
        raise InvalidRunError(f"expected the result of a standalone test, found none at: {path}")
    return read_record(StandaloneResult, read_text(path), where=str(path), error=StoreError)


def read_hits(run: RunDir) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]]:
    """The rows and the hits of a standalone run, in file order. Raises as `read_standalone`."""
    path = run.result / "hits.jsonl.gz"
    if not path.is_file():
        raise InvalidRunError(f"expected the hits of a standalone test, found none at: {path}")
    return _rows_and_hits(path)


def read_heldout(run: RunDir) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]] | None:
    """The same of the held-out rows; None where there were none. Raises StoreError."""
    path = run.result / "heldout.jsonl.gz"
    return _rows_and_hits(path) if path.is_file() else None


def read_bench(run: RunDir) -> BenchResult:
    """The result of a served benchmark. Raises as `read_standalone`."""
    path = run.result / "bench.json"
    if not path.is_file():
        raise InvalidRunError(f"expected the result of a served benchmark, found none at: {path}")
    return read_record(BenchResult, read_text(path), where=str(path), error=StoreError)


def read_capture(run: RunDir) -> CaptureResult:
    """What a capture found. Raises as `read_standalone`."""
    path = run.result / "capture.json"
    if not path.is_file():
        raise InvalidRunError(f"expected the result of a capture, found none at: {path}")
    return read_record(CaptureResult, read_text(path), where=str(path), error=StoreError)


def read_requests(run: RunDir, *, whole: bool = True) -> tuple[RequestSample, ...]:
    """Every request of a served benchmark, in file order; none where SGLang's own tool alone was run.

    Of a run that was ended (not `whole`) what was written before.
    """
    return _records(RequestSample, run.result / "requests.jsonl.gz", cut_ok=not whole)


def read_sampled(run: RunDir, *, whole: bool = True) -> tuple[RequestSample, ...]:
    """Those of the load that was asked at another temperature; none where there was no such load."""
    return _records(RequestSample, run.result / "sampled.jsonl.gz", cut_ok=not whole)


def read_machine(run: RunDir, *, whole: bool = True) -> tuple[MachineSample, ...]:
    """The machine while it was measured, in file order; `whole` as for `read_requests`."""
    return _records(MachineSample, run.result / "machine.jsonl.gz", cut_ok=not whole)


def read_harness(run: RunDir, names: Sequence[str]) -> dict[str, str]:
    """The texts of these files of SGLang's own tool, as far as they are there."""
    paths = {name: run.result / name for name in names}
    return {name: read_text(path) for name, path in paths.items() if path.is_file()}


def _records(record: type[R], path: Path, *, cut_ok: bool) -> tuple[R, ...]:
    if not path.is_file():
        return ()
    numbered = enumerate(_lines(path, cut_ok=cut_ok), start=1)
    return tuple(
        read_record(record, line, where=f"{path}, line {number}", error=StoreError) for number, line in numbered
    )


def _rows_and_hits(path: Path) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]]:
    rows: list[RowFacts] = []
    hits: list[ReadingHits] = []
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}, line {number}"
        if _kind(line) == "row":
            rows.append(read_record(RowFacts, line, where=where, error=StoreError))
        else:
            hits.append(read_record(ReadingHits, line, where=where, error=StoreError))
    return tuple(rows), tuple(hits)


def _lines(path: Path, *, cut_ok: bool = False) -> Iterator[bytes]:
    """`cut_ok`: whoever wrote it may have been killed; its whole lines count."""
    with translated("read", path):
        try:
            with gzip.open(path, "rb") as file:
                yield from (line for line in file if not cut_ok or line.endswith(b"\n"))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if cut_ok and isinstance(error, EOFError):
                return
            raise StoreError(f"{path}: expected a whole gzip file, found: {error}") from None


def _kind(line: bytes) -> object:
    try:
        value = json.loads(line)
    except ValueError:
        return None  # read_record will say what is wrong, with file and line
    return value.get("kind") if isinstance(value, dict) else None


def _file_problems(path: Path, expected: ManifestFile) -> list[str]:
    if not path.is_file():
        return [f"`{expected.name}` is in the manifest and missing"]
    digest, size = hashlib.sha256(), 0
    with translated("read", path), path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    if size != expected.size_bytes:
        return [f"`{expected.name}`: expected {expected.size_bytes} bytes, found: {size}"]
    if digest.hexdigest() != expected.sha256:
        return [f"`{expected.name}`: expected sha256 {expected.sha256}, found: {digest.hexdigest()}"]
    return []
