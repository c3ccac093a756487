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

    def full(self) -> list[str]:
        return [reading.name for reading in self.result.readings if reading.stage == "full"]


def run_job(folder: Path, **settings) -> Outcome:
    """Run with one thread; paths may be Path."""
    folder.mkdir(exist_ok=True)
    events: list[Event] = []
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    run(StandaloneJob(threads=1, **texts), folder, events.append)
    assert sorted(path.name for path in folder.iterdir()) == ["hits.jsonl.gz", "standalone.json"]
    result = from_json(StandaloneResult, (folder / "standalone.json").read_text(encoding="utf-8"))
    rows, hits = [], {}
    with gzip.open(folder / "hits.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            if json.loads(line)["kind"] == "row":
                assert not hits, "rows come first"
                rows.append(from_json(RowFacts, line))
            else:
                record = from_json(ReadingHits, line)
                hits[record.reading, record.row] = unpack(record)
    return Outcome(result, rows, hits, events)


def unpack(record: ReadingHits) -> dict[int, int]:
    data, width = base64.b64decode(record.hits), 1 if record.steps <= 8 else 2
    positions = [j for a, b in zip(record.starts, record.stops, strict=True) for j in range(a, b)]
    assert len(data) == width * len(positions)
    return {j: int.from_bytes(data[i * width : (i + 1) * width], "little") for i, j in enumerate(positions)}


def bits(text: str, count: int) -> list[int]:
    data = base64.b64decode(text)
    return [data[j // 8] >> (j % 8) & 1 for j in range(count)]
