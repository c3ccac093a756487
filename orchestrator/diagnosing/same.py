"""Whether a diagnosis is asked what it was asked before: its stages stand under its id, and belong to one question."""

import json

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.attempts import attempts
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.running import is_given_up
from orchestrator.diagnosing.stages import STAGES
from orchestrator.errors import ClaimedError
from orchestrator.flags import flag_of
from orchestrator.jobfile import PlannedJob
from orchestrator.order import at_host
from orchestrator.records import RunRecord
from remote_payload.schema import to_json

OF_ANSWERS = ("replay",)
"""Stages that are planned from what an earlier one brought home."""


def require_same(asked: Asked, config: Config, lease: Lease) -> None:
    """Raise ClaimedError where a stage that stands was asked something else, or elsewhere. Raises JobFileError, too.

    A stage that failed stands until `--again`; one that was cut short never does.
    """
    for stage in STAGES:
        tries = attempts(lease.store, asked.run_id(stage.name))
        if stage.name in OF_ANSWERS or not tries or is_given_up(tries[-1], lease, again=asked.again):
            continue
        planned = stage.plan(asked, config, Results())
        changed = [planned] if isinstance(planned, str) else _changed(tries[-1], planned, lease)
        if changed:
            raise ClaimedError(
                f"diagnosis {asked.diagnosis_id} was asked something else before: its stage {stage.name} has other "
                f"settings ({', '.join(changed)})",
                hint=f"take another --run-id; `--run-id {asked.diagnosis_id}` alone goes on with it as it was asked; "
                "--again runs a stage that failed as it is asked now",
            )


def _changed(known: RunRecord, planned: PlannedJob, lease: Lease) -> list[str]:
    """The flags whose values differ, and whether the host does."""
    session = lease.session
    before = json.loads(known.spec.job_json)
    now = json.loads(to_json(at_host(planned, session.name, session.host).job))
    changed = [flag_of(key) for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    return changed if known.host.name == session.name else ["--host", *changed]
