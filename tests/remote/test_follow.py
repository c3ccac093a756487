"""Frames become files and updates: whole for every watcher, whoever else follows; nothing of a lying host is kept."""

import base64
import json
from pathlib import Path
from typing import Literal

import pytest

from orchestrator.errors import ProtocolError, StoreError
from orchestrator.remote.follow import LONGEST_EVENT_BYTES, Receiver
from orchestrator.updates import LogArrived, Note, Progressed, StateChanged, Update
from remote_payload.rundir import RunDir
from remote_payload.schema import (
    ChunkFrame,
    Cursor,
    FileFrame,
    Frame,
    LaunchedFrame,
    Manifest,
    ManifestFile,
    ManifestFrame,
    RunState,
    StateFrame,
)

Stream = Literal["events", "stdout", "stderr"]


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "r1")
    made.path.mkdir()
    return made


def chunk(data: bytes, offset: int, stream: Stream = "stdout") -> ChunkFrame:
    return ChunkFrame(stream=stream, offset=offset, data_base64=base64.b64encode(data).decode())


def seen(receiver: Receiver, *frames: Frame) -> list[Update]:
    return list(receiver.take(frames))


def text(updates: list[Update]) -> bytes:
    return b"".join(update.data for update in updates if isinstance(update, LogArrived))


def test_two_followers_of_one_folder_each_see_everything(run_dir: RunDir) -> None:
    """Their chunks overlap at different borders, and each is now before, now behind the other."""
    host = bytes(range(256)) * 40
    first, second = Receiver(run_dir), Receiver(run_dir)
    told: dict[Receiver, bytes] = {first: b"", second: b""}
    borders = {first: [0, 100, 5000, 5001, 9000, len(host)], second: [0, 3000, 4000, 9500, 9600, len(host)]}
    for step in range(5):
        for receiver in (first, second) if step % 2 else (second, first):
            start, end = borders[receiver][step : step + 2]
            told[receiver] += text(seen(receiver, chunk(host[start:end], start)))
    assert told == {first: host, second: host}
    assert run_dir.stdout.read_bytes() == host
    assert run_dir.stdout.stat().st_mode & 0o777 == 0o600


def test_a_later_follower_goes_on_where_the_files_or_the_watcher_stopped(run_dir: RunDir) -> None:
    run_dir.stdout.write_bytes(b"0123456789")
    assert Receiver(run_dir).cursor() == Cursor(stdout=10)
    behind = Receiver(run_dir, shown=Cursor(stdout=4))
    assert behind.cursor() == Cursor(stdout=4)
    assert text(seen(behind, chunk(b"456789ab", 4))) == b"456789ab"
    assert run_dir.stdout.read_bytes() == b"0123456789ab"


def test_a_chunk_that_was_seen_is_not_told_again(run_dir: RunDir) -> None:
    receiver = Receiver(run_dir)
    assert text(seen(receiver, chunk(b"abc", 0), chunk(b"abcde", 0), chunk(b"abcde", 0))) == b"abcde"


@pytest.mark.parametrize("offset", [1, 50, -5])
def test_a_gap_is_refused(run_dir: RunDir, offset: int) -> None:
    with pytest.raises(ProtocolError, match=f"expected bytes from 0 on, found: {offset}"):
        seen(Receiver(run_dir), chunk(b"xxxxxxxx", offset))


@pytest.mark.parametrize("data", ["@@@", "ÄÄ==", "\ud800", "eA=", "eA\x00="])
def test_what_is_not_base64_is_refused(run_dir: RunDir, data: str) -> None:
    with pytest.raises(ProtocolError, match="base64"):
        seen(Receiver(run_dir), ChunkFrame(stream="stdout", offset=0, data_base64=data))


def test_bad_event_lines_are_skipped_and_said_once(run_dir: RunDir) -> None:
    good = {"time_unix_s": 1.0, "kind": "phase", "name": "search"}
    lines = [good, {"x": 1}, {**good, "done": 1.0, "name": "late"}]
    data = b"\n".join(json.dumps(line).encode() for line in lines) + b'\n\xff\n\n{"time_unix_s":1e999,"kind":"phase",'
    receiver = Receiver(run_dir)
    told = seen(receiver, chunk(data, 0, "events"), chunk(b'"name":"n"}\n', len(data), "events"))
    assert [update.event.name for update in told if isinstance(update, Progressed)] == ["search", "late"]
    (note,) = (update for update in told if isinstance(update, Note))
    assert note.name == "events"
    assert "skipped" in note.text
    assert run_dir.events.stat().st_size == len(data) + 12


def test_an_event_that_never_ends_is_refused(run_dir: RunDir) -> None:
    data = b"x" * 2**18
    chunks = [chunk(data, number * len(data), "events") for number in range(LONGEST_EVENT_BYTES // len(data) + 1)]
    assert seen(Receiver(run_dir), *chunks[:-1]) == []
    with pytest.raises(ProtocolError, match="must end within"):
        seen(Receiver(run_dir), chunks[-1])


@pytest.mark.parametrize("make", [StateFrame, LaunchedFrame])
def test_the_state_of_another_run_is_refused(run_dir: RunDir, make: type[StateFrame | LaunchedFrame]) -> None:
    with pytest.raises(ProtocolError, match="expected the state of run `r1`, the host sent that of: other"):
        seen(Receiver(run_dir), make(state=RunState(run_id="other", sequence=1, phase="running")))
    assert not run_dir.state.exists()


def test_a_detached_launch_brings_its_state(run_dir: RunDir) -> None:
    receiver, state = Receiver(run_dir), RunState(run_id="r1", sequence=2, phase="running")
    told = seen(receiver, LaunchedFrame(state=state), StateFrame(state=state))
    assert [type(update) for update in told] == [Note, StateChanged]
    assert receiver.state == state


@pytest.mark.parametrize("name", ["../run.json", "a\0", "n" * 400, "\ud800", "manifest.json", "extra.json"])
def test_a_file_that_no_manifest_lists_is_dropped(run_dir: RunDir, name: str) -> None:
    manifest = Manifest(run_id="r1", files=(ManifestFile(name="a/b.json", size_bytes=1, sha256="x"),))
    file = FileFrame(name=name, data_base64="eA==")
    seen(
        Receiver(run_dir), file, ManifestFrame(manifest=manifest), file, FileFrame(name="a/b.json", data_base64="eA==")
    )
    files = [path.relative_to(run_dir.path).as_posix() for path in run_dir.path.rglob("*") if path.is_file()]
    assert files == ["result/a/b.json"]


@pytest.mark.parametrize("stream", ["stdout", "events"])
def test_a_full_disk_of_this_laptop_is_said_as_such(run_dir: RunDir, stream: Stream) -> None:
    receiver = Receiver(run_dir)
    getattr(run_dir, stream).symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left on device") as caught:
        seen(receiver, chunk(b"x", 0, stream))
    assert caught.value.hint is not None
    assert receiver.cursor() == Cursor()
