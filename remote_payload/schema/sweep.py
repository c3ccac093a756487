"""A sweep: many points, measured by units that are ordinary runs, one after the other, on the host.

A point is one configuration at one load; its id is the same in every block. A unit is one start: of a server with
all its loads, or of a job of another kind. A block measures every point once.
"""

import dataclasses
from typing import Literal

from remote_payload.schema.record import Record, require, require_finite
from remote_payload.schema.run import Failure, RunPhase, require_run_id

MOST_UNITS = 100_000
MOST_RETRIES = 100
LONGEST_SWEEP_ID = 70
"""Characters; a unit's run id is the sweep's with the unit and the attempt behind it."""
PointEnd = Literal["measured", "failed", "not_reached", "cancelled"]
"""`not_reached`: its unit ended before, and a further start takes it up unless the sweep was stopped."""


class SweepPoint(Record):
    """One configuration at one load."""

    point_id: str
    """Hash of the whole job at this point, the payload and the models' identity."""
    changes_json: str
    """What it sets otherwise than the base, a JSON object; `concurrency` or `request_rate` is its one load."""
    is_baseline: bool = False
    """Plain decoding, which the others are compared with."""


class SkippedPoint(Record):
    """A combination that is not run, and why."""

    changes_json: str
    reason: str


class SweepUnit(Record):
    """One start on the host."""

    unit_id: str
    block: int
    changes_json: str
    """Over the base, a JSON object; of a served benchmark with all loads of this start."""
    points: tuple[str, ...]
    """Ids: a served benchmark's loads in its job's order, else one."""
    adopt: str | None = None
    """A run of an earlier sweep that may still go on: it is waited for, and run anew only if it comes to nothing."""

    def __post_init__(self) -> None:
        require_run_id(self.unit_id)
        if self.adopt is not None:
            require_run_id(self.adopt)
        require(self.block >= 0, "`block` must not be negative")
        require(bool(self.points), "a unit has points")


class SweepDone(Record):
    """A point that an earlier sweep measured: it is not run again."""

    point_id: str
    block: int
    run_id: str


class FileContent(Record):
    """One file, by its name below the path; a hash of its size and of the content as far as it was read."""

    name: str
    digest: str


class PathContent(Record):
    """What lies under a path by content: the same on two hosts that have the same files, whenever these were copied."""

    digest: str
    """Of all files."""
    files: tuple[FileContent, ...] = ()
    """Empty where they are too many."""


class PathIdentity(Record):
    """What lies under a path on the host: a hash of names, sizes and times; None = nothing that can be read."""

    path: str
    digest: str | None
    content: PathContent | None = None
    """None = nobody asked, or it cannot be read."""


class SweepShare(Record):
    """Which part of a group this sweep is: several hosts measure the group's points, each its own share."""

    group_id: str
    number: int
    """From 1; shares that were made later, of what another left, go on counting."""
    hosts: tuple[str, ...]
    """Of the first shares, in their order, as the laptop that split the points named them."""
    host_class: str
    """What the machine of this share is, in words: figures of another class are never held against its own."""

    def __post_init__(self) -> None:
        require_run_id(self.group_id)
        require(self.number >= 1, f"`number` counts from 1, found: {self.number}")


class SweepJob(Record):
    """The units in their order, and what they are about."""

    kind: Literal["sweep"] = "sweep"
    base_json: str
    """The job that all units share, as JSON text."""
    units: tuple[SweepUnit, ...]
    points: tuple[SweepPoint, ...]
    skipped: tuple[SkippedPoint, ...] = ()
    retries: int = 0
    """How often a point that failed is tried again."""
    stop_after_failures: int | None = None
    """End the sweep after so many units in a row that measured nothing; None = never."""
    unit_deadline_s: float | None = None
    """Longest run time of one unit, seconds."""
    source: str = ""
    """The sweep file, as it was named."""
    identity: tuple[PathIdentity, ...] = ()
    """Of the models and data when the sweep was planned."""
    resumes: str | None = None
    """The sweep that this one goes on with."""
    done: tuple[SweepDone, ...] = ()
    """What it measured."""
    drift: tuple[str, ...] = ()
    """What was not as it had been for the sweep that this one goes on with, a sentence each; it was allowed."""
    installed: dict[str, str] = dataclasses.field(default_factory=dict)
    """Versions by package where this was planned to go on with another sweep; empty = it begins anew, or unknown."""
    confirms: str | None = None
    """The sweep whose best points this one measures afresh."""
    share: SweepShare | None = None
    """None = the whole sweep is this one host's."""

    def __post_init__(self) -> None:
        require_finite(unit_deadline_s=self.unit_deadline_s)
        require(len(self.units) <= MOST_UNITS, f"a sweep has at most {MOST_UNITS} units, found: {len(self.units)}")
        require(len({unit.unit_id for unit in self.units}) == len(self.units), "a unit's id must stand once")
        require(0 <= self.retries <= MOST_RETRIES, f"`retries` must be 0..{MOST_RETRIES}, found: {self.retries}")
        require(self.unit_deadline_s is None or self.unit_deadline_s > 0, "`unit_deadline_s` must be positive")
        stop = self.stop_after_failures
        require(stop is None or stop >= 1, f"`stop_after_failures` must be at least 1, found: {stop}")


class PointOutcome(Record):
    """How one point of an attempt ended."""

    point_id: str
    end: PointEnd


class SweepAttempt(Record):
    """One line of `result/units.jsonl`: an attempt at a unit, written at its start and again at its end."""

    unit_id: str
    attempt: int
    """0-based."""
    run_id: str
    block: int
    phase: RunPhase
    points: tuple[PointOutcome, ...]
    """Of the points that this attempt was for; while it runs `not_reached`."""
    failure: Failure | None = None
    started_unix_s: float
    finished_unix_s: float | None = None
    installed: dict[str, str] = dataclasses.field(default_factory=dict)
    """Versions by package, and of `python`, where it ran, as its end is told; empty = unknown, or it goes on."""

    def __post_init__(self) -> None:
        require_run_id(self.run_id)


class SweepRequest(Record):
    """`sweep`: every attempt so far, in frames of some hundreds, then the state of the sweep's own run."""

    nonce: str
    root: str
    run_id: str

    def __post_init__(self) -> None:
        require_run_id(self.run_id)


class IdentifyRequest(Record):
    """`identify`: what lies under these paths of the host, `~` is its home, and what is installed for a job there."""

    nonce: str
    root: str
    paths: tuple[str, ...] = ()
    job_json: str | None = None
    """A unit's job; None = what is installed is not asked."""
    python: str = "python3"
    """The interpreter that is to run it."""
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    content: bool = False
    """Whether the paths are told by their content as well, which reads some of every file."""
    whole: tuple[tuple[str, ...], ...] = ()
    """Files to be read to their last byte, as one text where there are several."""
    folders: tuple[str, ...] = ()
    """Models' folders to be told as a result tells them."""


class GatherRequest(Record):
    """`gather`: what these runs left, one after the other."""

    nonce: str
    root: str
    run_ids: tuple[str, ...]
    inline_limit_bytes: int = 1 << 20
    """Of each run; larger files are fetched another way."""

    def __post_init__(self) -> None:
        for run_id in self.run_ids:
            require_run_id(run_id)
