"""Memory-mapped files: whether a tensor lies in one, and letting go of what was read of it.

What was read of a mapped file counts as this process's memory for as long as the kernel sees fit. After `let_go` it no
longer does: the pages stay in the kernel's cache, and are mapped again when they are read again. So a process that lets
go of each piece is never larger than the pieces, however large the file.
"""

import ctypes
import resource
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

LEAST_BYTES = 1 << 20
"""Less is not worth a call."""
PICKED_BYTES = 16 << 20
"""How much of a file rows may be picked from before it is let go of."""
NOT_FILES = ("/dev/", "/memfd:", "/SYSV", "/anon_hugepage")
"""Mappings that have a name but no file behind them."""
DONT_NEED = 4
"""MADV_DONTNEED of Linux."""


def is_mapped(tensor: torch.Tensor) -> bool:
    """Whether all of a tensor lies in one mapped file; False where that cannot be told (anything but Linux)."""
    return tensor.device.type == "cpu" and tensor.numel() > 0 and _in_a_file(*_extent(tensor))


def let_go(tensor: torch.Tensor) -> None:
    """Let go of all pages from a tensor's first number to its last, if it is mapped; nothing happens otherwise.

    What lies between, as other columns of a view, goes as well. Nobody may have written to the mapping: that would be
    lost. Nothing here ever writes to captured states or to a checkpoint's tensors.
    """
    if tensor.device.type != "cpu" or tensor.numel() == 0:
        return
    start, stop = _extent(tensor)
    if stop - start < LEAST_BYTES or not _in_a_file(start, stop):
        return
    page = resource.getpagesize()
    start, stop = -(-start // page) * page, stop // page * page
    _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), DONT_NEED)  # a refusal changes nothing


def picked(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Copies of some rows of a tensor, tensor[at] for ascending `at` (p,); a mapped file is let go of on the way.

    Where the kernel keeps the file in large pages, a few rows spread over it would else hold all of it.
    """
    if len(at) == 0 or not is_mapped(tensor):
        return tensor[at]
    start, stop = _extent(tensor)
    together = max(1, len(at) * PICKED_BYTES // (stop - start))
    parts = []
    for some in torch.split(at, together):
        parts.append(tensor[some])
        let_go(tensor[int(some[0]) : int(some[-1]) + 1])
    return torch.cat(parts)


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of a tensor's first byte and behind its last."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _in_a_file(start: int, stop: int) -> bool:
    """Whether addresses start..stop - 1 lie in one mapping of a file. Asked anew each time, as addresses recur."""
    if sys.platform != "linux":
        return False
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:  # `7f00-7f10 rw-p 00000000 08:01 1234  /path`
        first, _, behind = line.partition(" ")[0].partition("-")
        if int(first, 16) <= start < int(behind, 16):
            name = line.split(maxsplit=5)[5:]
            return (
                stop <= int(behind, 16) and bool(name) and name[0].startswith("/") and not name[0].startswith(NOT_FILES)
            )
    return False


@lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None)
