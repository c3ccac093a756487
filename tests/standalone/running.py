"""Run a job and read its files back as the laptop would, with plain Python."""

import base64
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from remote_payload.schema import Event, ReadingHits, RowFacts, StandaloneJob, StandaloneResult, from_json
from remote_payload.standalone.job import run

DATA = Path(__file__).parents[2] / "orchestrator" / "demo" / "data"
GOLDEN = Path(__file__).parents[1] / "golden" / "standalone"


@dataclass(frozen=True)
class Outcome:
    result: StandaloneResult
    rows: list[RowFacts]
    hits: dict[tuple[str, int], dict[int, int]]
    """(reading, row) -> {position: bits of hits}."""
    events: list[Event]
    heldout_rows: list[RowFacts]
    heldout_hits: dict[tuple[str, int], dict[int, int]]
    records: list[ReadingHits]
    """The train rows' hits as they stand in the file."""

    def full(self) -> list[str]:
        return [reading.name for reading in self.result.readings if reading.stage == "full"]


def run_job(folder: Path, **settings) -> Outcome:
    """Run with one thread and, unless `settings` say otherwise, without the capture check; paths may be Path."""
    folder.mkdir(exist_ok=True)
    events: list[Event] = []
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    run(StandaloneJob(threads=1, **({"capture_rows": 0} | texts)), folder, events.append)
    names = ["heldout.jsonl.gz"] if "heldout" in settings else []
    assert sorted(path.name for path in folder.iterdir()) == [*names, "hits.jsonl.gz", "standalone.json"]
    assert not (folder.parent / "partial.jsonl").exists()
    result = from_json(StandaloneResult, (folder / "standalone.json").read_text(encoding="utf-8"))
    rows, records = read_file(folder / "hits.jsonl.gz")
    other = read_file(folder / "heldout.jsonl.gz") if names else ([], [])
    return Outcome(result, rows, by_row(records), events, other[0], by_row(other[1]), records)


def read_file(path: Path) -> tuple[list[RowFacts], list[ReadingHits]]:
    rows, records = [], []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if json.loads(line)["kind"] == "row":
                assert not records, "rows come first"
                rows.append(from_json(RowFacts, line))
            else:
                records.append(from_json(ReadingHits, line))
    return rows, records


def by_row(records: list[ReadingHits]) -> dict[tuple[str, int], dict[int, int]]:
    return {(record.reading, record.row): unpack(record) for record in records}


def unpack(record: ReadingHits) -> dict[int, int]:
    data, width = base64.b64decode(record.hits), 1 if record.steps <= 8 else 2
    positions = [j for a, b in zip(record.starts, record.stops, strict=True) for j in range(a, b)]
    assert len(data) == width * len(positions)
    return {j: int.from_bytes(data[i * width : (i + 1) * width], "little") for i, j in enumerate(positions)}


def bits(text: str, count: int) -> list[int]:
    data = base64.b64decode(text)
    return [data[j // 8] >> (j % 8) & 1 for j in range(count)]
