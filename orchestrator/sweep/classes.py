"""What a machine is, in the words by which figures may share a table: its GPUs, or its processor where it has none."""

from collections import Counter

from remote_payload.schema import Gpu, HostFacts


def host_class(facts: HostFacts) -> str | None:
    """e.g. `8 x NVIDIA H200 (143771 MiB)`, `CPU alone (16 x, x86_64)`; None where nvidia-smi hung or failed.

    Not told apart: drivers, clocks, and processors of the same number and kind. Two hosts of one class are still two:
    each has its own plain decoding.
    """
    if facts.gpu_answer in ("hung", "failed"):
        return None
    usable = Counter(_words(gpu) for gpu in facts.gpus if not gpu.mig_devices)
    if usable:
        return ", ".join(f"{count} x {words}" for words, count in sorted(usable.items()))
    kind = facts.system.split()[-1] if facts.system.split() else "unknown"
    cores = "unknown" if facts.cpu_count is None else f"{facts.cpu_count} x"
    return f"CPU alone ({cores}, {kind})"


def _words(gpu: Gpu) -> str:
    size = "" if gpu.memory_total_bytes is None else f" ({gpu.memory_total_bytes // 2**20} MiB)"
    return f"{gpu.name}{size}"
