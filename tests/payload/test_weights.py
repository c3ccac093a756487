import json
import shutil
import struct
from pathlib import Path

import pytest

from remote_payload.weights import folder_facts


def write(folder: Path, fill: int) -> Path:
    """Two tensors of a thousand bytes each, the second one all `fill`."""
    folder.mkdir(exist_ok=True)
    places = {"a": [0, 1000], "b": [1000, 2000]}
    header = {name: {"dtype": "U8", "shape": [1000], "data_offsets": place} for name, place in places.items()}
    text = json.dumps({**header, "__metadata__": {"format": "pt"}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(1000) + bytes([fill]) * 1000)
    (folder / "config.json").write_text("{}")
    return folder


def test_the_same_weights_are_known_again_and_others_are_others(tmp_path: Path) -> None:
    one = folder_facts(str(write(tmp_path / "one", 1)))
    assert (one.path, len(one.weights_sha256 or ""), len(one.config_sha256 or "")) == (str(tmp_path / "one"), 64, 64)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "one", copy)
    (copy / "model.safetensors").rename(copy / "other-name.safetensors")
    (copy / "config.json").write_text('{"ids": [1]}')
    copied = folder_facts(str(copy))
    assert copied.weights_sha256 == one.weights_sha256
    assert copied.config_sha256 != one.config_sha256
    assert folder_facts(str(write(tmp_path / "two", 2))).weights_sha256 != one.weights_sha256
    old = tmp_path / "old"
    old.mkdir()
    (old / "pytorch_model.bin").write_bytes(bytes(5000))
    first = folder_facts(str(old)).weights_sha256
    (old / "pytorch_model.bin").write_bytes(bytes(4000) + b"x" * 1000)
    assert None is not first != folder_facts(str(old)).weights_sha256


def shards(folder: Path, *names: str, split: bool) -> Path:
    """Tensors of 300 and 40 bytes, in one file or in one each, behind other metadata."""
    folder.mkdir()
    tensors = {name: bytes([index + 1]) * size for index, (name, size) in enumerate(zip(names, (300, 40), strict=True))}
    for number, part in enumerate([{name: data} for name, data in tensors.items()] if split else [tensors]):
        header, at = {"__metadata__": {"part": str(number)}}, 0
        for name, data in part.items():
            header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        (folder / f"model-{number}.safetensors").write_bytes(
            struct.pack("<Q", len(text)) + text + b"".join(part.values())
        )
    return folder


def test_the_same_tensors_in_other_shards_are_the_same_tensors(tmp_path: Path) -> None:
    whole = folder_facts(str(shards(tmp_path / "whole", "a", "b", split=False)))
    split = folder_facts(str(shards(tmp_path / "split", "a", "b", split=True)))
    assert whole.weights_sha256 != split.weights_sha256
    assert len(whole.tensors_sha256 or "") == 64
    assert whole.tensors_sha256 == split.tensors_sha256
    renamed = folder_facts(str(shards(tmp_path / "renamed", "a", "c", split=False)))
    last = tmp_path / "split" / "model-1.safetensors"
    last.write_bytes(last.read_bytes()[:-1] + b"x")
    changed = folder_facts(str(tmp_path / "split"))
    assert len({whole.tensors_sha256, renamed.tensors_sha256, changed.tensors_sha256}) == 3


def packed(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


FAR = '{"a": {"data_offsets": [1000000000000000000000000000000, 2000000000000000000000000000000]}, "b": 1}'


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 8, packed("[1]x"), packed("[]"), packed(FAR)])
def test_what_is_no_safetensors_is_told_all_the_same_or_unknown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    found = folder_facts(str(tmp_path))
    assert (found.weights_sha256 is None) == (content[8:] == b"[1]x")
    assert (found.tensors_sha256 is None) == (content != packed(FAR))
    assert found.config_sha256 is None


def test_a_folder_without_weights_or_none_at_all_is_unknown(tmp_path: Path) -> None:
    assert folder_facts(str(tmp_path)).weights_sha256 is None
    assert folder_facts(str(tmp_path / "gone")).weights_sha256 is None
