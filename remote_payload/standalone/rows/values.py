"""What a row may hold: ordinary tensors whose numbers are all really there, as whole numbers or as plain floats."""

import hashlib
import math
import struct
from typing import Any, TypeGuard

import torch

from remote_payload.standalone.mapped import let_go

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = tuple(
    getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
    if hasattr(torch, name)  # the larger unsigned ones came with torch 2.3
)
TOLD_CHARACTERS = 200
LARGEST_STATE = 1e9
"""Beyond it numbers are not a model's: the largest real activations are some ten thousands."""
PIECE_BYTES = 64 << 20
"""States are looked at in pieces of about this size."""
NOT_FINITE = "there is NaN or infinity in its "
LENGTHS_DIFFER = "lengths differ: "
POINTER_WORDS = "it is a pointer of Git LFS, not the file itself: fetch it with `git lfs pull`"


class RowError(Exception):
    """Why one row cannot be used."""


def first_line(error: BaseException) -> str:
    """What an error says, short; its class where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:TOLD_CHARACTERS]


def first_of(value: dict[str, Any], names: tuple[str, ...]) -> object:
    """The value under the first of several names. Raises RowError naming what there is."""
    for name in names:
        if name in value:
            return value[name]
    held = ", ".join(str(key) for key in list(value)[:20])[:TOLD_CHARACTERS]
    raise RowError(f"it lacks `{names[0]}`; it holds: {held or 'nothing'}")


def integers(value: dict[str, Any], name: str) -> torch.Tensor:
    """A (T,) int64 vector from a tensor [T] or [1, T], or a JSON list. Raises RowError."""
    found = first_of(value, (name,))
    if isinstance(found, list) and all(isinstance(item, int | float) and abs(item) < 2**53 for item in found):
        found = torch.tensor(found, dtype=torch.float64)
    if not is_plain(found) or found.dtype not in INTEGERS + FLOATS:
        raise RowError(f"`{name}` must be whole numbers in a list or tensor, found: {_kind(found)}")
    check_stored(found, f"`{name}`")
    flat = found[0] if found.dim() == 2 and found.shape[0] == 1 else found
    if flat.dim() != 1:
        raise RowError(f"`{name}` must have shape [T] or [1, T], found: {list(found.shape)}")
    if flat.dtype in FLOATS and bool((flat.double() != flat.to(torch.int64).double()).any()):
        raise RowError(f"`{name}` must be whole numbers in a list or tensor, found: fractions or NaN")
    return flat.to(torch.int64)


def matrix(found: object, what: str) -> torch.Tensor:
    """A (T, width) float matrix from [T, width] or [1, T, width]. Raises RowError."""
    flat = floats(found, what)
    flat = flat[0] if flat.dim() == 3 and flat.shape[0] == 1 else flat
    if flat.dim() != 2:
        raise RowError(f"{what} must have shape [1, T, width] or [T, width], found: {list(flat.shape)}")
    return flat


def floats(found: object, what: str) -> torch.Tensor:
    """A tensor of plain floats, all of it stored. Raises RowError."""
    if not is_plain(found) or found.dtype not in FLOATS:
        raise RowError(f"{what} must be a tensor of plain floats, found: {_kind(found)}")
    check_stored(found, what)
    return found


def is_plain(found: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is an ordinary tensor: not sparse, nested, quantised or without data."""
    return (
        isinstance(found, torch.Tensor)
        and found.layout is torch.strided
        and not found.is_nested
        and not found.is_quantized
        and found.device.type == "cpu"
    )


def check_stored(found: torch.Tensor, what: str) -> None:
    """A view with stride 0 asks for terabytes that the file does not hold. Raises RowError."""
    wanted, stored = found.numel() * found.element_size(), found.untyped_storage().nbytes()
    if wanted > stored:
        raise RowError(
            f"{what} must be stored whole, found a repeating view of {stored} bytes with shape: {list(found.shape)}"
        )


def check_numbers(found: torch.Tensor, what: str) -> None:
    """Raise RowError where numbers (T, ...) are not a model's; looks at them piece by piece."""
    if found.numel() == 0:
        return
    one = max(1, found[:1].numel() * found.element_size())
    for piece in torch.split(found, max(1, PIECE_BYTES // one)):
        largest = max(abs(float(bound)) for bound in torch.aminmax(piece))  # NaN comes through; ten times isfinite
        if not math.isfinite(largest):
            raise RowError(f"{NOT_FINITE}{what}")
        if largest > LARGEST_STATE:
            raise RowError(f"a model's {what} stay below {LARGEST_STATE:.0e}, found: {largest:.3g}")
        let_go(piece)


def sha256_of(tokens: torch.Tensor) -> str:
    """Hash of token ids (T,) as little-endian int64."""
    return hashlib.sha256(struct.pack(f"<{len(tokens)}q", *tokens.tolist())).hexdigest()


def _kind(found: object) -> str:
    if not isinstance(found, torch.Tensor):
        return type(found).__name__
    return f"{found.dtype}, {'nested' if found.is_nested else found.layout}"
