import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.schema.bench import Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.starting import start

HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in"
RECORDED = HERE / "recorded"


class Site:
    """A run directory, and servers that stand in for SGLang started in it."""

    def __init__(self, folder: Path) -> None:
        self.result = folder / "run" / "result"
        self.result.mkdir(parents=True)
        self.events: list[Event] = []
        self.running: list[Running] = []

    def job(self, behaviour: dict[str, Any] | None = None, **changes: Any) -> BenchJob:
        told = {"log": str(RECORDED / "start.log"), "info": str(RECORDED / "server_info.json"), **(behaviour or {})}
        settings: dict[str, Any] = {
            "model": "models/target",
            "draft": "models/draft",
            "server_python": sys.executable,
            "server_environment": (f"PYTHONPATH={STAND_IN}", f"STAND_IN={json.dumps(told)}"),
            "ready_timeout_s": 90.0,
        }
        extra = changes.pop("more_environment", ())
        settings.update(changes)
        settings["server_environment"] = (*settings["server_environment"], *extra)
        return BenchJob(**settings)

    def start(self, job: BenchJob, side: Side = "spec") -> Running:
        running = start(job, side, len(self.running), self.result, self.events.append)
        self.running.append(running)
        return running

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.result.parent.glob("server-*.log")))

    def named(self, kind: str) -> list[str]:
        return [event.name for event in self.events if event.kind == kind]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("remote_payload.sglang_bench.server.GRACE_S", 2.0)
    site = Site(tmp_path)
    yield site
    for running in site.running:
        running.stop()
