"""What a run or a sweep executes, in full: the commands, the settings and where each came from; nothing is guessed."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.records import RunRecord
from orchestrator.report.head import labelled
from orchestrator.sweep.points import in_words, point_words
from remote_payload.schema import RunSpec, SweepJob, SweepUnit, job_from_json, job_of_unit
from remote_payload.schema.bench import ServerFacts

ISOLATED = ("selftest", "sweep", "hold")
"""Kinds of jobs that need no installed packages (`remote_payload/spawn.py`)."""


Servers = Mapping[str, Sequence[ServerFacts]]
"""By the run that started them: the run itself, or those of a sweep's units."""


def explain_text(record: RunRecord, job: SweepJob | None, servers: Servers, width: int) -> str:
    """Everything that is executed for the run; of a sweep every unit in its order, by what differs from the base.

    Of runs that came home the command of each server stands there as it was started.
    """
    told = explain_json(record, job, servers)
    spec = record.spec
    lines = labelled(
        [
            ("run", f"{spec.run_id}: {spec.job_kind}, {record.phase}"),
            ("host", f"{record.host.name} ({record.host.destination})"),
            ("command", told["command"]),
            ("in", told["folder"]),
            ("payload", spec.payload_sha256),
            ("environment", " ".join(f"{key}={value}" for key, value in spec.environment.items()) or "as inherited"),
            ("secrets", ", ".join(spec.secret_names) or "none"),
            ("deadline", "none" if spec.deadline_s is None else f"{spec.deadline_s:g} s"),
            *([] if spec.slurm is None else [("slurm", _submission(spec))]),
        ],
        width,
    )
    for server in servers.get(spec.run_id, ()):
        lines += ["", f"Server {server.start} ({server.side}), as it was started:", f"  {shlex.join(server.argv)}"]
    lines += ["", "Settings of every unit:" if job is not None else "Settings:"]
    lines += [f"  {one.key} = {one.value}  ({one.source})" for one in spec.settings]
    return "\n".join([*lines, *([] if job is None else _units(record.run_id, job, told["units"]))])


def _submission(spec: RunSpec) -> str:
    """What the run's batch job asks of Slurm, beside what is this tool's own."""
    asked = dataclasses.asdict(spec.slurm) if spec.slurm is not None else {}
    named = ("partition", "gres", "account", "qos", "time", "cpus", "mem", "array_limit", "signal_s")
    words = [f"{name}={asked[name]}" for name in named if asked.get(name) is not None]
    if "gres=" not in " ".join(words) and spec.waiting is not None and spec.waiting.gpus:
        words.append(f"gres=gpu:{spec.waiting.gpus}")
    return " ".join([*words, *asked.get("options", ())])


def _units(run_id: str, job: SweepJob, units: list[dict[str, Any]]) -> list[str]:
    words = {point.point_id: point_words(point) for point in job.points}
    lines = ["", f"Units, in this order; attempt 0 of each is the run {run_id}.UNIT.0:"]
    for unit in units:
        settings = " ".join(f"{key}={json.dumps(value)}" for key, value in unit["settings"].items())
        adopted = f", waits for {unit['adopt']} first" if unit["adopt"] else ""
        lines.append(f"  {unit['unit_id']}  block {unit['block']}{adopted}: {settings or 'the base as it is'}")
        lines += [f"         {point}  {words.get(point, '')}" for point in unit["points"]]
        for unit_run, started in unit["servers"].items():
            lines += [f"         {unit_run} started: {shlex.join(one['argv'])}" for one in started]
    if job_from_json(job.base_json).kind == "bench" and not all(unit["servers"] for unit in units):
        lines += ["", "A start's server commands stand here once it is at home: `sweep collect`."]
    if job.skipped:
        lines += ["", "Skipped:"]
        lines += [f"  {in_words(json.loads(one.changes_json))}: {one.reason}" for one in job.skipped]
    return lines


def explain_json(record: RunRecord, job: SweepJob | None, servers: Servers) -> dict[str, Any]:
    """The same as values; of a sweep each unit with its whole job."""
    spec = record.spec
    root = record.host.root
    told: dict[str, Any] = {
        "run_id": spec.run_id,
        "job_kind": spec.job_kind,
        "host": record.host.name,
        "phase": record.phase,
        "command": shlex.join(_command(spec, root)),
        "folder": f"{root}/runs/{spec.run_id}",
        "payload_sha256": spec.payload_sha256,
        "environment": dict(spec.environment),
        "secret_names": list(spec.secret_names),
        "deadline_s": spec.deadline_s,
        "slurm": None if spec.slurm is None else dataclasses.asdict(spec.slurm),
        "servers": _started(servers.get(spec.run_id, ())),
        "settings": [{"key": one.key, "value": json.loads(one.value), "source": one.source} for one in spec.settings],
    }
    if job is None:
        return {**told, "job": json.loads(spec.job_json)}
    return {
        **told,
        "retries": job.retries,
        "unit_deadline_s": job.unit_deadline_s,
        "skipped": [{"settings": json.loads(one.changes_json), "reason": one.reason} for one in job.skipped],
        "units": [_unit_json(spec.run_id, job, unit, servers) for unit in job.units],
    }


def _unit_json(sweep_id: str, job: SweepJob, unit: SweepUnit, servers: Servers) -> dict[str, Any]:
    return {
        "unit_id": unit.unit_id,
        "block": unit.block,
        "points": list(unit.points),
        "adopt": unit.adopt,
        "settings": json.loads(unit.changes_json),
        "job": job_of_unit(job, unit).__dict__,
        "servers": {
            run_id: _started(some)
            for run_id, some in servers.items()
            if run_id == unit.adopt or run_id.startswith(f"{sweep_id}.{unit.unit_id}.")
        },
    }


def _started(servers: Sequence[ServerFacts]) -> list[dict[str, Any]]:
    return [{"start": one.start, "side": one.side, "argv": list(one.argv)} for one in servers]


def _command(spec: RunSpec, root: str) -> tuple[str, ...]:
    """As `remote_payload/spawn.py` starts the worker."""
    isolation = ("-I", "-S") if spec.job_kind in ISOLATED else ()
    payload = f"{root}/payloads/{spec.payload_sha256}.pyz"
    return (spec.python, *isolation, "-u", payload, "work", f"{root}/runs/{spec.run_id}")
