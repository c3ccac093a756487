"""What the user asked for, and the run it becomes: its id, its spec, its record."""

import dataclasses
import getpass
import json
import os
import platform
import secrets
import time
from dataclasses import dataclass
from typing import Any

from orchestrator.config import HostConfig
from orchestrator.errors import ClaimedError, ConfigError, UsageError
from orchestrator.jobfile import PlannedJob
from orchestrator.records import RunHost, RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.secret_settings import require_no_secret_of_host
from remote_payload.schema import RunSpec, Setting, to_json
from remote_payload.schema.waiting import Waiting

OF_OTHERS = ("sweep", "hold")
"""Kinds of runs that last as long as others do."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the user asked for."""

    planned: PlannedJob
    run_id: str
    deadline_s: float | None = None
    """None = the host's; a sweep has none, the host's is for each of its units."""
    detach: bool = False
    fresh_python: bool = False
    """Look at the host's interpreters again instead of trusting the one that was found before."""
    waiting: Waiting | None = None
    """What the run waits for on the host; None = nothing."""
    within: str | None = None
    """The hold whose GPUs it uses; None = it belongs to none."""
    until_running: bool = False
    """Follow it until it waits for nothing any more and its worker runs."""


def new_run_id(kind: str, now: time.struct_time) -> str:
    """e.g. `standalone-20261129-2145-x7k2qa`: sorts by time, and two laptops never make the same one."""
    return f"{kind}-{time.strftime('%Y%m%d-%H%M', now)}-{secrets.token_hex(3)}"


def record_of(order: Order, session: HostSession, python: str) -> RunRecord:
    """The run as it is asked for: its spec is final, its state unknown."""
    planned = at_host(order.planned, session.name, session.host)
    notify_command = () if planned.job.kind == "hold" else session.host.notify_command
    spec = RunSpec(
        run_id=order.run_id,
        job_kind=planned.job.kind,
        job_json=to_json(planned.job),
        settings=planned.settings,
        python=python,
        payload_sha256=session.payload_sha256,
        environment=dict(session.host.environment),
        secret_names=() if planned.job.kind == "hold" else tuple(session.host.secrets),
        deadline_s=order.deadline_s or (None if planned.job.kind in OF_OTHERS else session.host.deadline_s),
        launched_by=f"{getpass.getuser()}@{platform.node()}",
        created_unix_s=time.time(),
        notify_command=notify_command,
        told_as=session.name if notify_command else None,
        waiting=_waiting_at(order, session),
        slurm=session.host.submission,
        within=order.within,
    )
    host = RunHost(name=session.name, destination=session.destination, root=session.host.root)
    return RunRecord(host=host, spec=spec)


def _waiting_at(order: Order, session: HostSession) -> Waiting | None:
    """What it waits for. Raises UsageError for what this tool's own queue of GPUs can do and Slurm's cannot."""
    waiting = order.waiting
    if waiting is None or session.host.scheduler is None:
        return waiting
    if waiting.min_free_bytes is not None or waiting.longest_s is not None:
        raise UsageError(
            f"--min-free and --wait are about this tool's own queue; on `{session.name}` Slurm hands out the GPUs",
            hint="say which kind in [hosts.NAME.slurm]: `gres`, `partition`; `cancel` ends a run that waits too long",
        )
    return waiting


def at_host(planned: PlannedJob, name: str, host: HostConfig) -> PlannedJob:
    """The job with what the host's configuration adds: how its servers are started, unless the job says so itself.

    Raises ConfigError for a secret in what the host's configuration would have written down.
    """
    require_no_secret_of_host(name, host.environment, host.exec_prefix, host.notify_command)
    job = planned.job
    if not host.exec_prefix or getattr(job, "exec_prefix", None) != ():  # kinds that start no server have no such key
        return planned
    source = f"eagle3.toml [hosts.{name}]"
    told = Setting(key="exec_prefix", value=json.dumps(list(host.exec_prefix)), source=source)
    others = tuple(setting for setting in planned.settings if setting.key != told.key)
    changes: dict[str, Any] = {"exec_prefix": host.exec_prefix}
    return PlannedJob(job=dataclasses.replace(job, **changes), settings=(*others, told))


def again(known: RunRecord, asked: RunRecord) -> RunRecord:
    """The known run, when the same job is asked for again under its id on its host.

    Raises ClaimedError where anything but the moment of asking differs.
    """
    same_spec = dataclasses.replace(asked.spec, created_unix_s=known.spec.created_unix_s) == known.spec
    same_place = (known.host.destination, known.host.root) == (asked.host.destination, asked.host.root)
    if same_spec and same_place:
        return known
    what = "on another host" if same_spec else "with other settings, another interpreter or another version of the tool"
    raise ClaimedError(
        f"this laptop launched a run of this id {what}: {known.run_id}",
        hint=f"take another --run-id, or attach with: eagle3-remote attach {known.run_id} --host {known.host.name}",
    )


def secret_values(host: HostConfig) -> dict[str, str]:
    """The values of the host's secrets, from this laptop's environment. Raises ConfigError naming those not set."""
    missing = [name for name in host.secrets if name not in os.environ]
    if missing:
        raise ConfigError(
            f"the host's `secrets` name variables that are not set on this laptop: {', '.join(missing)}",
            hint="export them, or take them out of eagle3.toml",
        )
    return {name: os.environ[name] for name in host.secrets}
