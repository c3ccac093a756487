"""Going on with a sweep, or confirming it: only where everything is as it was, unless drift is allowed."""

import dataclasses

from orchestrator.errors import ClaimedError, InvalidRunError
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.sweep.remaining import drifted
from orchestrator.sweep.software import measured_with
from orchestrator.sweep.standing import Progress
from orchestrator.sweeping.asking import Asked
from orchestrator.sweeping.identity import identified
from remote_payload.schema import IdentifyRequest, PathIdentity, SweepJob, job_from_json


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
    if job.confirms is not None:
        require_none_runs(run_id, session.name, asked.progress)
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


def require_none_runs(run_id: str, host: str, progress: Progress) -> None:
    """Raise ClaimedError while a start that outlived its sweep measures: who resumes waits for it, nobody else does."""
    runs = sorted({one.run_id or one.point_id for one in progress.standings if one.word == "running"})
    if runs:
        raise ClaimedError(
            f"a start of sweep `{run_id}` outlived it and still runs on {host}, beside which nothing is measured: "
            f"{', '.join(runs)}",
            hint=f"`eagle3-remote attach {runs[0]}` waits for it, `cancel {runs[0]}` ends it",
        )


def drift_of(
    asked: Asked, session: HostSession, python: str
) -> tuple[tuple[PathIdentity, ...], tuple[str, ...], dict[str, str]]:
    """What lies under a sweep's paths on this host now, what is not as it was, and what is installed for its base.

    `python`: the interpreter that would go on with it.
    """
    spec, host = asked.record.spec, session.host
    now = identified(session, question_of(session, asked.job.base_json, python, asked.job.identity))
    found = drifted(
        asked.job,
        now.paths,
        (spec.payload_sha256, session.payload_sha256),
        (spec.environment, dict(host.environment)),
        (spec.python, python),
        ((asked.job.installed, *measured_with(asked.job, asked.attempts)), now.installed),
    )
    return now.paths, found, now.installed


def installed_now(session: HostSession, job_json: str, python: str) -> dict[str, str]:
    """Versions by package where this host would run such a job with `python`; empty = nobody can tell."""
    return identified(session, question_of(session, job_json, python, ())).installed


def question_of(
    session: HostSession, job_json: str, python: str, identity: tuple[PathIdentity, ...]
) -> IdentifyRequest:
    """What is to be asked about a sweep's paths, and about what is installed for such a job."""
    enters = bool(getattr(job_from_json(job_json), "exec_prefix", ()))
    may_ask = session.host.scheduler is None or not enters  # `srun` on a login node would wait for a node of its own
    return IdentifyRequest(
        nonce=new_nonce(),
        root=session.host.root,
        paths=tuple(one.path for one in identity),
        job_json=job_json if may_ask else None,
        python=python,
        environment=dict(session.host.environment),
        content=any(one.content is not None for one in identity),
    )
