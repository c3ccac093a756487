"""The stages of a diagnosis, cheapest first: what each needs, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.replay import replay_job
from orchestrator.diagnosing.results import Results
from orchestrator.errors import JobFileError
from orchestrator.jobfile import PlannedJob
from remote_payload.schema import BenchJob


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: an ordinary run of the host."""

    name: str
    tells: str
    """What it tells, in words."""
    cost: str
    plan: Callable[[Asked, Config, Results], PlannedJob | str]
    """The job, or why there is none."""


def _offline(asked: Asked, config: Config, _done: Results) -> PlannedJob | str:
    if not asked.has_rows:
        return "no captured training rows were named (--rows)"
    if asked.draft is None or asked.model is None:
        return "it takes the folders of both models (--model, --draft)"
    return asked.offline(config)


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


def _serve(asked: Asked, config: Config, _done: Results) -> PlannedJob | str:
    return NO_DRAFTER if _lacks_drafter(asked, config) else asked.serve(config)


def _lacks_drafter(asked: Asked, config: Config) -> bool:
    """Whether a server of our own would be started without a drafter: plain decoding tells nothing of one."""
    job = asked.serve(config).job
    return isinstance(job, BenchJob) and job.draft is None and job.attach_url is None


STAGES = (
    Stage(
        name="offline",
        tells="what the drafter was trained on, and what it would be fed",
        cost="minutes of one GPU or CPU, no server",
        plan=_offline,
    ),
    Stage(
        name="capture",
        tells="what the running server really feeds the drafter",
        cost="one start of the server",
        plan=_capture,
    ),
    Stage(
        name="replay",
        tells="what a server should accept on the very text that is served",
        cost="minutes of one GPU or CPU, no server",
        plan=replay_job,
    ),
    Stage(
        name="serve",
        tells="what the server accepts, how fast it is, and what speculation must reach to pay",
        cost="two starts of the server and the requests",
        plan=_serve,
    ),
)
