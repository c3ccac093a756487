"""The served benchmark as the laptop launches it: from the archive, under the supervisor, on the oldest Python too."""

import contextlib
import gzip
import json
from pathlib import Path

import pytest

from remote_payload.schema import BenchJob, Event, to_json
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.record import from_json
from tests.payload.rig import Rig, of_kind
from tests.payload.test_old_pythons import find
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply
from tests.support.patience import wait_for


@pytest.mark.parametrize("version", ["3.10", "3.11"])
def test_a_whole_run(tmp_path: Path, version: str) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    rig = Rig(tmp_path / "root", python=find(version))
    with AnsweringServer() as server:
        server.key = "k-very-secret"
        server.replies = [Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)]
        job = BenchJob(attach_url=server.url, prompts=str(prompts), api_key_env="SERVER_KEY")
        spec = rig.spec("b1", job_kind="bench", job_json=to_json(job), secret_names=("SERVER_KEY",))
        frames = rig.launch(spec, follow=True, secrets={"SERVER_KEY": server.key})
    state = of_kind(frames, "state")[-1].state
    assert (state.phase, state.failure) == ("succeeded", None)
    result = from_json(BenchResult, (rig.run("b1").result / "bench.json").read_text())
    assert (result.points[0].requests, result.points[0].failed) == (5, 0)
    assert result.python.startswith(version)
    names = [file["name"] for file in json.loads(rig.run("b1").manifest.read_text())["files"]]
    assert sorted(names) == ["bench.json", "machine.jsonl.gz", "requests.jsonl.gz"]
    left = [path for path in (tmp_path / "root").rglob("*") if path.is_file()]
    assert not [path for path in left if b"k-very-secret" in path.read_bytes()]


def whole_lines(path: Path) -> list[bytes]:
    """Of a file whose writer was ended."""
    found = []
    with gzip.open(path) as file, contextlib.suppress(EOFError):
        found.extend(line for line in file if line.endswith(b"\n"))
    return found


def requests_in(path: Path) -> list[RequestSample]:
    return [from_json(RequestSample, line) for line in whole_lines(path)]


def test_a_run_is_cancelled_in_the_middle_of_a_request(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    rig = Rig(tmp_path / "root")
    with AnsweringServer() as server:
        server.replies = [*[Reply()] * 4, Reply(chunks=[(0.0, 1)] * 3, hang_after=2)]
        job = BenchJob(attach_url=server.url, prompts=str(prompts), requests=3)
        rig.launch(rig.spec("b1", job_kind="bench", job_json=to_json(job)))
        result = rig.run("b1").result
        wait_for(lambda: len(server.asked) == 5 and whole_lines(result / "machine.jsonl.gz"), "the request that hangs")
        assert rig.cancel("b1").state.phase == "cancelled"
    told = from_json(BenchResult, (result / "bench.json").read_text())
    assert (told.whole, told.points, told.planned) == (False, (), 1)
    assert [item.index for item in requests_in(result / "requests.jsonl.gz")] == [0, 1]  # that came back before
    events = [from_json(Event, line) for line in rig.run("b1").events.read_text().splitlines()]
    assert [event.name for event in events if event.kind == "phase"] == ["look", "attached", "warm-up", "measure"]
