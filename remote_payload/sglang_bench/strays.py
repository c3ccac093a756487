"""Who else uses the GPUs that were leased for this run, looked for again and again while it is measured.

Not covered: a server in a container or one that was attached to, whose processes are not of our tree; processes that
this host hides.
"""

import os
import time
from collections.abc import Callable

from remote_payload.gpus.choice import leased
from remote_payload.gpus.facts import GpuFacts
from remote_payload.gpus.top import users_of
from remote_payload.schema.waiting import LEASED
from remote_payload.sglang_bench.gpu_memory import LOOK

INTERVAL_S = 30.0


class Strays:
    """Each stranger is told once."""

    def __init__(self, warn: Callable[[str, str], None], look: Callable[[], GpuFacts] = LOOK.with_parts) -> None:
        self._warn, self._look = warn, look
        self._told: set[int] = set()
        self._due_s = 0.0

    def look_when_due(self) -> None:
        """Nothing where nothing is leased."""
        if LEASED not in os.environ or time.monotonic() < self._due_s:
            return
        facts = self._look()
        self._due_s = time.monotonic() + INTERVAL_S
        for gpu in leased(facts.gpus, os.environ):
            for one in users_of(gpu, os.getppid(), os.environ.get("EAGLE3_RUN_ID", "")).strays:
                if one.pid is not None and one.pid not in self._told:
                    self._told.add(one.pid)
                    since = time.strftime("%H:%M:%S %Z")
                    who = f"{one.user or 'somebody'}'s pid {one.pid} ({one.command or 'command unknown'})"
                    words = f"{who}, seen at {since}, uses GPU {gpu.index}, which is leased to this run"
                    self._warn("leased_gpu_shared", f"{words}: what is measured beside it may be too slow")
