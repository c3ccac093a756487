"""The two engines side by side: which answers, which is taken, and what each holds of this root."""

from pathlib import Path
from types import ModuleType

from remote_payload.refusal import Refusal
from remote_payload.schedule import crontab, timer
from remote_payload.schedule.calls import EngineError
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schema.schedule import Engine, EngineAnswer, Schedule

ENGINES: dict[Engine, ModuleType] = {"cron": crontab, "systemd": timer}


def look_at_engines() -> tuple[EngineAnswer, ...]:
    """How each answers now."""
    return tuple(module.look() for module in ENGINES.values())


def choose(asked: Engine | None, answers: tuple[EngineAnswer, ...]) -> Engine:
    """The one that was asked for if it answers; else the first that does, one whose clockwork runs before others.

    Raises Refusal, saying how each answered.
    """
    usable = [one for one in answers if one.answer == "ok" and asked in (None, one.engine)]
    if usable:
        return max(usable, key=lambda one: (one.daemon is True, one.daemon is None)).engine
    told = "; ".join(f"{one.engine}: {one.problem or one.answer}" for one in answers if asked in (None, one.engine))
    hint = None if asked is None else "--engine names the other one; without it the one is taken that answers"
    raise Refusal("schedule_refused", f"nothing on this host can launch at a time: {told}", hint)


def install(folder: ScheduleDir, schedule: Schedule) -> None:
    """Hand the schedule to its engine. Raises Refusal."""
    try:
        ENGINES[schedule.engine].install(folder, schedule)
    except EngineError as error:
        raise Refusal("schedule_refused", f"{schedule.engine} does not take the schedule: {error.problem}") from None


def _held(module: ModuleType, root: Path) -> set[str] | None:
    try:
        return set(module.entries(root))
    except EngineError:
        return None


def remove(folder: ScheduleDir, known: Engine | None) -> bool:
    """Take its entries out of every engine; whether there was any.

    `known`: the one that has it, None where nobody knows. Raises Refusal where one that may have it does not let go.
    """
    gone = [_let_go(name, folder, known) for name in ENGINES]
    return any(gone)


def _let_go(name: Engine, folder: ScheduleDir, known: Engine | None) -> bool:
    try:
        if folder.schedule_id not in ENGINES[name].entries(folder.root):
            return False
        ENGINES[name].remove(folder)
    except EngineError as error:
        if known not in (None, name) or (known is None and error.answer in ("missing", "denied")):
            return False  # who may not use it has nothing in it
        raise Refusal("schedule_refused", f"{name} does not let go of the schedule: {error.problem}") from None
    return True


def all_entries(root: Path) -> dict[Engine, set[str] | None]:
    """By engine, the ids that it has; None where it does not answer."""
    return {name: _held(module, root) for name, module in ENGINES.items()}
