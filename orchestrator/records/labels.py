"""What is said about a run, in files of their own beside its record, which a process may be writing."""

from orchestrator.records.names import NAME_RULE, is_name
from remote_payload.schema import SCHEMA_VERSION
from remote_payload.schema.record import Record, require

MAX_NOTE = 4000


class RunLabels(Record):
    """`labels.json`: what people say."""

    schema_version: int = SCHEMA_VERSION
    tags: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        for tag in self.tags:
            require(is_name(tag), f"a tag must be {NAME_RULE}, found: {tag!r}")
        require(len(set(self.tags)) == len(self.tags), "a tag must stand once")
        require(len(self.note) <= MAX_NOTE, f"a note must be at most {MAX_NOTE} characters, found: {len(self.note)}")


class WayTold(Record):
    """One way of telling that a run is over, and what came of it."""

    way: str
    tries: int
    """How often this laptop saw the end and tried; the way itself may try again at once."""
    problem: str | None = None
    """Why it did not tell at last; None = it told, or is at it."""
    is_open: bool = False
    """Whether it is tried again when the end is seen next."""


class RunTold(Record):
    """`told.json`: who was told of the run's end by this laptop."""

    told_unix_s: float
    ways: tuple[WayTold, ...] = ()


class RunVerdict(Record):
    """`verdict.json`: what a review said, so that a listing need not judge again; only ever a copy."""

    schema_version: int = SCHEMA_VERSION
    manifest_sha256: str
    """Of which result: the hash of its manifest. Of another result it says nothing."""
    verdict: str
