"""Which weights lie in a folder, told without reading them all: a path says nothing after the next training.

Hashed are each file's size, a safetensors header whole, and the beginning, middle and end of its tensors' bytes; of
other files blocks at even distances. Training moves every tensor, so other weights have another hash; who changes a
few bytes by hand may not be noticed. File names do not count: a copy is the same weights. A second hash goes over the
tensors by name, so that other shards of the same tensors are the same weights as well.
"""

import contextlib
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from remote_payload.schema.folder import FolderFacts

SAMPLE = 256
"""Bytes at each place that is looked at."""
PLACES = 4096
"""In a folder at most, as evenly over its tensors as that goes: every tensor of a drafter, and of a target with a
hundred thousand tensors no more than a slow network disk answers in seconds."""
LEAST_PLACES = 64
"""In each file all the same."""
LARGEST_HEADER = 100 << 20
"""As the safetensors library itself allows."""
ENDINGS = (".safetensors", ".bin", ".pt")
"""Of weight files, the one that engines prefer first."""


def folder_facts(path: str) -> FolderFacts:
    """Of a model's folder; what cannot be read is None, never raises for it."""
    folder = Path(path)
    return FolderFacts(
        path=path,
        weights_sha256=_or_none(_weights, folder),
        config_sha256=_or_none(_config, folder),
        tensors_sha256=_or_none(_tensors_of, folder),
    )


def _or_none(read: Callable[[Path], str | None], folder: Path) -> str | None:
    try:
        return read(folder)
    except (OSError, ValueError, RecursionError):
        return None


def _config(folder: Path) -> str:
    return hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()


def _weights(folder: Path) -> str | None:
    files = [one for one in folder.iterdir() if one.suffix in ENDINGS and one.is_file()]
    for ending in ENDINGS:  # of a kind alone: beside the weights lie states of an optimizer
        some = [one for one in files if one.suffix == ending]
        most = max(LEAST_PLACES, PLACES // max(len(some), 1))
        parts = sorted(_of_file(one, most) for one in some)
        if parts:
            return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return None


def _tensors_of(folder: Path) -> str | None:
    """Over the tensors of all safetensors files, sampled alike whatever files they lie in; None = there are none."""
    files = [one for one in folder.iterdir() if one.suffix == ENDINGS[0] and one.is_file()]
    looks = sorted(look for path in files for look in _looks(path))
    sha = hashlib.sha256("\n".join(sorted({kind for kind, _, _, _ in looks})).encode())
    with contextlib.ExitStack() as stack:
        opened = {path: stack.enter_context(path.open("rb")) for path in files}
        for _, path, at, length in looks[:: -(-len(looks) // PLACES) or 1]:
            opened[path].seek(at)
            sha.update(opened[path].read(length))
    return sha.hexdigest() if looks else None


def _looks(path: Path) -> Iterator[tuple[str, Path, int, int]]:
    """A tensor's name, format and shape, its file, where to look and how far. ValueError where there is no header."""
    size, text = path.stat().st_size, header_of(path)
    header = None if text is None else json.loads(text)
    if text is None or not isinstance(header, dict):
        raise ValueError(f"no safetensors: {path}")
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        kind = json.dumps([name, *(tensor.get(key) for key in ("dtype", "shape"))]) if isinstance(tensor, dict) else ""
        for at in _places(tensor):
            end = min(size, 8 + len(text) + tensor["data_offsets"][1])
            yield kind, path, min(size, 8 + len(text) + at), max(0, min(SAMPLE, end - 8 - len(text) - at))


def _of_file(path: Path, most: int) -> str:
    size = path.stat().st_size
    sha = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        places = _tensors(file, size, sha) if path.suffix == ".safetensors" else None
        if places is None:
            places = [size * index // LEAST_PLACES for index in range(LEAST_PLACES)]
        for at in places[:: -(-len(places) // most) or 1]:
            file.seek(at)
            sha.update(file.read(SAMPLE))
    return sha.hexdigest()


def _tensors(file: BinaryIO, size: int, sha: "hashlib._Hash") -> list[int] | None:
    """Where to look in a safetensors file, its header hashed; None where it has no header that can be read."""
    text = _header(file, size)
    if text is None:
        return None
    length = len(text)
    sha.update(text)
    header = json.loads(text)
    if not isinstance(header, dict):
        return None
    places = [8 + length + at for name in sorted(header) if name != "__metadata__" for at in _places(header[name])]
    return [at for at in places if at < size]


def header_of(path: Path) -> bytes | None:
    """A safetensors file's header, JSON; None where it has none that can be read. Raises OSError."""
    with path.open("rb") as file:
        return _header(file, path.stat().st_size)


def _header(file: BinaryIO, size: int) -> bytes | None:
    """A safetensors file's header as it stands; None where there is none that can be read."""
    begin = file.read(8)
    length = struct.unpack("<Q", begin)[0] if len(begin) == 8 else LARGEST_HEADER + 1
    return None if length > min(LARGEST_HEADER, size) else file.read(length)


def _places(tensor: object) -> Iterator[int]:
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    if isinstance(offsets, list) and len(offsets) == 2 and all(type(at) is int and at >= 0 for at in offsets):
        first, end = offsets
        yield from (first, max(first, (first + end) // 2), max(first, end - SAMPLE))
