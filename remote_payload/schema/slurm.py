"""Slurm: what a host's table says of how to submit, which job a run is, and what Slurm is like there."""

import re

from remote_payload.schema.record import Record, require

MIN_POLL_S = 1.0
_TIME = re.compile(r"\d+(:\d{2}){0,2}|\d+-\d+(:\d{2}){0,2}|UNLIMITED|INFINITE")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:,/@=+\[\]-]*")
_MEMORY = re.compile(r"\d+[KMGT]?")
_OPTION = re.compile(r"--([a-z][a-z0-9-]*)(=.*)?", re.DOTALL)
JOB_ID = re.compile(r"\d+(_\d+)?")

OURS = (
    "array", "begin", "chdir", "clusters", "cpus-per-task", "dependency", "error", "export", "export-file", "gid",
    "help", "hold", "input", "job-name", "kill-on-invalid-dep", "nodes", "ntasks", "open-mode", "output", "parsable",
    "signal", "test-only", "uid", "usage", "version", "wait", "wrap",
)  # fmt: skip
"""Options of sbatch that are ours to set, or that would keep a run from running as it must."""


class SlurmSettings(Record):
    """`[hosts.NAME.slurm]`: how runs are submitted there. What is None is left to Slurm's own defaults."""

    partition: str | None = None
    gres: str | None = None
    """e.g. `gpu:h200:2`; None = `gpu:N` where the run asks for N GPUs."""
    account: str | None = None
    qos: str | None = None
    time: str | None = None
    """Longest run time in one of Slurm's forms: `30` (minutes), `2:30:00`, `1-12:00:00`."""
    cpus: int | None = None
    """CPUs of the run."""
    mem: str | None = None
    """Memory of the run, `64G`."""
    signal_s: int = 120
    """How early before the time limit the run is ended, so that what it measured is kept, seconds."""
    array_limit: int | None = None
    """How many units of a sweep run at the same time; None = as many as Slurm lets."""
    poll_s: float = 30.0
    """How often Slurm is asked, for all runs of the host at once, seconds."""
    answer_s: float = 20.0
    """How long one of Slurm's tools may take to answer, seconds."""
    options: tuple[str, ...] = ()
    """Further options of sbatch, each a word: `--constraint=h200`, `--exclusive`."""

    def __post_init__(self) -> None:
        for key in ("partition", "gres", "account", "qos"):
            value = getattr(self, key)
            named = value is None or _WORD.fullmatch(value) is not None
            require(named, f"`slurm.{key}` must be a word as Slurm takes it, found: {value!r}")
        times = "`slurm.time` must be minutes, `HH:MM:SS` or `D-HH:MM:SS`"
        require(self.time is None or _TIME.fullmatch(self.time) is not None, f"{times}, found: {self.time!r}")
        limit_s = None if self.time is None else seconds_of(self.time)
        early = limit_s is None or limit_s > self.signal_s
        require(early, f"`slurm.time` must be longer than `slurm.signal_s`, {self.signal_s} s, found: {self.time!r}")
        memory = self.mem is None or _MEMORY.fullmatch(self.mem) is not None
        require(memory, f"`slurm.mem` must be a size like `64G`, found: {self.mem!r}")
        for key in ("cpus", "array_limit"):
            number = getattr(self, key)
            require(number is None or number >= 1, f"`slurm.{key}` must be at least 1, found: {number}")
        require(10 <= self.signal_s <= 65535, f"`slurm.signal_s` must be 10..65535, found: {self.signal_s}")
        polite = MIN_POLL_S <= self.poll_s <= 3600
        require(polite, f"`slurm.poll_s` must be {MIN_POLL_S:g}..3600, found: {self.poll_s}")
        # The laptop waits a minute for an answer.
        require(1 <= self.answer_s <= 25, f"`slurm.answer_s` must be 1..25, found: {self.answer_s}")
        for word in self.options:
            problem = problem_of(word)
            require(problem is None, f"`slurm.options`: {problem}, found: {word!r}")


def seconds_of(limit: str) -> float | None:
    """A time limit in seconds: minutes, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`, `D-HH:MM:SS`; None = no limit."""
    if not limit[0].isdigit():
        return None
    days, _, rest = limit.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    weights = (3600, 60, 1) if days else {1: (60,), 2: (60, 1), 3: (3600, 60, 1)}[len(parts)]
    return 86400.0 * int(days or 0) + sum(part * weight for part, weight in zip(parts, weights, strict=False))


def problem_of(word: str) -> str | None:
    """Why a word cannot be handed on to sbatch; None = it can. Short options and bare words may mean anything."""
    told = _OPTION.fullmatch(word)
    if told is None or "\0" in word or "\n" in word:
        return "expected options of sbatch as `--name` or `--name=value`, each one word"
    # sbatch takes every unambiguous beginning of a name for the name.
    ours = [name for name in OURS if name.startswith(told[1])]
    return f"`--{ours[0]}` is set by this tool" if ours else None


class SlurmJob(Record):
    """The Slurm job that a run is."""

    job_id: str
    """As Slurm prints it: `1234`, or `1234_7` for an element of an array."""
    submitted_unix_s: float
    poll_s: float
    answer_s: float
    elements: int | None = None
    """Of a sweep: the elements of its array; None = an ordinary job."""
    restarts: int = 0
    """How often Slurm has started it again: after a node's failure, a preemption, a requeue."""
    node: str | None = None
    """Where it ran last."""

    def __post_init__(self) -> None:
        require(JOB_ID.fullmatch(self.job_id) is not None, f"not the id of a Slurm job: {self.job_id!r}")
        require(self.restarts >= 0, "`restarts` must not be negative")


class SlurmPartition(Record):
    """One line of sinfo."""

    name: str
    is_default: bool
    state: str
    time_limit: str
    nodes: int
    gres: str


class SlurmFacts(Record):
    """Slurm as a login node sees it."""

    version: str | None = None
    partitions: tuple[SlurmPartition, ...] = ()
    accounting: bool | None = None
    """Whether ended jobs are remembered in a data base (sacct); None = unknown."""
    tracks_processes: bool | None = None
    """Whether Slurm can prove that nothing is left of a job (proctrack/cgroup); None = unknown."""
    largest_array: int | None = None
    problem: str | None = None
    """Why Slurm could not be asked."""
