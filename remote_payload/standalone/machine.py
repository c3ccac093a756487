"""Where the test computes: device, threads, memory."""

import contextlib
import ctypes
import os
import resource
import sys

import torch

from remote_payload.failure import machine_failure

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's mallopt."""
LARGE_BLOCK_BYTES = 2 << 20
"""Smaller ones come and go so often that the page faults would show."""
KERNELS_KEPT = "32"
"""Shapes whose code oneDNN keeps, instead of 1024."""


def pick_device(wish: str) -> torch.device:
    """`auto`, `cpu`, `cuda` or `cuda:N` as a device that works here. Raises JobFailure(machine)."""
    if wish == "cpu":
        return torch.device("cpu")
    if wish == "auto":
        return torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(wish)
    except RuntimeError:
        device = torch.device("meta")
    if device.type != "cuda":
        raise machine_failure(f"`device` must be auto, cpu, cuda or cuda:N, found: {wish!r}")
    if not torch.cuda.is_available():
        raise machine_failure(
            f"this machine's torch {torch.__version__} has no working CUDA, asked for: {wish}",
            hint='`device = "auto"` takes the CPU where there is no GPU',
        )
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise machine_failure(f"this machine has {torch.cuda.device_count()} visible GPU(s), asked for: {wish}")
    return device


def device_name(device: torch.device) -> str:
    """The GPU's name, or the CPU's by /proc/cpuinfo."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else "CPU"


def return_freed_memory() -> None:
    """From now on blocks of some MiB and more go back to the system once they are freed.

    glibc keeps blocks of up to 32 MiB on its heap, where pieces of ever new sizes find no hole that fits: the process
    grew by a GiB over a row of 32k tokens. It costs a page fault for every 4 KiB of such a block. Elsewhere than with
    glibc nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def keep_few_kernels() -> None:
    """From now on oneDNN keeps the code of a few shapes; to be called before the first product in bfloat16.

    It makes code for every shape of a product and keeps that of the last 1024, about a MiB each: the process grew by a
    GiB over rows of ever new lengths. A number set by whoever started the process stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KERNELS_KEPT)


def trim_heap() -> None:
    """Give freed memory within glibc's heap back to the system; some milliseconds. Elsewhere nothing happens."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_memory_bytes() -> int:
    """Largest resident size of this process so far: its own memory and the pages of mapped files that it holds.

    On Linux the kernel's VmHWM, which begins anew with every program; elsewhere ru_maxrss (bytes on macOS, else KiB),
    which a program takes over from its parent. The memory plan reckons the same: mapped weights whole, and of mapped
    rows what is held at once (`mapped.let_go`).
    """
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="utf-8") as file:
        found = [line.split()[1] for line in file if line.startswith("VmHWM:")]
        if found:
            return int(found[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def peak_gpu_memory_bytes(device: torch.device) -> int | None:
    """Largest memory torch held on the GPU; None on a CPU."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else None
