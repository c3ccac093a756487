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

from remote_payload.standalone.rows.values import RowError, first_line

UNPACKED_TIMES = 16
"""A compressed row may unpack to so many times its size; real states hardly shrink at all."""
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
    """The row's dict; a file that would build objects or call functions is refused. Raises RowError or UNREADABLE."""
    data = _unpacked(path) if path.name.endswith(".gz") else path.read_bytes()
    if not data:
        raise RowError("it is not a torch.save file: it is empty")
    _check_members(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols: the file is read or refused, either is told
            value = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        _refuse(error)
    except (RuntimeError, EOFError) as error:
        raise RowError(f"it is damaged or not a torch.save file: {first_line(error)}") from None
    except UNREADABLE:  # torch stumbled over bytes that are no pickle; its words would help nobody
        raise RowError("it is damaged or not a torch.save file") from None
    if not isinstance(value, dict):
        raise RowError(f"it must hold a dict of tensors, found: {type(value).__name__}")
    return value


def _refuse(error: pickle.UnpicklingError) -> NoReturn:
    found = OBJECT.search(str(error))
    if found:
        raise RowError(
            f"it holds pickled objects, which are refused: only plain tensors are loaded, found: {found.group(1)}"
        ) from None
    raise RowError("it is not a torch.save file") from None


def _unpacked(path: Path) -> bytes:
    """A gzip file's contents, unpacked piece by piece so that a bomb is noticed before memory is full."""
    size = path.stat().st_size
    most = _most(size)
    out = io.BytesIO()
    try:
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                out.write(piece)
                if out.tell() > most:
                    raise RowError(f"it must not unpack to more than {most} bytes for its size on disk: {size}")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RowError(f"it is damaged, or not a torch.save file in gzip: {first_line(error)}") from None
    return out.getvalue()


def _check_members(data: bytes) -> None:
    """torch.save stores its zip members as they are; one that someone compressed can be a bomb as well."""
    if not data.startswith(b"PK"):
        return
    try:
        unpacked = sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(data)).infolist())
    except zipfile.BadZipFile:
        raise RowError("it is damaged or not a torch.save file: its end is missing") from None
    if unpacked > _most(len(data)):
        raise RowError(f"it must not unpack to {unpacked} bytes for its size on disk: {len(data)}")


def _most(stored_bytes: int) -> int:
    return min(max(UNPACKED_TIMES * stored_bytes, UNPACKED_FREE_BYTES), UNPACKED_MOST_BYTES)
