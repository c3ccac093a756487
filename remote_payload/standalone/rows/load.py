"""One row file to the dict it holds: weights-only, and never larger in memory than its size on disk explains."""

import gzip
import io
import pickle
import re
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import torch

from remote_payload.standalone.file_kind import is_pointer
from remote_payload.standalone.rows.values import POINTER_WORDS, RowError, first_line

UNPACKED_TIMES = 16
"""A compressed row may unpack to so many times its size; real states hardly shrink at all."""
UNPACKED_TIMES_LARGE = 4
UNPACKED_LARGE_BYTES = 4 << 30
"""A row that unpacks to more than this may do so to four times its size."""
UNPACKED_FREE_BYTES = 64 << 20
"""What any row may unpack to."""
UNPACKED_MOST_BYTES = 64 << 30
"""What no row may exceed."""
OBJECT = re.compile(
    r"(?:Unsupported global|Unsupported class|unsupported GLOBAL)\W+(?:GLOBAL\s+)?([\w.]{1,100})", re.IGNORECASE
)
"""How torch words its refusal of something that is not plain data, and what it was."""
UNREADABLE = (
    pickle.PickleError, zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError, LookupError,
    TypeError, AttributeError, ArithmeticError, AssertionError, MemoryError,
)  # fmt: skip
"""What unpacking, torch.load and looking at the tensors raise on files made by accident or malice."""


def load_dict(path: Path) -> dict[str, Any]:
    """The row's dict; a file that would build objects or call functions is refused. Raises RowError or UNREADABLE.

    Tensors of a plain torch.save file are mapped into memory and read when they are looked at; those of a gzip file
    are in memory.
    """
    source: Path | io.BytesIO = path
    if path.name.endswith(".gz"):
        source = _unpacked(path)
    size = path.stat().st_size if isinstance(source, Path) else source.getbuffer().nbytes
    if not size:
        raise RowError("it is not a torch.save file: it is empty")
    if is_pointer(path):
        raise RowError(POINTER_WORDS)
    mapped = _check_members(source, size) and isinstance(source, Path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols: the file is read or refused, either is told
            value = torch.load(str(path) if mapped else source, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        _refuse(error)
    except (RuntimeError, EOFError) as error:
        raise RowError(f"it is damaged or not a torch.save file: {first_line(error)}") from None
    except UNREADABLE:  # torch stumbled over bytes that are no pickle; its words would help nobody
        raise RowError("it is damaged or not a torch.save file") from None
    if not isinstance(value, dict):
        raise RowError(f"it must hold a dict of tensors, found: {type(value).__name__}")
    return value


def most_unpacked(path: Path) -> int:
    """What a gzip file may unpack to, by its size and by the length at its end. Raises OSError.

    The end tells the length of the last member modulo 2**32; torch.save in gzip has one, block-wise writers have more
    and end with an empty one.
    """
    size = path.stat().st_size
    most = min(
        max(UNPACKED_TIMES_LARGE * size, min(UNPACKED_TIMES * size, UNPACKED_LARGE_BYTES), UNPACKED_FREE_BYTES),
        UNPACKED_MOST_BYTES,
    )
    with path.open("rb") as file:
        file.seek(max(0, size - 4))
        told = int.from_bytes(file.read(4), "little")
    return min(told, most) if size <= told and UNPACKED_TIMES * size < 1 << 32 else most


def _refuse(error: pickle.UnpicklingError) -> NoReturn:
    found = OBJECT.search(str(error))
    if found:
        raise RowError(
            f"it holds pickled objects, which are refused: only plain tensors are loaded, found: {found.group(1)}"
        ) from None
    raise RowError("it is not a torch.save file") from None


def _unpacked(path: Path) -> io.BytesIO:
    """A gzip file's contents, unpacked piece by piece so that a bomb is noticed before memory is full."""
    size = path.stat().st_size
    most = most_unpacked(path)
    out = io.BytesIO()
    try:
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                out.write(piece)
                if out.tell() > most:
                    raise RowError(f"it must not unpack to more than {most} bytes for its size on disk: {size}")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RowError(f"it is damaged, or not a torch.save file in gzip: {first_line(error)}") from None
    out.seek(0)
    return out


def _check_members(source: Path | io.BytesIO, size: int) -> bool:
    """Whether the file is a zip whose members are stored as they are, as torch.save writes it.

    Members that someone compressed can be a bomb as well, and cannot be mapped.
    """
    if not _is_zip(source):
        return False
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:
        raise RowError("it is damaged or not a torch.save file: its end is missing") from None
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(UNPACKED_TIMES * size, UNPACKED_FREE_BYTES):
        raise RowError(f"it must not unpack to {unpacked} bytes for its size on disk: {size}")
    if isinstance(source, io.BytesIO):
        source.seek(0)
    return all(member.compress_type == zipfile.ZIP_STORED for member in members)


def _is_zip(source: Path | io.BytesIO) -> bool:
    if isinstance(source, io.BytesIO):
        return bytes(source.getbuffer()[:2]) == b"PK"
    with source.open("rb") as file:
        return file.read(2) == b"PK"
