"""The tries of one stage: `d.serve`, then `d.serve.2`, ...; and whether the last one's end stands for good.

What a run was cut short by - a cancel, a budget, a host that went down - says nothing about the pair; how its job
itself failed does.
"""

import json
from collections.abc import Sequence

from orchestrator.records import RunRecord
from orchestrator.store import Store
from remote_payload.schema import Job, SchemaError, job_from_json, to_json

FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals that somebody sends; the others are a program's own end."""


OF_NO_WEIGHT = ("resume", "or_anew", "trained")
"""Settings by which no stage comes to other figures: whose rows it took over, and the trainer's word."""


def attempt_id(run_id: str, number: int) -> str:
    """`number` counts from 1."""
    return run_id if number == 1 else f"{run_id}.{number}"


def attempts(store: Store, run_id: str) -> list[RunRecord]:
    """The tries that this laptop knows, oldest first. Raises StoreError where one cannot be read."""
    found: list[RunRecord] = []
    while store.run_dir(name := attempt_id(run_id, len(found) + 1)).path.is_dir():
        found.append(store.load_exact(name))
    return found


def newest_asked(tries: Sequence[RunRecord], job: Job, host: str) -> RunRecord | None:
    """The newest of them that was asked to do just this on this host; None = none was."""
    return next((known for known in reversed(tries) if known.host.name == host and not differing(known, job)), None)


def differing(known: RunRecord, job: Job) -> list[str]:
    """Settings that a run was asked otherwise; what decides nothing it measures is none, nor what is new since."""
    try:
        before = json.loads(to_json(job_from_json(known.spec.job_json)))
    except SchemaError:  # of another version of the tool
        before = json.loads(known.spec.job_json)
    now = json.loads(to_json(job))
    return [key for key in sorted({*before, *now} - {*OF_NO_WEIGHT}) if before.get(key) != now.get(key)]


def is_attempt(name: str, run_id: str) -> bool:
    """Whether a run is one of the tries, by its id."""
    rest = name.removeprefix(f"{run_id}.")
    return name == run_id or (rest != name and rest.isdecimal())


def is_cut_short(record: RunRecord, host_deadline_s: float | None) -> bool:
    """Whether a run that is over did not come to its own end.

    `host_deadline_s`: what the host allows any run; one that used all of that would use it again.
    """
    state = record.state
    if state is None:
        return True
    if state.phase == "timed_out":
        return record.spec.deadline_s != host_deadline_s
    if state.phase == "killed":
        return state.signal in FROM_OUTSIDE
    never_began = state.phase == "failed" and state.started_unix_s is None
    return never_began or state.phase in ("cancelled", "lost")
