"""MIG devices: parts of a GPU with a UUID, memory and processes of their own, as `nvidia-smi -L` and `-q -x` tell."""

import dataclasses
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from remote_payload.schema import Gpu, GpuProcess

_GPU = re.compile(r"GPU (\d+): .*\(UUID: ([^)]+)\)")
_DEVICE = re.compile(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)]+)\)")


def parse_mig(gpus: Sequence[Gpu], listing: Sequence[str], details: str | None) -> tuple[Gpu, ...]:
    """The GPUs, each followed by its MIG devices; `details` is the XML of `-q -x`, None = it could not be had.

    Whose memory or processes are not told has None there, and counts every process of its GPU as its own: a device
    that may be in use is not free.
    """
    parts = _parts(listing)
    told = _details(details or "")
    found: list[Gpu] = []
    for gpu in gpus:
        own = parts.get(gpu.uuid, [])
        found.append(dataclasses.replace(gpu, mig_devices=tuple(uuid for _, _, uuid in own)))
        for name, index, uuid in own:
            memory, users = told.get((gpu.uuid, index), ((None, None), None))
            processes = gpu.processes if users is None else _known(gpu.processes, users)
            total, used = memory
            part = Gpu(
                index=gpu.index,
                uuid=uuid,
                name=f"{gpu.name} MIG {name}",
                memory_total_bytes=total,
                memory_used_bytes=used,
                driver=gpu.driver,
                processes=processes,
                mig_of=gpu.uuid,
            )
            found.append(part)
    return tuple(found)


def _parts(listing: Sequence[str]) -> dict[str, list[tuple[str, int, str]]]:
    """(profile, device index, UUID) of each MIG device, by its GPU's UUID."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    current = ""
    for line in listing:
        if gpu := _GPU.match(line):
            current = gpu[2]
        elif device := _DEVICE.match(line):
            found.setdefault(current, []).append((device[1], int(device[2]), device[3]))
    return found


Memory = tuple[int | None, int | None]


def _details(text: str) -> dict[tuple[str, int], tuple[Memory, tuple[int, ...] | None]]:
    """((total, used) bytes, pids) by (GPU's UUID, device index); nothing of what is no XML of nvidia-smi."""
    try:
        log = ElementTree.fromstring(text)  # noqa: S314 - the host's own tool; expat refuses entity bombs since 2.4.1
    except ElementTree.ParseError:
        return {}
    found: dict[tuple[str, int], tuple[Memory, tuple[int, ...] | None]] = {}
    for gpu in log.iter("gpu"):
        uuid = gpu.findtext("uuid", "")
        for device in gpu.iter("mig_device"):
            index, instance = device.findtext("index", ""), device.findtext("gpu_instance_id")
            if not index.isdigit():
                continue
            pids = None if instance is None else _pids(gpu, instance)
            memory = (
                _bytes(device.findtext("fb_memory_usage/total")),
                _bytes(device.findtext("fb_memory_usage/used")),
            )
            found[uuid, int(index)] = (memory, pids)
    return found


def _pids(gpu: ElementTree.Element, instance: str) -> tuple[int, ...]:
    processes = gpu.iterfind("processes/process_info")
    own = [item.findtext("pid", "") for item in processes if item.findtext("gpu_instance_id") == instance]
    return tuple(int(pid) for pid in own if pid.isdigit())


def _bytes(text: str | None) -> int | None:
    """`4864 MiB` in bytes."""
    number, _, unit = (text or "").partition(" ")
    return int(number) * 1024 * 1024 if number.isdigit() and unit == "MiB" else None


def _known(processes: Sequence[GpuProcess], pids: Sequence[int]) -> tuple[GpuProcess, ...]:
    by_pid = {process.pid: process for process in processes}
    return tuple(by_pid.get(pid, GpuProcess(pid=pid)) for pid in pids)
