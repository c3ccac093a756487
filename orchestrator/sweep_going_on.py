"""Going on with a sweep, or confirming it: only where everything is as it was, unless drift is allowed."""

import dataclasses
import json
from collections.abc import Sequence

from orchestrator.errors import ClaimedError, InvalidRunError
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.sweep.remaining import drifted
from orchestrator.sweeping import Asked, identified
from remote_payload.schema import IdentifyRequest, PathIdentity, SweepAttempt, SweepJob


def go_on(asked: Asked, session: HostSession, job: SweepJob, python: str, *, allow_drift: bool) -> SweepJob:
    """`job`, made of this sweep, as it may be launched now by `python`: it goes on with the sweep, or confirms it.

    Raises ClaimedError while the sweep runs, InvalidRunError where nothing is left of it, and on drift.
    """
    run_id = asked.record.run_id
    if not asked.state.is_terminal or asked.drivers:
        left = f", driven by {', '.join(map(str, asked.drivers))}, its supervisor gone" if asked.drivers else ""
        raise ClaimedError(
            f"sweep `{run_id}` still runs on {session.name}{left}",
            hint=f"`eagle3-remote sweep follow {run_id}` follows it, `sweep cancel {run_id}` ends it",
        )
    if not job.units:
        raise InvalidRunError(f"nothing is left of sweep `{run_id}`: what it asked for is measured or left out")
    identity, found, installed = drift_of(asked, session, python)
    if found and not allow_drift:
        raise InvalidRunError(
            f"what is left of sweep `{run_id}` would not be measured as the rest was: {'; '.join(found)}",
            hint="--allow-drift goes on all the same; else launch the sweep file anew",
        )
    drift = tuple(dict.fromkeys((*asked.job.drift, *found)))
    return dataclasses.replace(
        job, identity=identity, installed=installed, drift=drift, unit_deadline_s=session.host.deadline_s
    )


def drift_of(
    asked: Asked, session: HostSession, python: str
) -> tuple[tuple[PathIdentity, ...], tuple[str, ...], dict[str, str]]:
    """What lies under a sweep's paths on this host now, what is not as it was, and what is installed for its base.

    `python`: the interpreter that would go on with it.
    """
    spec, host = asked.record.spec, session.host
    request = IdentifyRequest(
        nonce=new_nonce(),
        root=host.root,
        paths=tuple(one.path for one in asked.job.identity),
        job_json=asked.job.base_json,
        python=python,
        environment=dict(host.environment),
    )
    now = identified(session, request)
    found = drifted(
        asked.job,
        now.paths,
        (spec.payload_sha256, session.payload_sha256),
        (spec.environment, dict(host.environment)),
        (spec.python, python),
        ((asked.job.installed, *measured_with(asked.job, asked.attempts)), now.installed),
    )
    return now.paths, found, now.installed


def measured_with(job: SweepJob, attempts: Sequence[SweepAttempt]) -> tuple[dict[str, str], ...]:
    """What was installed where something was measured, each once; not of units that have a server of their own."""
    own = {unit.unit_id for unit in job.units if "server_python" in json.loads(unit.changes_json)}
    found: list[dict[str, str]] = []
    for one in attempts:
        is_measured = any(outcome.end == "measured" for outcome in one.points)
        if is_measured and one.installed and one.unit_id not in own and one.installed not in found:
            found.append(one.installed)
    return tuple(found)
