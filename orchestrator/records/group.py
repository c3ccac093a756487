"""`groups/<id>.json`: a sweep over several hosts as this laptop knows it - who has which share."""

from remote_payload.schema import SCHEMA_VERSION, Setting
from remote_payload.schema.record import Record, require
from remote_payload.schema.run import require_run_id


class GroupShare(Record):
    """One share: an ordinary sweep of its host."""

    share_id: str
    """The sweep's run id there."""
    number: int
    host: str
    """As this laptop names it."""
    destination: str
    place: str | None = None
    """What tells the host's root from every other, whatever name or address leads there; None = nobody asked."""
    host_class: str
    job_json: str
    """What it measures, as it is launched."""
    settings: tuple[Setting, ...] = ()
    is_launched: bool = False
    """Whether it may have reached its host; written down before it is launched, and taken back where it certainly
    did not."""
    is_hearsay: bool = False
    """No host said that it has it: another was told of it before it was launched."""
    is_dead: bool = False
    """The user said so of its host; it counts for nothing once the host answers again."""

    def __post_init__(self) -> None:
        require_run_id(self.share_id)


class SweepGroup(Record):
    """Written before anything is launched, so that the points are split once, whatever ends this laptop meanwhile."""

    schema_version: int = SCHEMA_VERSION
    group_id: str
    asked_sha256: str | None = None
    """Of the points that were asked for; None = put together from what the hosts told."""
    source: str = ""
    created_unix_s: float
    shares: tuple[GroupShare, ...]
    missing: tuple[str, ...] = ()
    """First shares that no host told of, when this was put together; a sentence each."""

    def __post_init__(self) -> None:
        require_run_id(self.group_id)
        require(bool(self.shares), "a group has shares")

    @property
    def hosts(self) -> tuple[str, ...]:
        """Each once, in the order of the shares."""
        return tuple(dict.fromkeys(share.host for share in self.shares))
