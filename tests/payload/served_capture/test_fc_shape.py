"""fc's shape by the header alone, whatever it is called and wherever it lies."""

import json
import struct
from pathlib import Path

import pytest

from remote_payload.served_capture.fc_shape import fc_shape


def header(path: Path, text: str) -> None:
    path.write_bytes(struct.pack("<Q", len(text)) + text.encode())


def tensor(name: str, *shape: int) -> str:
    return json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}})


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (tensor("fc.weight", 64, 192), (64, 192)),
        (tensor("model.fc.weight", 64, 128), (64, 128)),
        (tensor("fc.bias", 64), None),
        (tensor("fc.weight", 64), None),
        ('{"fc.weight": 1}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_the_shape_that_a_header_tells(tmp_path: Path, text: str, shape: tuple[int, int] | None) -> None:
    header(tmp_path / "model-00002.safetensors", text)
    header(tmp_path / "model-00001.safetensors", tensor("norm.weight", 64))
    assert fc_shape(str(tmp_path)) == shape


def test_no_folder_and_no_weights_are_unknown(tmp_path: Path) -> None:
    assert fc_shape(str(tmp_path)) is None
    assert fc_shape(str(tmp_path / "gone")) is None
