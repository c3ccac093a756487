"""`run.json`: one run as this laptop knows it."""

from remote_payload.schema import SCHEMA_VERSION, RunSpec, RunState, Setting
from remote_payload.schema.record import Record, require, require_finite


class RunHost(Record):
    """Where a run went."""

    name: str
    """As the user named it: a host of eagle3.toml, an ssh alias, `user@address:port`."""
    destination: str
    """What that meant when the run was launched: `user@address:port`."""
    root: str = "~/.eagle3-remote"
    """The tool's root on that host."""


class RunRecord(Record):
    """`run.json`: one run as this laptop knows it. Everything that was asked for stands in `spec`."""

    schema_version: int = SCHEMA_VERSION
    host: RunHost
    spec: RunSpec
    state: RunState | None = None
    """The final state, or the last one seen; None = begun here, no answer of the host yet."""
    state_seen_unix_s: float | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_finite(state_seen_unix_s=self.state_seen_unix_s)
        require(
            self.state is None or self.state.run_id == self.spec.run_id,
            "`state.run_id` must be the spec's run id",
        )

    @property
    def run_id(self) -> str:
        """The run's id, made by the laptop."""
        return self.spec.run_id

    @property
    def job_kind(self) -> str:
        """`standalone`, `selftest`."""
        return self.spec.job_kind

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Where each setting of the job came from."""
        return self.spec.settings

    @property
    def payload_sha256(self) -> str:
        """Which payload ran."""
        return self.spec.payload_sha256

    @property
    def launched_by(self) -> str:
        """user@laptop."""
        return self.spec.launched_by

    @property
    def created_unix_s(self) -> float:
        """When the laptop made the run id, by the laptop's clock."""
        return self.spec.created_unix_s

    @property
    def finished_unix_s(self) -> float | None:
        """When the run ended, by the host's clock; None = not over, or unknown."""
        return None if self.state is None else self.state.finished_unix_s

    @property
    def phase(self) -> str:
        """The state's phase; `unknown` while no state was seen."""
        return "unknown" if self.state is None else self.state.phase
