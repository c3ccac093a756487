"""How long a folder's rows can be at most, from headers and sizes: what a memory plan needs before any row is read."""

from pathlib import Path
from typing import Any

import torch

from remote_payload.standalone.rows.dialects import parts
from remote_payload.standalone.rows.files import RowFile, RowFolder
from remote_payload.standalone.rows.hidden_files import shapes
from remote_payload.standalone.rows.load import UNREADABLE, load_dict, most_unpacked
from remote_payload.standalone.rows.raw import suffix
from remote_payload.standalone.rows.values import RowError

OPENED = 2048
"""Headers opened at most, the largest files first."""
FEWEST_BYTES = 2
"""Of a number in a captured state: plain floats have 2, 4 or 8."""


def longest_tokens(folder: RowFolder, width: int, captured: int | None) -> int:
    """No usable row of the folder has more tokens than this; its states are `width` wide, `captured` of them.

    Headers tell exactly, from the largest file down until the others' sizes rule them out. A gzip file tells only its
    unpacked size; of it, and of files behind the first few thousand, what they could hold at most is taken.
    """
    files = [(_size(file), file) for file in folder.files if file.odd is None]
    files.sort(key=lambda item: -item[0])
    longest, seen = 0, set[Path]()
    for opened, (size, file) in enumerate(files):
        states = (captured or 1) + (0 if file.form == "shard" else 1)  # the final state is stored as well
        bound = size // (width * FEWEST_BYTES * states)
        if bound <= longest:
            break
        if file.path not in seen:
            seen.add(file.path)
            longest = max(longest, bound if opened >= OPENED else _told(file, bound, width))
    return longest


def _size(file: RowFile) -> int:
    """Bytes that the file's tensors take at most."""
    try:
        size = file.path.stat().st_size
    except OSError:
        return 0
    return most_unpacked(file.path) if file.path.name.endswith(".gz") else size


def _told(file: RowFile, bound: int, width: int) -> int:
    """Tokens by the file's own header; 0 for one that cannot be read, which no one will."""
    if file.path.name.endswith(".gz"):
        return bound
    try:
        if file.form == "dict":
            return _of_dict(load_dict(file.path), file, width)
        found = shapes(file.path)
    except (RowError, *UNREADABLE):
        return 0
    lengths = found.get("token_ids" if file.form == "hidden" else "input_ids")
    return lengths[-1] if lengths else 0


def _of_dict(value: dict[str, Any], file: RowFile, width: int) -> int:
    tokens = value.get("input_ids")
    if isinstance(tokens, torch.Tensor):
        return tokens.numel()
    final = parts(value, suffix(file)).final
    return final.numel() // width if isinstance(final, torch.Tensor) else 0
