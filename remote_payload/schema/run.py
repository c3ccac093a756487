"""A run: its spec (what was asked), its state (where it is), its events and its manifest (what came out)."""

from typing import Literal

from remote_payload import rundir
from remote_payload.schema.record import SCHEMA_VERSION, Record, require, require_finite
from remote_payload.schema.slurm import SlurmJob, SlurmSettings
from remote_payload.schema.waiting import Waiting

RunPhase = Literal[
    "queued",
    "starting",
    "running",
    "succeeded",
    "failed",
    "killed",
    "out_of_memory",
    "timed_out",
    "cancelled",
    "lost",
]
TERMINAL_PHASES = frozenset({"succeeded", "failed", "killed", "out_of_memory", "timed_out", "cancelled", "lost"})
RUN_ID_PATTERN = rundir.RUN_ID_PATTERN


def require_run_id(run_id: str) -> None:
    """A run id is a file name and part of a command line: lower-case letters, digits, `.`, `_`, `-`, at most 100."""
    require(
        RUN_ID_PATTERN.fullmatch(run_id) is not None,
        f"run id must match {RUN_ID_PATTERN.pattern}, found: {run_id!r}",
    )


class Setting(Record):
    """Where one setting of the job came from: its key, its value as JSON text, and its source in words."""

    key: str
    value: str
    source: str
    """`default`, `jobs/standalone.toml`, `eagle3.toml [jobs.standalone]`, `--rows`, ..."""


class RunSpec(Record):
    """`spec.json`: written first, never changed. Holds names of secrets, never their values."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    job_kind: str
    job_json: str
    """The job record as JSON text; read with `job_from_json`."""
    settings: tuple[Setting, ...] = ()
    python: str
    """Interpreter that runs the worker."""
    payload_sha256: str
    environment: dict[str, str]
    """Environment variables of the worker beside the inherited ones (no secrets)."""
    secret_names: tuple[str, ...] = ()
    deadline_s: float | None = None
    """Longest run time of the worker, seconds; None = no limit."""
    launched_by: str
    """user@laptop, for people who share the server."""
    created_unix_s: float
    notify_command: tuple[str, ...] = ()
    """Program and arguments that the supervisor runs when the run is over, its ending as JSON on stdin; () = none."""
    told_as: str | None = None
    """What `notify_command` is told as the host: its name on the laptop that launched the run; None = its own name."""
    waiting: Waiting | None = None
    """What the run waits for on the host before its worker starts; None = nothing."""
    slurm: SlurmSettings | None = None
    """How the run is submitted to the host's Slurm; None = it runs on the host itself."""
    within: str | None = None
    """The hold whose devices it uses, and with which it is cancelled; None = it belongs to none."""

    def __post_init__(self) -> None:
        require_run_id(self.run_id)
        if self.within is not None:
            require_run_id(self.within)
            require(self.waiting is None, "a run within a hold waits for nothing of its own")
            require(self.slurm is None, "a run under Slurm is within no hold")
        require_finite(deadline_s=self.deadline_s, created_unix_s=self.created_unix_s)
        require(self.deadline_s is None or self.deadline_s > 0, "`deadline_s` must be positive")


class Failure(Record):
    """Why a worker gave up, written by the worker (`result/../failure.json`) or by the supervisor."""

    kind: Literal["checkpoint", "rows", "job", "machine", "server", "disk_full", "bug", "supervisor"]
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()


class ResourceUse(Record):
    """What the worker and its children used (getrusage, RUSAGE_CHILDREN of the supervisor)."""

    user_cpu_s: float
    system_cpu_s: float
    max_rss_bytes: int
    wall_s: float


class RunState(Record):
    """`state.json`: replaced atomically, `sequence` grows by one at every change."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    sequence: int
    phase: RunPhase
    supervisor_pid: int | None = None
    supervisor_start_ticks: int | None = None
    """Field 22 of /proc/PID/stat: with the pid and the boot id it names the process for good."""
    boot_id: str | None = None
    worker_pid: int | None = None
    started_unix_s: float | None = None
    finished_unix_s: float | None = None
    exit_code: int | None = None
    signal: str | None = None
    """Name of the signal that ended the worker, e.g. SIGKILL."""
    failure: Failure | None = None
    resource_use: ResourceUse | None = None
    survivors: tuple[int, ...] = ()
    """Pids that cancel could not kill."""
    note: str | None = None
    slurm: SlurmJob | None = None
    """The Slurm job that it is; pids are then those of the node it runs on."""

    def __post_init__(self) -> None:
        require_run_id(self.run_id)
        for pid in (self.supervisor_pid, self.worker_pid, *self.survivors):
            require(pid is None or 0 < pid < 2**31, f"a pid must be 1..{2**31 - 1}, found: {pid}")

    @property
    def is_terminal(self) -> bool:
        """Whether the run is over."""
        return self.phase in TERMINAL_PHASES


class Event(Record):
    """One line of `events.jsonl`."""

    time_unix_s: float
    kind: Literal["phase", "progress", "warning", "note"]
    name: str
    """Phase name, or what is counted, or the warning's id."""
    message: str = ""
    done: float | None = None
    total: float | None = None
    unit: str | None = None
    figures: dict[str, float] | None = None
    """What was seen so far, for programs: e.g. `output_tok_s`, `accept_length`, `left_s`; only what is known."""


class ManifestFile(Record):
    """One file of `result/`: its name relative to `result/` (POSIX, no `..`)."""

    name: str
    size_bytes: int
    sha256: str

    def __post_init__(self) -> None:
        parts = self.name.split("/")
        require(
            bool(self.name) and not self.name.startswith("/") and not any(part in ("", ".", "..") for part in parts),
            f"a result file's name must be relative and stay inside `result/`, found: {self.name!r}",
        )


class Manifest(Record):
    """`result/manifest.json`, written last of all."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    files: tuple[ManifestFile, ...]
