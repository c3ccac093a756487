"""A baseline: a name, and everything it ever meant."""

from orchestrator.records.measurement import Fact
from orchestrator.records.names import NAME_RULE, is_name
from remote_payload.rundir import RUN_ID_PATTERN
from remote_payload.schema import SCHEMA_VERSION
from remote_payload.schema.record import Record, require, require_finite


class BaselineNumber(Record):
    """One typed number, e.g. output_throughput_tok_s = 90 tok/s."""

    metric: str
    value: float
    unit: str | None = None

    def __post_init__(self) -> None:
        require(is_name(self.metric), f"a metric's name must be {NAME_RULE}, found: {self.metric!r}")
        require_finite(value=self.value)


class BaselineEntry(Record):
    """What a baseline meant from `set_at_unix_s` on: a run, or typed numbers; never both."""

    run_id: str | None = None
    record_sha256: str | None = None
    """Hash of `records/RUN_ID.json`, the run's measurements as promoted; None = set before there were records."""
    numbers: tuple[BaselineNumber, ...] = ()
    load: tuple[Fact, ...] = ()
    """What typed numbers were measured at, e.g. `concurrency` = `1`; empty = nobody said."""
    source: str = ""
    """Who set it (user@laptop); for typed numbers where they came from, where that was said."""
    note: str = ""
    set_at_unix_s: float

    def __post_init__(self) -> None:
        require_finite(set_at_unix_s=self.set_at_unix_s)
        require((self.run_id is None) == bool(self.numbers), "a baseline is either a run or typed numbers")
        require(self.record_sha256 is None or self.run_id is not None, "`record_sha256` is of a run's record")
        id_fits = self.run_id is None or RUN_ID_PATTERN.fullmatch(self.run_id) is not None  # it becomes a file's name
        require(id_fits, f"`run_id`: expected a run id ({RUN_ID_PATTERN.pattern}), found: {self.run_id!r}")
        require(not self.load or bool(self.numbers), "a load is of typed numbers: a run tells its own")
        metrics = [number.metric for number in self.numbers]
        require(len(set(metrics)) == len(metrics), "a metric must stand once")


class Baseline(Record):
    """`baselines/NAME.json`: a name and everything it ever meant, oldest first; the last entry holds."""

    schema_version: int = SCHEMA_VERSION
    name: str
    history: tuple[BaselineEntry, ...]

    def __post_init__(self) -> None:
        require(is_name(self.name), f"a baseline's name must be {NAME_RULE}, found: {self.name!r}")
        require(bool(self.history), "`history` must not be empty")

    @property
    def current(self) -> BaselineEntry:
        """What the name means now."""
        return self.history[-1]
