"""Whether a diagnosis is of the pair that it was of before, and which of its stages are asked otherwise now.

Its stages stand under its id. What is added to the question - held-out rows, the trainer's word, sampling, repeats -
runs anew the stages that it changes, and those alone; another pair, host or server is another diagnosis.
"""

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.attempts import attempts, differing, newest_asked
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.running import is_given_up
from orchestrator.diagnosing.stages import STAGES, Stage
from orchestrator.errors import ClaimedError
from orchestrator.flags import flag_of
from orchestrator.order import at_host
from orchestrator.records import RunRecord
from orchestrator.updates import Note

OF_ANSWERS = ("replay",)
"""Stages that are planned from what an earlier one brought home."""
PAIR = ("model", "target", "draft", "attach_url")
"""Settings that make it another diagnosis."""


def require_same(asked: Asked, config: Config, lease: Lease) -> None:
    """Tell which stages are asked otherwise than before, and run anew. Raises ClaimedError, JobFileError.

    ClaimedError where a stage that stands was asked about another pair, elsewhere, or would be asked no more. A stage
    that failed stands until `--again`; one that was cut short never does.
    """
    anew = []
    for stage in STAGES:
        tries = attempts(lease.store, asked.run_id(stage.name))
        if stage.name in OF_ANSWERS or not tries:
            continue
        if is_given_up(tries[-1], lease, again=asked.again):
            continue
        changed = _changed(stage, asked, config, tries, lease)
        _require_same_pair(stage, changed, asked)
        if changed:
            anew.append(f"{stage.name} ({', '.join(changed)})")
    if anew:
        text = f"asked otherwise than before, and run anew where it is run: {'; '.join(anew)}; what was measured stays"
        lease.tell(Note(name="again", text=text))


def _require_same_pair(stage: Stage, changed: list[str], asked: Asked) -> None:
    no_more = [word for word in changed if not word.startswith("--")]
    if no_more:
        raise ClaimedError(
            f"diagnosis {asked.diagnosis_id} has a stage {stage.name}, and is asked for none now: {no_more[0]}",
            hint=f"flags beside --run-id are the whole question: repeat those of before and add to them, or give "
            f"`--run-id {asked.diagnosis_id}` alone to go on with it as it was asked",
        )
    other = [word for word in changed if word in (*map(flag_of, PAIR), "--host")]
    if other:
        raise ClaimedError(
            f"diagnosis {asked.diagnosis_id} was asked something else before: its stage {stage.name} has other "
            f"settings ({', '.join(other)})",
            hint=f"take another --run-id; `--run-id {asked.diagnosis_id}` alone goes on with it as it was asked; "
            "--again runs a stage that failed as it is asked now",
        )


def _changed(stage: Stage, asked: Asked, config: Config, tries: list[RunRecord], lease: Lease) -> list[str]:
    """The flags by which no try was asked this, and whether the host is another one; why it is not asked any more."""
    planned, session = stage.plan(asked, config, Results()), lease.session
    if isinstance(planned, str):
        return [planned]
    job = at_host(planned, session.name, session.host).job
    if newest_asked(tries, job, session.name) is not None:
        return []
    changed = [flag_of(key) for key in differing(tries[-1], job)]
    return changed if tries[-1].host.name == session.name else ["--host", *changed]
