"""The stages of a diagnosis, cheapest first: what each needs, and what it costs."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.replay import replay_job
from orchestrator.diagnosing.results import Results
from orchestrator.errors import JobFileError
from orchestrator.jobfile import PlannedJob
from remote_payload.schema import BenchJob

BEFORE_READY = re.compile(r"before it was ready")
OF_CAPTURE = re.compile(r"\((?:bad_flag|port_taken|killed_child|host_limits)\)")
"""Signatures of a start that fails by what a capture adds, or by the machine as it was then."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: an ordinary run of the host."""

    name: str
    tells: str
    """What it tells, in words."""
    cost: str
    cost_attached: str
    """The same where the server is up already."""
    plan: Callable[[Asked, Config, Results], PlannedJob | str]
    """The job, or why there is none."""


def _offline(asked: Asked, config: Config, _done: Results) -> PlannedJob | str:
    if not asked.has_rows:
        return "no captured training rows were named (--rows)"
    if asked.draft is None or asked.model is None:
        return "it takes the folders of both models (--model, --draft)"
    return asked.offline(config)


NO_SERVER = "minutes of one GPU or CPU, no server"
NO_DRAFTER = "it takes the drafter's folder (--draft)"


def _capture(asked: Asked, config: Config, _done: Results) -> PlannedJob | str:
    if asked.model is None:
        return "the target's folder was not named (--model): nobody knows how wide a state is"
    if _lacks_drafter(asked, config):
        return NO_DRAFTER
    try:
        return asked.capture(config)
    except JobFileError as error:
        if asked.has_rows:
            raise
        return error.message


def _serve(asked: Asked, config: Config, done: Results) -> PlannedJob | str:
    if _lacks_drafter(asked, config):
        return NO_DRAFTER
    return _never_ready(done) or asked.serve(config)


def _never_ready(done: Results) -> str | None:
    """Why the same server is not started again: it died at its start for the capture, of what it was asked to serve."""
    record = done.records.get("capture")
    failure = None if record is None or record.state is None else record.state.failure
    if record is None or failure is None or failure.kind != "server" or not BEFORE_READY.search(failure.message):
        return None
    if OF_CAPTURE.search(failure.message):
        return None
    return f"the same server did not come up for the capture (run {record.run_id}); --again tries both"


def is_attached(asked: Asked, config: Config) -> bool:
    """Whether the server is up already. Raises JobFileError."""
    job = asked.serve(config).job
    return isinstance(job, BenchJob) and job.attach_url is not None


def _lacks_drafter(asked: Asked, config: Config) -> bool:
    """Whether a server of our own would be started without a drafter: plain decoding tells nothing of one."""
    job = asked.serve(config).job
    return isinstance(job, BenchJob) and job.draft is None and job.attach_url is None


STAGES = (
    Stage(
        name="offline",
        tells="what the drafter was trained on, and what it would be fed",
        cost=NO_SERVER,
        cost_attached=NO_SERVER,
        plan=_offline,
    ),
    Stage(
        name="capture",
        tells="what the running server really feeds the drafter",
        cost="one start of the server",
        cost_attached="some requests to the server that is up",
        plan=_capture,
    ),
    Stage(
        name="replay",
        tells="what a server should accept on the very text that is served",
        cost=NO_SERVER,
        cost_attached=NO_SERVER,
        plan=replay_job,
    ),
    Stage(
        name="serve",
        tells="what the server accepts, how fast it is, and what speculation must reach to pay",
        cost="two starts of the server and the requests",
        cost_attached="the requests to the server that is up",
        plan=_serve,
    ),
)
