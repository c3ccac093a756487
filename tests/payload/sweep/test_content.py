"""What lies under a path by content: the same files agree wherever they lie, and other weights do not."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from remote_payload.schema import IdentifyFrame, IdentifyRequest, PathIdentity
from remote_payload.schema.sweep import PathContent
from remote_payload.sweep import content
from remote_payload.sweep.content import content_of
from remote_payload.sweep.identity import digest_of, identify

LARGE = 5 << 20
"""Bytes of weights, more than is read of them."""
EDITED = 60_000
"""Bytes that are others, less than lie between two blocks that are read."""


def drafter(folder: Path, header: object = "F32") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"hidden_size": 8}')
    told = json.dumps({"fc.weight": {"dtype": header, "shape": [LARGE // 4], "data_offsets": [0, LARGE]}}).encode()
    (folder / "model.safetensors").write_bytes(len(told).to_bytes(8, "little") + told + bytes(LARGE))
    return folder


def read(path: Path) -> PathContent:
    found = content_of(str(path), time.monotonic() + 60)
    assert found is not None
    return found


def others(one: PathContent, another: PathContent) -> set[str]:
    """Names of the files that are not the same in both."""
    return {
        name
        for name, _ in {(file.name, file.digest) for file in one.files} ^ {(f.name, f.digest) for f in another.files}
    }


def test_the_same_files_agree_wherever_and_whenever_they_were_written(tmp_path: Path) -> None:
    one = drafter(tmp_path / "one")
    other = Path(shutil.copytree(one, tmp_path / "other"))
    os.utime(other / "model.safetensors", ns=(1, 1))
    (other / "README.md").write_text("where it came from")
    (other / ".cache").mkdir()
    (other / ".gitattributes").write_text("lfs")
    assert digest_of(str(one)) != digest_of(str(other))
    assert read(one) == read(other)
    assert [file.name for file in read(one).files] == ["config.json", "model.safetensors"]
    assert read(one / "config.json") == read(other / "config.json") != read(one / "model.safetensors")


@pytest.mark.parametrize("at", [0, LARGE // 2, LARGE - EDITED])
def test_other_weights_of_the_same_size_differ(tmp_path: Path, at: int) -> None:
    one = drafter(tmp_path / "one")
    other = Path(shutil.copytree(one, tmp_path / "other"))
    with (other / "model.safetensors").open("r+b") as weights:
        weights.seek(at - LARGE, os.SEEK_END)
        weights.write(b"1" * EDITED)
    assert read(one).digest != read(other).digest
    assert others(read(one), read(other)) == {"model.safetensors"}


def test_other_text_another_header_and_another_name_differ(tmp_path: Path) -> None:
    one = read(drafter(tmp_path / "one"))
    (drafter(tmp_path / "two") / "config.json").write_text('{"hidden_size": 9}')
    (drafter(tmp_path / "four") / "model.safetensors").rename(tmp_path / "four" / "weights.safetensors")
    (drafter(tmp_path / "five") / "parts").mkdir()
    (tmp_path / "five" / "parts" / "prompts.jsonl").write_text("x" * 3_000_000)
    found = {
        "two": {"config.json"},
        "four": {"model.safetensors", "weights.safetensors"},
        "five": {"parts/prompts.jsonl"},
    }
    assert others(one, read(drafter(tmp_path / "three", "I32"))) == {"model.safetensors"}
    for name, names in found.items():
        assert others(one, read(tmp_path / name)) == names, name
    before = read(tmp_path / "five")
    with (tmp_path / "five" / "parts" / "prompts.jsonl").open("r+b") as prompts:
        prompts.seek(1_234_567)  # text is read whole
        prompts.write(b"y")
    assert others(before, read(tmp_path / "five")) == {"parts/prompts.jsonl"}


def test_of_very_many_files_the_edges_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_TOLD", 1)
    one = drafter(tmp_path / "one")
    before = read(one)
    assert before.files == ()
    with (one / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, os.SEEK_END)
        weights.write(b"1")
    assert read(one).digest != before.digest


def test_what_cannot_be_read_in_time_or_at_all_is_unknown(tmp_path: Path) -> None:
    one = drafter(tmp_path / "one")
    assert content_of(str(one), time.monotonic() - 1) is None
    assert content_of("org/model", time.monotonic() + 60) is None
    assert content_of("\0", time.monotonic() + 60) is None


def test_the_content_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    path = str(drafter(tmp_path / "one"))
    told: list[object] = []
    for is_asked in (True, False):
        identify(IdentifyRequest(nonce="n", root=str(tmp_path), paths=(path,), content=is_asked), told.append)
    found = [frame.paths[0] for frame in told if isinstance(frame, IdentifyFrame)]
    assert found == [
        PathIdentity(path=path, digest=digest_of(path), content=read(Path(path))),
        PathIdentity(path=path, digest=digest_of(path)),
    ]
