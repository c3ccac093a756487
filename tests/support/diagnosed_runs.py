"""What a real server did with a pair, kept small: the stages' runs of one diagnosis, packed and unpacked."""

import fcntl
import functools
import gzip
import hashlib
import json
import lzma
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.gathering import known_of
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.records.reading import read_record
from orchestrator.store import Store
from orchestrator.store.results import read_capture
from remote_payload.schema.capture import CaptureResult

PACKED = Path(__file__).parents[1] / "golden" / "diagnosed.json.xz"
ID = "pair"
KEPT = ("run.json", "spec.json", "state.json")
LEFT_OUT = (".log", ".txt")


def pack(name: str, store: Path, away: Mapping[str, str]) -> None:
    """Put a store's runs among those that are kept; texts `away` become others. Raises OSError.

    Several may be made at once: each is put beside what the others have put there meanwhile. A run that failed is none
    to keep: AssertionError.
    """
    host = rf"(?<![\w+/=]){re.escape(socket.gethostname())}(?![\w+/=])"  # a word: a short one stands in packed hits too
    files: dict[str, str] = {}
    for run in sorted((store / "runs").iterdir()):
        phase = json.loads((run / "state.json").read_bytes())["phase"]
        assert phase == "succeeded", f"{name}: {run.name} is {phase}"
        paths = [run / kept for kept in KEPT]
        paths += sorted(path for path in (run / "result").rglob("*") if path.is_file())
        for path in paths:
            if path.is_file() and path.suffix not in LEFT_OUT and path.name != "manifest.json":
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                text = data.decode()
                for old, new in away.items():
                    text = text.replace(old, new)
                text = re.sub(host, "gpu1", text)
                files[str(path.relative_to(store / "runs"))] = text
    with PACKED.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _kept.cache_clear()
        every = {**_kept(), name: files}
        PACKED.write_bytes(lzma.compress(json.dumps(every, sort_keys=True).encode(), preset=9 | lzma.PRESET_EXTREME))


@functools.cache
def _kept() -> dict[str, dict[str, str]]:
    """Texts by the file's path below the store's runs, by the case's name."""
    found = json.loads(lzma.decompress(PACKED.read_bytes()))
    assert isinstance(found, dict)
    return found


def names() -> tuple[str, ...]:
    """The pairs whose runs are kept."""
    return tuple(_kept())


def known(name: str, home: Path, trained: str | None = None) -> Known:
    """What a decision on that pair rests on, with its runs unpacked below `home`. Raises what reading a run raises.

    `trained`: the trainer's word, as `diagnose --trained` takes it.
    """
    _unpack(_kept()[name], home)
    return known_at(home, trained)


def captured(name: str) -> CaptureResult:
    """What that pair's server returned of the states it feeds, and both config.json."""
    return read_record(CaptureResult, _kept()[name][f"{ID}.capture/result/capture.json"], where=name)


def known_at(home: Path, trained: str | None = None) -> Known:
    """The same of the store of a laptop that has just diagnosed a pair."""
    store = Store(home)
    stages = {path.name.removeprefix(f"{ID}."): path.name for path in (home / "runs").iterdir()}
    results = Results(records={stage: store.load_exact(run_id) for stage, run_id in stages.items()})
    if results.succeeded("capture") is not None:
        results.captured = read_capture(store.run_dir(stages["capture"]))
    return known_of(Asked(diagnosis_id=ID, model=None, draft=None, trained=trained), Config(), results, store)


def _unpack(files: Mapping[str, str], home: Path) -> None:
    """Each run gets a manifest of what was kept of it."""
    for relative, text in files.items():
        path = home / "runs" / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), 1, mtime=0) if path.suffix == ".gz" else text.encode())
    for result in (home / "runs").glob("*/result"):
        listed = []
        for path in sorted(result.iterdir()):
            data = path.read_bytes()
            listed.append({"name": path.name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        manifest = {"schema_version": 1, "run_id": result.parent.name, "files": listed}
        (result / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
