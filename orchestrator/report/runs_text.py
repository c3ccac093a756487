"""Lists of runs and what was done to them, as text and as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.report.folded import diagnosis_of, sweep_of, unit_words
from orchestrator.report.moments import moment
from orchestrator.report.shown import visible
from orchestrator.report.table import table

if TYPE_CHECKING:  # `runs list` starts without the records
    from orchestrator.store import RunSummary
    from remote_payload.schema import CancelAnswer, RunState, StatusAnswer


def runs_text(
    runs: Sequence[RunSummary], of: int | None = None, *, units: bool = False, limit: int | None = None
) -> str:
    """A line a run; runs that cannot be read are named at the end with the reason. `of` so many these were chosen.

    A sweep that is listed is one line with its units counted, unless `units`; at most `limit` lines.
    """
    sweeps = {run.run_id for run in runs if run.job_kind == "sweep" and not units}
    words = unit_words({run.run_id: run.phase for run in runs}, sweeps)
    runs = [run for run in runs if sweep_of(run.run_id, sweeps) is None][:limit]
    readable = [run for run in runs if run.problem is None]
    lines = [] if runs else [f"none of {of} runs fits" if of else "no runs on this laptop yet"]
    if readable:
        tagged = any(run.tags for run in readable)
        head = ["run", "job", "host", "state", "created (UTC)", "result", "tags"]
        lines += table([(head if tagged else head[:-1]), *(_run_cells(run, words, tagged=tagged) for run in readable)])
    lines += [visible(f"unreadable: {run.run_id}: {run.problem}", "") for run in runs if run.problem is not None]
    return "\n".join(lines)


def runs_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """The same as values."""
    return {"runs": [dataclasses.asdict(run) for run in runs]}


def status_text(answer: StatusAnswer, host_name: str, *, units: bool = False) -> str:
    """The states of runs as their host tells them; a sweep is one line with its units counted, unless `units`."""
    lines = []
    sweeps = {spec.run_id for spec in answer.specs if spec.job_kind == "sweep" and not units}
    words = unit_words({state.run_id: state.phase for state in answer.states}, sweeps)
    if not answer.states and not answer.unreadable:
        lines.append(f"no runs on {host_name}")
    if answer.states:
        head = ["run", "state", "started (UTC)", "ended (UTC)", "heartbeat", "note"]
        pairs = zip(answer.states, answer.heartbeat_ages_s, strict=True)
        shown = [(state, age) for state, age in pairs if sweep_of(state.run_id, sweeps) is None]
        told = {sweep_of(state.run_id, sweeps) for state in answer.states}  # asked of one run, a host tells of no unit
        words = {run_id: text for run_id, text in words.items() if run_id in told}
        lines += table([head, *(_state_cells(state, age, words) for state, age in shown)])
    return "\n".join([*lines, *(f"unreadable: {name}" for name in answer.unreadable)])


def status_json(answer: StatusAnswer, host_name: str) -> dict[str, Any]:
    """The same as values."""
    return {"host": host_name, **dataclasses.asdict(answer)}


def cancel_text(answer: CancelAnswer) -> str:
    """What cancel did."""
    run, phase = answer.state.run_id, answer.state.phase
    words = [f"was over before: {phase}" if answer.was_terminal else phase]
    if answer.ended:
        words.append(f"ended what was left of it, processes: {', '.join(map(str, answer.ended))}")
    if answer.survivors:
        words.append(f"could not be killed: {', '.join(map(str, answer.survivors))}")
    elif answer.unproved is not None:
        words.append(f"whether anything of it is left cannot be told: {answer.unproved}")
    elif not answer.was_terminal or answer.ended:
        words.append(f"nothing of it is left on the {'host' if answer.state.slurm is None else 'cluster'}")
    return f"{run}: {'; '.join(words)}"


def cancel_json(answer: CancelAnswer) -> dict[str, Any]:
    """The same as values."""
    return dataclasses.asdict(answer)


def _run_cells(run: RunSummary, units: Mapping[str, str], *, tagged: bool) -> list[str]:
    """The result is told by its verdict, once somebody looked at it; a sweep's by its units."""
    created = _moment(run.created_unix_s)
    diagnosis = diagnosis_of(run.run_id) if run.job_kind == "hold" else None
    held = None if diagnosis is None else f"GPUs of {diagnosis}"
    result = units.get(run.run_id) or held or run.verdict_word or ("yes" if run.has_result else "no")
    cells = [run.run_id, run.job_kind or "", run.host or "", run.phase, created, result]
    return [*cells, " ".join(run.tags)] if tagged else cells


def _state_cells(state: RunState, heartbeat_age_s: float | None, units: Mapping[str, str]) -> list[str]:
    heartbeat = "" if state.is_terminal else "none" if heartbeat_age_s is None else f"{heartbeat_age_s:.0f} s ago"
    failure = state.failure.message.splitlines()[0] if state.failure and state.failure.message else ""
    note = failure or state.note or ""  # what it said while it waited is over with its failure
    note = "; ".join(filter(None, (units.get(state.run_id), note)))
    return [
        state.run_id,
        state.phase,
        _moment(state.started_unix_s),
        _moment(state.finished_unix_s),
        heartbeat,
        note,
    ]


def _moment(unix_s: float | None) -> str:
    return moment(unix_s, zone="", unknown="-")
