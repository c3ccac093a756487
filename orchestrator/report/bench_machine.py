"""The machine while a served benchmark was measured: what each GPU did, least, median and most."""

import statistics
from collections.abc import Callable, Sequence

from orchestrator.compare.counted import counted
from orchestrator.diagnosis.served_whole import reasons_in_words
from orchestrator.report.words import UNKNOWN
from remote_payload.schema.bench import BenchResult
from remote_payload.schema.bench_machine import MachineSample

GIB = 1 << 30
ANSWERS = {
    "no_nvidia_smi": "none that nvidia-smi knows (it is not on the host)",
    "hung": f"{UNKNOWN} (nvidia-smi hung), nor whether the server's memory was free after its end",
    "failed": f"{UNKNOWN} (nvidia-smi failed), nor whether the server's memory was free after its end",
}
_FIGURES: tuple[tuple[str, str, Callable[[MachineSample], float | None]], ...] = (
    ("SM clock", "MHz", lambda item: item.sm_clock_mhz),
    ("power", "W", lambda item: item.power_w),
    ("temperature", "C", lambda item: item.temperature_c),
    ("memory", "GiB", lambda item: None if item.memory_used_bytes is None else item.memory_used_bytes / GIB),
    ("busy", "%", lambda item: None if item.utilization is None else 100 * item.utilization),
)


def machine_lines(result: BenchResult, samples: Sequence[MachineSample]) -> list[tuple[str, str]]:
    """A line for the host, one for each GPU: least / median / most of its samples, and why its clock was below."""
    gpus = ", ".join(result.gpus) or ANSWERS.get(result.gpu_answer or "ok", "none")
    lines = [("machine", f"{counted(result.host_cpus, 'CPU')}, GPUs: {gpus}, {counted(len(samples), 'sample')}")]
    for gpu in sorted({item.gpu for item in samples if item.gpu is not None}):
        own = [item for item in samples if item.gpu == gpu]
        told = [text for name, unit, of in _FIGURES if (text := _spread(name, unit, [of(item) for item in own]))]
        reasons = f"reasons for lower clocks: {reasons_in_words(own)}"
        lines.append((f"GPU {gpu}", f"{'; '.join([*told, reasons])} (least / median / most of {len(own)})"))
    return lines


def _spread(name: str, unit: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    return f"{name} {min(known):.0f} / {statistics.median(known):.0f} / {max(known):.0f} {unit}"
