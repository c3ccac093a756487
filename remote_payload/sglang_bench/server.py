"""The life of one SGLang server from the job's side: start it (or find it), ask it, stop it.

running = start(job, "spec", 0, result_folder, report)   # returns when it is really ready
snapshot(running.url, running.key, began_s)
running.check()                                          # raises when it died meanwhile
facts = running.stop()
"""

from collections.abc import Callable
from pathlib import Path

from remote_payload.schema.bench import ServerFacts, Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.run import Event

Report = Callable[[Event], None]


class Running:
    """A server that was ready when this was made; ours to stop unless it was attached to."""

    url: str
    """Without a slash at its end."""
    key: str | None
    """API key to send as `Authorization: Bearer`; never written anywhere."""

    @property
    def facts(self) -> ServerFacts:
        """What is known so far."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise JobFailure(server), with its log's decisive lines, when the server of ours has ended."""
        raise NotImplementedError

    def stop(self) -> ServerFacts:
        """TERM, bounded wait, KILL of the whole tree, GPU memory free; an attached server is left alone.

        May be called twice; the second call only returns the facts. Never raises because of the server.
        """
        raise NotImplementedError


def start(job: BenchJob, side: Side, number: int, folder: Path, report: Report) -> Running:
    """Launch the server of one side and return when it is really ready.

    `folder` is the result folder; the log goes beside it as `server-N.log`. `report` gets an Event for each phase of
    the start and a warning for each older server that is still there. Raises JobFailure(server), with nothing of the
    server left, when it does not become ready.
    """
    raise NotImplementedError


def attach(job: BenchJob, report: Report) -> Running:
    """Find the server at `job.attach_url`; nothing is started. Raises JobFailure(server) when it does not answer."""
    raise NotImplementedError
