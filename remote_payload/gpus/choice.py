"""Which GPUs of a host a run may take. Pure: nvidia-smi's facts, the visible devices and the wish in, reasons out.

Devices are known by their UUIDs. What a run is given is an index for a whole GPU, with `CUDA_DEVICE_ORDER=PCI_BUS_ID`
so that CUDA counts as nvidia-smi does: SGLang's all-reduce reads `CUDA_VISIBLE_DEVICES` as whole numbers and dies of a
UUID (0.5.23, custom_all_reduce_utils.py). A MIG device has no index: it is given by its UUID.
"""

import re
from collections.abc import Mapping, Sequence

from remote_payload.schema import Gpu, GpuProcess
from remote_payload.schema.waiting import DEVICES, LEASED

GIB = 1 << 30
IDLE_BYTES = GIB
"""Memory in use up to which a GPU without processes counts as free: drivers and persistence keep some hundred MiB."""
_UUID = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_-]{0,99}")


class MaskError(ValueError):
    """`CUDA_VISIBLE_DEVICES` does not tell which GPUs are meant."""


def visible(gpus: Sequence[Gpu], mask: str | None, order: str | None) -> tuple[Gpu, ...]:
    """The devices that `CUDA_VISIBLE_DEVICES` lets through, in its order; `order` is `CUDA_DEVICE_ORDER`.

    As CUDA reads it (CUDA C++ Programming Guide, "CUDA Environment Variables"): indices or beginnings of UUIDs, and
    everything behind the first that names nothing is invisible. Raises MaskError.
    """
    if mask is None:
        return tuple(gpus)
    names = [name.strip() for name in mask.split(",") if name.strip()]
    by_index = any(name.lstrip("+-").isdigit() for name in names)
    if by_index and order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus if gpu.mig_of is None}) > 1:
        raise MaskError(
            f"CUDA_VISIBLE_DEVICES={mask} counts GPUs in CUDA's own order, which nobody else knows on a host of "
            "differing GPUs: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID"
        )
    found: list[Gpu] = []
    for name in names:
        named = [gpu for gpu in gpus if _is(gpu, name)]
        if len(named) != 1 or named[0] in found:
            break
        found.append(named[0])
    return tuple(found)


def _is(gpu: Gpu, name: str) -> bool:
    if name.isascii() and name.isdigit():
        return gpu.mig_of is None and gpu.index == int(name)
    return len(name) > len("GPU-") and gpu.uuid.startswith(name)


def is_uuid(text: str) -> bool:
    """Whether a device can be known by this; a lost GPU's is `[Unknown Error]`. Old drivers write `MIG-GPU-.../1/0`."""
    return _UUID.fullmatch(text) is not None


def _user(process: GpuProcess) -> str:
    who = process.user or "somebody"
    return f"{who}, whose pid is not told" if process.pid is None else f"{who}'s pid {process.pid}"


def why_not(gpu: Gpu, min_free_bytes: int | None) -> str | None:
    """Why a device is not free, in words; None = it is. Leases are not looked at."""
    if gpu.mig_devices:
        return "split into MIG devices"
    if not is_uuid(gpu.uuid):
        return f"does not tell its UUID ({gpu.uuid[:40]})"
    if gpu.processes:
        users = ", ".join(map(_user, gpu.processes[:3]))
        more = len(gpu.processes) - 3
        return f"used by {users}{f' and {more} more' if more > 0 else ''}"
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    if used is None and total is not None:
        return "does not tell how much of its memory is in use"
    if used is not None and used > IDLE_BYTES:
        return f"{used / GIB:.1f} GiB in use, though no process is seen"
    if min_free_bytes is None:
        return None
    if used is None or total is None:
        return "does not tell its memory"
    return f"{(total - used) / GIB:.1f} GiB free" if total - used < min_free_bytes else None


def is_large_enough(gpu: Gpu, min_free_bytes: int | None) -> bool:
    """Whether a device could ever have so much free; one that does not tell its memory might."""
    return min_free_bytes is None or gpu.memory_total_bytes is None or gpu.memory_total_bytes >= min_free_bytes


def gib(size_bytes: int | None) -> str:
    """A size of memory in words."""
    return f"{(size_bytes or 0) / GIB:.1f} GiB"


def handed_down(environ: Mapping[str, str]) -> dict[str, str]:
    """What a lease has set in an environment, for those started from there; nothing where nothing is leased."""
    return {name: environ[name] for name in DEVICES if name in environ} if LEASED in environ else {}


def leased(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Those that were leased for this process; all whole ones where nothing was."""
    uuids = environ.get(LEASED)
    if uuids is None:
        return tuple(gpu for gpu in gpus if gpu.mig_of is None)
    return tuple(gpu for gpu in gpus if gpu.uuid in uuids.split(","))


def leased_indices(environ: Mapping[str, str]) -> frozenset[int] | None:
    """Indices of the whole GPUs that were leased; None = nothing was, or a MIG device, which has none."""
    names = environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if LEASED in environ else [""]
    return frozenset(map(int, names)) if all(name.isascii() and name.isdigit() for name in names) else None


def environment(gpus: Sequence[Gpu]) -> dict[str, str]:
    """What lets a process see these devices alone."""
    names = [gpu.uuid if gpu.mig_of is not None else str(gpu.index) for gpu in gpus]
    leased = ",".join(gpu.uuid for gpu in gpus)
    return {"CUDA_VISIBLE_DEVICES": ",".join(names), "CUDA_DEVICE_ORDER": "PCI_BUS_ID", LEASED: leased}
