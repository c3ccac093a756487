"""What a server's processes hold of the GPUs' memory, by nvidia-smi; a hung or missing one is `not known`."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from remote_payload.gpus.facts import GpuFacts, look_at_gpus

FREE_PATIENCE_S = 30.0
"""A context's memory may stay for seconds after its process is gone."""
PAUSE_S = 0.5


class PatientLook:
    """nvidia-smi, asked until it hangs: a hung one takes its whole deadline every time, and seldom comes back."""

    def __init__(self, look: Callable[..., GpuFacts] = look_at_gpus) -> None:
        self._look = look
        self._hung: GpuFacts | None = None

    def __call__(self, *, parts: bool = False) -> GpuFacts:
        """What it says, or said when it hung."""
        if self._hung is not None:
            return self._hung
        facts = self._look(parts=parts)
        self._hung = facts if facts.answer == "hung" else None
        return facts

    def with_parts(self) -> GpuFacts:
        """Also the MIG devices."""
        return self(parts=True)


LOOK = PatientLook()
"""Of this worker: what one start learnt the next one knows."""


@dataclass
class GpuMemory:
    """Whose memory is ours: that of the server's processes.

    Behind a prefix that enters a container they have other pids than its tree shows: then also that of SGLang's
    processes that came meanwhile. A colleague's job that came meanwhile is not ours.
    """

    look: Callable[[], GpuFacts] = LOOK
    before: frozenset[int] = frozenset()
    ours: set[int] = field(default_factory=set)
    commands: dict[int, str] = field(default_factory=dict)
    is_known: bool = False

    def begin(self) -> None:
        """Before the server is launched."""
        used = self._used()
        self.is_known = used is not None
        self.before = frozenset(used or ())

    def claim(self, pids: Iterable[int], *, behind_prefix: bool) -> None:
        """When it is ready: its processes, and where they may have other pids, new ones whose command is SGLang's."""
        if not self.is_known or (used := self._used()) is None:
            return
        self.ours |= set(pids) & used.keys()
        if behind_prefix:
            self.ours |= {pid for pid in used if pid not in self.before and "sglang" in self.commands.get(pid, "")}

    def left_bytes(self, patience_s: float = FREE_PATIENCE_S) -> int | None:
        """After the stop: what ours still hold, waiting until it is nothing; None = no GPU, or not known."""
        until_s = time.monotonic() + patience_s
        while self.is_known:
            used = self._used()
            if used is None:
                return None
            held = sum(used.get(pid, 0) for pid in self.ours)
            if held == 0 or time.monotonic() >= until_s:
                return held
            time.sleep(PAUSE_S)
        return None

    def _used(self) -> dict[int, int] | None:
        """Bytes by pid, over all GPUs; None where nvidia-smi gives no answer."""
        facts = self.look()
        if facts.answer != "ok":
            return None
        used: dict[int, int] = {}
        for gpu in facts.gpus:
            for process in gpu.processes:
                if process.pid is None:  # of another container: no server that was started here
                    continue
                used[process.pid] = used.get(process.pid, 0) + (process.used_memory_bytes or 0)
                self.commands[process.pid] = process.command or ""
        return used
