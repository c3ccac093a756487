"""What lies under a path by content alone, so that the same files on two hosts agree, whenever they were copied.

Of every file the name and the size; of text, and of what is small, all of it; of weights the header of a safetensors
file, and blocks spread evenly from the first byte to the last. Not read: hidden files, and what no program reads.
Not covered: weights that differ between these blocks alone, as after editing one tensor; a hub's names.
"""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from remote_payload.schema.sweep import FileContent, PathContent
from remote_payload.sweep.files import MOST_FILES, files_of

READERS = 8
"""At a time: a network's file system answers each only after a while."""
TEXT = (".json", ".jsonl", ".txt", ".model", ".jinja", ".py", ".tiktoken", ".yaml")
TEXT_BYTES, SMALL_BYTES = 64 << 20, 1 << 20
LONGEST_HEADER_BYTES = 100 << 20
"""What the safetensors library itself accepts."""
DOCUMENTS = (".md", ".png", ".jpg", ".pdf")
MOST_TOLD = 400
"""Of a folder with more files, as of captured rows, only the edges of each are read, and no file is told by itself."""


@dataclass(frozen=True)
class Depth:
    """How much of a large file is read."""

    blocks: int
    block_bytes: int


OF_A_MODEL = Depth(blocks=17, block_bytes=64 << 10)
OF_MANY = Depth(blocks=2, block_bytes=4 << 10)


def content_of(path: str, until_s: float) -> PathContent | None:
    """The content of a file, or of a folder with its subfolders; None = neither, not to be read, or not until then.

    Two folders of the same files have the same, whatever they are called and whenever they were written; so have two
    files. `until_s` is by the monotonic clock.
    """
    place = Path(os.path.expanduser(path))
    try:
        files = files_of(place)
        if len(files) >= MOST_FILES:
            return None
        files = [file for file in files if file == place or _is_read(file)]
        depth = OF_A_MODEL if len(files) <= MOST_TOLD else OF_MANY
        with ThreadPoolExecutor(READERS) as readers:
            digests = list(readers.map(lambda file: _digest(file, depth, until_s), files))
    except (OSError, ValueError):
        return None
    names = ["" if file == place else file.relative_to(place).as_posix() for file in files]
    whole = hashlib.sha256()
    for name, digest in zip(names, digests, strict=True):
        whole.update(f"{name}\0{digest}\0".encode("utf-8", "surrogateescape"))
    told = () if depth is OF_MANY else zip(names, digests, strict=True)
    return PathContent(
        digest=whole.hexdigest(), files=tuple(FileContent(name=_shown(name), digest=digest) for name, digest in told)
    )


def _is_read(file: Path) -> bool:
    return not file.name.startswith((".", "LICENSE")) and file.suffix.lower() not in DOCUMENTS


def _shown(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _digest(file: Path, depth: Depth, until_s: float) -> str:
    """Of one file. Raises OSError, TimeoutError among them."""
    if time.monotonic() > until_s:
        raise TimeoutError
    told = hashlib.blake2b(digest_size=8)
    with file.open("rb") as reading:
        size = os.fstat(reading.fileno()).st_size
        told.update(f"{size}\0".encode())
        is_text = file.suffix in TEXT and size <= TEXT_BYTES
        if (depth is OF_A_MODEL and (is_text or size <= SMALL_BYTES)) or size <= 2 * depth.block_bytes:
            told.update(reading.read())
            return told.hexdigest()
        if file.suffix == ".safetensors":
            told.update(_header(reading))
        for at in range(depth.blocks):
            reading.seek(at * (size - depth.block_bytes) // (depth.blocks - 1))
            told.update(reading.read(depth.block_bytes))
    return told.hexdigest()


def _header(reading: BinaryIO) -> bytes:
    """Names, types and shapes of the tensors, as the file has them; nothing of a file that has none."""
    length = int.from_bytes(reading.read(8), "little")
    return reading.read(length) if length <= LONGEST_HEADER_BYTES else b""
