"""The host's GPUs as nvidia-smi sees them, and who uses them. A hung tool is another answer than "no GPU"."""

import contextlib
import csv
import os
import pwd
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remote_payload.bounded import BoundedChild
from remote_payload.schema import Gpu, GpuProcess

DEADLINE_S = 10.0
GPU_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu,driver_version"
PROCESS_FIELDS = "gpu_uuid,pid,used_memory"
ANSWERED = {0, 14, 15}
"""nvidia-smi's exit codes beside which its rows hold, by its manual: success, the warning of a damaged infoROM, and a
GPU that fell off the bus, which is no row."""
NO_DEVICES = "No devices were found"
"""The whole answer where a driver has no GPU, whatever the exit code."""
Meanwhile = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """The answer and, when it is `ok`, the GPUs."""

    answer: Literal["ok", "no_nvidia_smi", "hung", "failed"]
    problem: str | None = None
    """Beside `ok`: what else it said, e.g. of a card that fell off the bus; the GPUs that it listed can be used."""
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True)
class _Patience:
    """How long one question may take, and what is done meanwhile."""

    deadline_s: float
    meanwhile: Meanwhile | None


class _SmiError(Exception):
    def __init__(self, answer: Literal["hung", "failed"], problem: str) -> None:
        super().__init__(problem)
        self.facts = GpuFacts(answer=answer, problem=problem)


def look_at_gpus(
    deadline_s: float | None = None, *, parts: bool = False, meanwhile: Meanwhile | None = None
) -> GpuFacts:
    """Ask nvidia-smi from PATH or its usual places; None = `DEADLINE_S` a question. `parts`: also the MIG devices.

    `meanwhile` is called now and then, and between two questions; what it raises is raised.
    """
    patience = _Patience(DEADLINE_S if deadline_s is None else deadline_s, meanwhile)
    tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/bin:/usr/local/bin:/usr/lib/wsl/lib")
    if tool is None:
        return GpuFacts(answer="no_nvidia_smi")
    try:
        gpus, said = _query(tool, f"--query-gpu={GPU_FIELDS}", patience)
        if not gpus and all(NO_DEVICES in line for line in said):
            return GpuFacts(answer="ok")
        processes, of_processes = _query(tool, f"--query-compute-apps={PROCESS_FIELDS}", patience)
        whole = parse_gpus(gpus, processes)
        problem = "; ".join(dict.fromkeys((*said, *of_processes)))[:300] or None
        if not whole:
            return GpuFacts(answer="failed", problem=f"unexpected output of {tool}: {problem}")
        return GpuFacts(answer="ok", problem=problem, gpus=_with_parts(whole, tool, patience) if parts else whole)
    except _SmiError as error:
        return error.facts
    except ValueError as error:
        return GpuFacts(answer="failed", problem=f"unexpected output of {tool}: {error}")


def _with_parts(gpus: tuple[Gpu, ...], tool: str, patience: _Patience) -> tuple[Gpu, ...]:
    listing = _ask([tool, "-L"], patience).splitlines()
    if not any(line.lstrip().startswith("MIG ") for line in listing):
        return gpus
    from remote_payload.gpus.mig import parse_mig  # noqa: PLC0415 - few hosts need an XML parser

    return parse_mig(gpus, listing, _ask([tool, "-q", "-x"], patience))


def _query(tool: str, question: str, patience: _Patience) -> tuple[list[str], list[str]]:
    """The rows of the answer, and the lines among them that are none: warnings, cards that do not answer."""
    text = _ask([tool, question, "--format=csv,noheader,nounits"], patience)
    width = question.count(",") + 1
    rows, said = list[str](), list[str]()
    for line in text.splitlines():
        if line.strip():
            fields = next(csv.reader([line], skipinitialspace=True))
            (rows if len(fields) == width and is_row(fields) else said).append(line.strip())
    return rows, said


def is_row(fields: Sequence[str]) -> bool:
    """Whether these are a GPU's, which begins with its index, or a process's, which begins with its GPU's UUID."""
    return fields[0].isdecimal() or fields[0].startswith(("GPU-", "MIG-"))


def _ask(command: list[str], patience: _Patience) -> str:
    tool = command[0]
    if patience.meanwhile is not None:
        patience.meanwhile()
    try:
        child = BoundedChild(command, without_errors=True)
    except OSError as error:
        raise _SmiError("failed", f"{error.strerror}: {tool}") from None
    done = child.finish(time.monotonic() + patience.deadline_s, patience.meanwhile)
    if done is None:
        raise _SmiError("hung", f"{tool} gave no answer within {patience.deadline_s:g} s")
    code, text = done
    if code not in ANSWERED and text.strip() != NO_DEVICES:
        words = " ".join(f"{text} {child.errors}".split())[:300]
        raise _SmiError("failed", f"{tool} ended with exit code {code}: {words}")
    return text


def parse_gpus(gpu_lines: Iterable[str], process_lines: Iterable[str]) -> tuple[Gpu, ...]:
    """Read nvidia-smi's CSV (memory in MiB; `[N/A]` and the like are unknown). Raises ValueError."""
    users: dict[str, list[GpuProcess]] = {}
    for fields in csv.reader(process_lines, skipinitialspace=True):
        uuid, pid, memory = fields
        users.setdefault(uuid, []).append(_process(int(pid) if pid.isdecimal() else None, _mebibytes(memory)))
    gpus = []
    for fields in csv.reader(gpu_lines, skipinitialspace=True):
        index, uuid, name, total, used, utilization, driver = fields
        gpus.append(
            Gpu(
                index=int(index),
                uuid=uuid,
                name=name,
                memory_total_bytes=_mebibytes(total),
                memory_used_bytes=_mebibytes(used),
                utilization_percent=_number(utilization),
                driver=driver,
                processes=tuple(users.get(uuid, ())),
            )
        )
    return tuple(gpus)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mebibytes(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value * 1024 * 1024)


def _process(pid: int | None, memory_bytes: int | None) -> GpuProcess:
    """User and command from /proc; unknown for a process of another namespace."""
    user = command = None
    if pid is None:
        return GpuProcess(pid=None, used_memory_bytes=memory_bytes)
    with contextlib.suppress(OSError, KeyError):
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name  # noqa: PTH116
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        command = b" ".join(words).decode("utf-8", "replace").strip()[:200] or None
    return GpuProcess(pid=pid, used_memory_bytes=memory_bytes, user=user, command=command)
