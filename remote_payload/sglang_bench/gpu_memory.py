"""What a server's processes hold of the GPUs' memory, by nvidia-smi; a hung or missing one is `not known`."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from remote_payload.gpus import GpuFacts, look_at_gpus

FREE_PATIENCE_S = 30.0
"""A context's memory may stay for seconds after its process is gone."""
PAUSE_S = 0.5


@dataclass
class GpuMemory:
    """Whose memory is ours: that of the server's processes, and of SGLang processes that were not there before."""

    look: Callable[[], GpuFacts] = look_at_gpus
    before: frozenset[int] = frozenset()
    ours: set[int] = field(default_factory=set)
    is_known: bool = False

    def begin(self) -> None:
        """Before the server is launched."""
        used = self._used()
        self.is_known = used is not None
        self.before = frozenset(used or ())

    def claim(self, pids: Iterable[int]) -> None:
        """When it is ready: its processes, and new users of a GPU (behind `docker exec` they have other pids)."""
        if self.is_known and (used := self._used()) is not None:
            self.ours |= (set(pids) & used.keys()) | {pid for pid in used if pid not in self.before}

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
                used[process.pid] = used.get(process.pid, 0) + (process.used_memory_bytes or 0)
        return used
