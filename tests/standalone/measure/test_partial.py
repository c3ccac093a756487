"""What an unfinished test left is taken over as it was written, or not at all."""

import json
import os

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.partial import Partial, opened, sealed, take_over

FINGERPRINT = {"draft": "d", "steps": 3}
READING = Reading(slots=(0, 1, 2), token_offset=1)
HITS = torch.tensor([[True, False, True], [False, True, True]])
NOT_TAKEN = [b"", b"[1]\n", b"1\n", b"null\n", b'{"for":null}\n', b'{"for":[1]}\n', sealed({"for": [1]}), b"[" * 10**5,
             sealed({"for": FINGERPRINT})[:30], sealed({"row": 1}), b"\0" * 100]  # fmt: skip


def written(path):
    with Partial(path, FINGERPRINT) as partial:
        for row in range(3):
            partial.keep_hits(row, READING.name, HITS)
    return path.read_bytes().splitlines(keepends=True)


def test_lines_are_json_and_come_back(tmp_path):
    lines = written(tmp_path / "partial.jsonl")
    assert json.loads(lines[0])["line"] == {"for": FINGERPRINT}
    taken = take_over(tmp_path / "partial.jsonl", "r", FINGERPRINT)
    with Partial(tmp_path / "again.jsonl", FINGERPRINT, taken) as partial:
        assert torch.equal(partial.hits(2, READING, 3), HITS)
    assert (tmp_path / "again.jsonl").read_bytes().splitlines(keepends=True) == lines


def test_any_changed_byte_shows():
    line = sealed({"row": 1, "hits": "BQY="})[:-1]
    assert opened(line) == {"row": 1, "hits": "BQY="}
    assert [
        at for at in range(len(line)) if opened(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]) is not None
    ] == []
    assert [at for at in range(len(line)) if opened(line[:at]) is not None] == []


def test_what_follows_a_damaged_line_is_dropped(tmp_path):
    lines = written(tmp_path / "partial.jsonl")
    lines[2] = lines[2].replace(b'"row":1', b'"row":9')
    (tmp_path / "partial.jsonl").write_bytes(b"".join(lines))
    assert [line["row"] for line in take_over(tmp_path / "partial.jsonl", "r", FINGERPRINT)] == [0]


@pytest.mark.parametrize("content", NOT_TAKEN, ids=range(len(NOT_TAKEN)))
def test_a_file_without_its_first_line(tmp_path, content):
    (tmp_path / "partial.jsonl").write_bytes(content)
    found = "a damaged file: its first line" if content else "an empty file"
    with pytest.raises(JobFailure, match=f"run `r` left nothing to resume from on this host, found: {found}") as caught:
        take_over(tmp_path / "partial.jsonl", "r", FINGERPRINT)
    assert caught.value.failure.kind == "job"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "partial.jsonl")
    with pytest.raises(JobFailure, match="not a regular file"):
        take_over(tmp_path / "partial.jsonl", "r", FINGERPRINT)
