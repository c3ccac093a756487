"""The life of one SGLang server from the job's side, once it is ready: ask it, stop it.

running = start(job, "spec", 0, result_folder, report)   # see `starting`; `attached` finds one that runs already
snapshot(running.url, running.key, began_s)
running.check()                                          # raises when it died meanwhile
facts = running.stop()
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from remote_payload.failure import JobFailure, server_failure
from remote_payload.schema.bench import ServerFacts
from remote_payload.schema.run import Event
from remote_payload.sglang_bench.gpu_memory import GpuMemory
from remote_payload.sglang_bench.launch import Process

Report = Callable[[Event], None]
GRACE_S = 20.0
"""Between TERM and KILL; an idle server takes 3 to 10 s, one with a stuck request never ends by itself."""


class Running:
    """A server that was ready when this was made; ours to stop unless it was attached to."""

    def __init__(
        self,
        facts: ServerFacts,
        key: str | None,
        process: Process | None = None,
        memory: GpuMemory | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.url = facts.url
        """Without a slash at its end."""
        self.key = key
        """API key to send as `Authorization: Bearer`; never written anywhere."""
        self.hidden = hidden
        """Values that must be written nowhere, the key among them."""
        self._facts, self._process, self._memory = facts, process, memory

    @property
    def facts(self) -> ServerFacts:
        """What is known so far."""
        if self._process is None:
            return self._facts
        return dataclasses.replace(self._facts, lines=tuple(self._process.log.decided.values()))

    @property
    def log_path(self) -> Path | None:
        """Of a server of ours, on this host."""
        return None if self._process is None else self._process.log.path

    @property
    def has_died(self) -> bool:
        """Whether the server of ours has ended without being asked to; asking costs nothing."""
        return self._process is not None and self._process.has_ended and self._facts.stopped is None

    def check(self) -> None:
        """Raise JobFailure(server), with its log's decisive lines, when the server of ours has ended."""
        if self.has_died and self._process is not None:
            raise self._process.failure()

    def hangs(self, what: str) -> JobFailure:
        """The failure of a server that lives and does nothing; `what` = how that was seen."""
        if self._process is not None:
            return self._process.failure(what)
        return server_failure(
            f"the server at {self.url} failed: {what}", hint="look at its log; nothing here started it, nothing ends it"
        )

    def stop(self) -> ServerFacts:
        """TERM, bounded wait, KILL of the whole tree, GPU memory free; an attached server is left alone.

        May be called twice; the second call only returns the facts. Never raises because of the server.
        """
        if self._facts.stopped is None:
            self._facts = self._stopped()
        return self._facts

    def _stopped(self) -> ServerFacts:
        if self._process is None:
            return dataclasses.replace(self._facts, stopped="left")
        facts, died = self.facts, self._process.has_ended
        ended = self._process.end(GRACE_S)
        left = None if self._memory is None else self._memory.left_bytes()
        return dataclasses.replace(
            facts,
            stopped="died" if died else ended.how,
            stop_s=ended.seconds,
            survivors=ended.survivors,
            gpu_memory_left_bytes=left,
        )
