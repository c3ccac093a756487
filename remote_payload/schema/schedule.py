"""Schedules: what the host keeps of each, what became of its times, and what the laptop asks and is told."""

import dataclasses
from typing import Literal

from remote_payload.schema.record import SCHEMA_VERSION, Record, require, require_finite
from remote_payload.schema.run import RunSpec, RunState, require_run_id

LONGEST_ID = 50
"""Characters of a schedule's id; a run's has its time behind it, and a sweep's units theirs behind that."""
MOST_COMING = 1000
"""Times to come that are told at once."""
Engine = Literal["cron", "systemd"]
"""Whose clockwork: the user's crontab, or a timer of the user's systemd."""


def require_schedule_id(schedule_id: str) -> None:
    """As a run's id, shorter. Raises ValueError."""
    require_run_id(schedule_id)
    require(
        len(schedule_id) <= LONGEST_ID, f"a schedule's id has at most {LONGEST_ID} characters, found: {schedule_id}"
    )


class Schedule(Record):
    """`schedule.json`: written once. Holds no secret: cron could not be handed any."""

    schema_version: int = SCHEMA_VERSION
    schedule_id: str
    cron: str
    """As it was asked for; the host's zone is meant."""
    engine: Engine
    overlap: bool = False
    """Launch also while the run before is still going on."""
    spec: RunSpec
    """Of every run, but for its id and moment."""
    host: str
    """The host's own name: a home that hosts share shows a schedule on each, and one of them has its entry."""
    zone: str
    """The host's when it was made, in words, e.g. `CET, UTC+01:00`."""
    path: str
    """PATH of the login that made it; cron's own has /usr/bin and /bin alone."""
    slurm: dict[str, str] = dataclasses.field(default_factory=dict)
    """What Slurm's own tools read of the login's environment: which cluster, which of its settings."""
    python: str
    """Interpreter that launches."""
    created_unix_s: float
    """By the host's clock."""

    def __post_init__(self) -> None:
        from remote_payload.schema.cron import parse_cron  # noqa: PLC0415 - every verb imports this module

        require_schedule_id(self.schedule_id)
        require_finite(created_unix_s=self.created_unix_s)
        parse_cron(self.cron)
        require(not self.spec.secret_names, "a schedule cannot hold secrets")


class Occasion(Record):
    """One line of `history.jsonl`: what became of a time, or of a row of times."""

    what: Literal["fired", "skipped", "missed", "failed", "clock_step"]
    """`failed`: it was due, and its run could not be launched."""
    due_unix_s: int | None = None
    """The time; of `missed` the first of them."""
    until_unix_s: int | None = None
    """Of `missed`: the last of them."""
    count: int = 1
    run_id: str | None = None
    why: str | None = None
    noted_unix_s: float
    boot_id: str | None = None
    boot_offset_s: float
    """The host's clock less the time since its boot, which nobody sets: where it jumps, the clock was set."""

    def __post_init__(self) -> None:
        require_finite(noted_unix_s=self.noted_unix_s, boot_offset_s=self.boot_offset_s)
        require(self.count >= 1, f"`count` must be at least 1, found: {self.count}")


class ScheduleRequest(Record):
    """`schedule`: make one, take one away, or tell of one or all."""

    nonce: str
    root: str
    action: Literal["add", "remove", "show"]
    schedule_id: str | None = None
    """None = all, to show."""
    cron: str | None = None
    engine: Engine | None = None
    """None = cron where it answers, else systemd where that does."""
    overlap: bool = False
    spec: RunSpec | None = None
    coming: int = 1
    """So many of the next times are told."""
    history: bool = False
    """Every line of it, not just the last."""

    def __post_init__(self) -> None:
        if self.schedule_id is not None:
            require_schedule_id(self.schedule_id)
        require(self.action == "show" or self.schedule_id is not None, "`schedule_id` is missing")
        require(self.action != "add" or (self.cron and self.spec), "`cron` and `spec` belong to `add`")  # type: ignore[arg-type]
        require(0 <= self.coming <= MOST_COMING, f"`coming` must be 0..{MOST_COMING}, found: {self.coming}")


class EngineAnswer(Record):
    """What an engine of the host said when it was asked."""

    engine: Engine
    answer: Literal["ok", "missing", "denied", "hung", "failed"]
    problem: str | None = None
    daemon: bool | None = None
    """Whether the program that looks at the clock runs; None = cannot be told."""


class Standing(Record):
    """A schedule as it stands on its host."""

    schedule_id: str
    schedule: Schedule | None = None
    """None = its folder is gone or cannot be read, and only the engine's entry is left."""
    installed: bool | None = None
    """Whether the engine has its entry; None = the engine does not answer."""
    problem: str | None = None
    coming_unix_s: tuple[int, ...] = ()
    coming_local: tuple[str, ...] = ()
    """The same by the host's clock and zone."""
    runs: tuple[RunState, ...] = ()
    """Those that are still on the host, oldest first."""
    history: tuple[Occasion, ...] = ()
    """All of it or the last line."""
    counts: dict[str, int]
    """Times by what became of them."""
