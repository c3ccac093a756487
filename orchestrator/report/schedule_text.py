"""Schedules of a host as text: `schedule list`, `next`, `history`, and what was just made. Pure."""

from collections.abc import Mapping, Sequence

from orchestrator.report.moments import moment
from orchestrator.report.table import table
from remote_payload.schema.frames import ScheduleFrame
from remote_payload.schema.schedule import EngineAnswer, Occasion, Standing

CLOCKWORK = {"cron": "cron", "systemd": "the user's systemd"}


def made_text(host: str, answer: ScheduleFrame) -> str:
    """What was just made, and when it starts first."""
    (standing,) = answer.standings
    assert standing.schedule is not None
    first = standing.coming_local[0] if standing.coming_local else "never again"
    lines = [
        f"{standing.schedule_id}: `{standing.schedule.cron}` by {CLOCKWORK[standing.schedule.engine]} of {host}, "
        f"whose zone is meant ({answer.zone}); next: {first}",
        *_troubles(answer),
    ]
    return "\n".join(lines)


def list_text(host: str, answer: ScheduleFrame) -> str:
    """A row a schedule; below it everything that keeps one from running."""
    if not answer.standings:
        return "\n".join([f"no schedule on {host}", *_troubles(answer)])
    rows = [["schedule", "every", "by", "job", "next", "last", "times"], *map(_row, answer.standings)]
    return "\n".join([f"{host}, {answer.zone}", "", *table(rows), *_troubles(answer)])


def next_text(answer: ScheduleFrame) -> str:
    """The next times, a line each: the host's clock, UTC."""
    (standing,) = answer.standings
    if not standing.coming_unix_s:
        return standing.problem or "never again"
    rows = [["by the host's clock", "UTC"]]
    for local, unix_s in zip(standing.coming_local, standing.coming_unix_s, strict=True):
        rows.append([local, moment(unix_s)])
    return "\n".join([*table(rows), *_troubles(answer)])


def history_text(answer: ScheduleFrame) -> str:
    """What became of each time, oldest first; times in UTC, as in the runs' ids."""
    (standing,) = answer.standings
    if not standing.history:
        return "\n".join([standing.problem or "no time has passed yet", *_troubles(answer)])
    phases = {state.run_id: state.phase.replace("_", " ") for state in standing.runs}
    rows = [["due (UTC)", "what", "run", "its end", "why"]]
    rows += [_occasion(occasion, phases) for occasion in standing.history]
    return "\n".join([*table(rows), "", _counted(standing), *_troubles(answer)])


def _row(standing: Standing) -> list[str]:
    schedule = standing.schedule
    if schedule is None:
        return [standing.schedule_id, *["unknown"] * 4, "-", "-"]
    last = standing.history[-1] if standing.history else None
    told = "-" if last is None else f"{last.what} {moment(last.due_unix_s, zone='', unknown='')}".strip()
    coming = standing.coming_local[0] if standing.coming_local else "never again"
    return [
        standing.schedule_id,
        schedule.cron,
        schedule.engine,
        schedule.spec.job_kind,
        coming,
        told,
        _counted(standing),
    ]


def _counted(standing: Standing) -> str:
    going = sum(not run.is_terminal for run in standing.runs)
    told = [f"{count} {what.replace('_', ' ')}" for what, count in standing.counts.items() if what != "clock_step"]
    return ", ".join([*told, *([f"{going} on the way"] if going else [])]) or "none yet"


def _occasion(occasion: Occasion, phases: Mapping[str, str]) -> list[str]:
    due = moment(occasion.due_unix_s, zone="", unknown=moment(occasion.noted_unix_s, zone=""))
    if occasion.count > 1:
        due += f" .. {moment(occasion.until_unix_s, zone='')} ({occasion.count} times)"
    run_id = occasion.run_id or "-"
    return [due, occasion.what.replace("_", " "), run_id, phases.get(run_id, "-"), occasion.why or ""]


def _troubles(answer: ScheduleFrame) -> list[str]:
    """What keeps a schedule from running, each marked by `!`."""
    engines = {one.engine: one for one in answer.engines}
    used = {standing.schedule.engine for standing in answer.standings if standing.schedule is not None}
    lines = [f"! {_engine_words(engines[engine])}" for engine in sorted(used) if engine in engines]
    lines = [line for line in lines if line != "! "]
    for standing in answer.standings:
        if standing.installed is False:
            lines.append(
                f"! {standing.schedule_id}: its entry is gone from the host, so nothing starts it: `schedule rm` it "
                "and make it again"
            )
        if standing.problem:
            rm = "; `schedule rm` takes it away" if standing.schedule is None else ""
            lines.append(f"! {standing.schedule_id}: {standing.problem}{rm}")
    return ["", *lines] if lines else []


def _engine_words(one: EngineAnswer) -> str:
    """Empty where all is well."""
    if one.answer != "ok":
        return f"{one.engine} cannot be asked: {one.problem or one.answer}"
    if one.daemon is False:
        return f"{one.engine} does not run on this host: nothing starts until somebody starts it"
    if one.daemon is None:
        return f"whether {one.engine} runs cannot be seen by this user"
    return ""


def going_words(run_ids: Sequence[str]) -> str:
    """Which runs are not over."""
    return f"still on the way: {', '.join(run_ids)}"
