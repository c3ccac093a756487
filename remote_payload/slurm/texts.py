"""What Slurm's tools print -> values. Text, never `--json`: version 22.05 tells of wrong jobs and exit codes in it.

Pure. Source of the states: squeue(1), section JOB STATE CODES; sacct(1); `JOB_STATE_BASE` in slurm.h.
"""

import re
from dataclasses import dataclass

from remote_payload.schema.run import RunPhase
from remote_payload.schema.slurm import SlurmPartition

SQUEUE_FORMAT = "%i|%T|%N|%r"
SACCT_FIELDS = "JobID,State,ExitCode,NodeList"
GOING = frozenset(
    {
        "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING",
        "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE", "UPDATE_DB",
    }
)  # fmt: skip
"""Of these a job may come back or go on; every other state is its end."""
QUEUED = GOING - {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
GONE = "GONE"
"""Ours: Slurm answered, and does not know the job (any more)."""

PHASES: dict[str, RunPhase] = {
    "TIMEOUT": "timed_out",
    "DEADLINE": "timed_out",
    "OUT_OF_MEMORY": "out_of_memory",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "PREEMPTED": "killed",
}
"""What the end of a job is for a run that left no final state of its own; every other end is `lost`."""

_EXIT = re.compile(r"(\d+):(\d+)")
_SUBMITTED = re.compile(r"(?:Submitted batch job )?([0-9]+)(?:;[A-Za-z0-9_.-]+)?")
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:*]*)=")


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job as Slurm told of it."""

    state: str
    node: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.state not in GOING

    @property
    def words(self) -> str:
        """e.g. `PENDING (Resources)`, `FAILED (NonZeroExitCode), exit code 9, on node3`."""
        if self.state == GONE:
            return "Slurm does not know the job any more"
        text = self.state + (f" ({self.reason})" if self.reason else "")
        if self.exit_code:
            text += f", exit code {self.exit_code}"
        if self.signal:
            text += f", signal {self.signal}"
        return text + (f", on {self.node}" if self.node else "")


def job_id_in(told: str) -> str | None:
    """The job's id in what `sbatch --parsable` printed, `ID` or `ID;CLUSTER`, the last such line; or its long form."""
    lines = [line.strip() for line in told.splitlines()]
    found = [match[1] for line in lines if (match := _SUBMITTED.fullmatch(line)) is not None]
    return found[-1] if found else None


def read_squeue(text: str) -> dict[str, JobView]:
    """The jobs of `squeue -h -r -o SQUEUE_FORMAT`; lines of another form are passed over."""
    found = {}
    for line in text.splitlines():
        fields = line.split("|", 3)
        if len(fields) == 4:
            job_id, state, node, reason = (field.strip() for field in fields)
            found[job_id] = JobView(state=state, node=_known(node), reason=_known(reason))
    return found


def read_sacct(text: str) -> dict[str, JobView]:
    """The jobs of `sacct -X -n -P -o SACCT_FIELDS`; of a job that ran several times the last line counts."""
    found = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 4 and fields[1]:
            state, _, by = fields[1].partition(" ")  # `CANCELLED by 1000`
            code, number = _exit(fields[2])
            node = None if fields[3].startswith("None") else _known(fields[3])
            found[fields[0]] = JobView(state=state, node=node, reason=by or None, exit_code=code, signal=number)
    return found


def read_scontrol(text: str) -> dict[str, JobView]:
    """The jobs of `scontrol -o show job`, a line each; elements of an array as `ARRAY_INDEX`."""
    found = {}
    for line in text.splitlines():
        fields = fields_of(line)
        if "JobId" not in fields or "JobState" not in fields:
            continue
        job_id = fields["JobId"]
        if fields.get("ArrayTaskId", "").isdigit():
            job_id = f"{fields['ArrayJobId']}_{fields['ArrayTaskId']}"
        code, number = _exit(fields.get("ExitCode", ""))
        restarts = fields.get("Restarts", "")
        found[job_id] = JobView(
            state=fields["JobState"],
            node=_known(fields.get("NodeList") or fields.get("BatchHost", "")),
            reason=_known(fields.get("Reason", "")),
            exit_code=code,
            signal=number,
            restarts=int(restarts) if restarts.isdigit() else None,
        )
    return found


def fields_of(line: str) -> dict[str, str]:
    """`A=1 B=two words C=` -> its fields; a value goes on to the next word that is a name and `=`."""
    found: dict[str, str] = {}
    marks = list(_FIELD.finditer(line))
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(line)
        found.setdefault(mark[1], line[mark.end() : end].strip())  # free text at the end may look like a field
    return found


def read_config(text: str) -> dict[str, str]:
    """`scontrol show config`: `Name = value` lines."""
    lines = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, equals, value in lines if equals}


def read_sinfo(text: str) -> tuple[SlurmPartition, ...]:
    """The partitions of `sinfo -h -o '%P|%a|%l|%D|%G'`; the default one bears a `*`."""
    found = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 5 and fields[3].isdigit():
            name, state, limit, nodes, gres = fields
            known = SlurmPartition(
                name=name.rstrip("*"),
                is_default=name.endswith("*"),
                state=state,
                time_limit=limit,
                nodes=int(nodes),
                gres="" if gres == "(null)" else gres,
            )
            found.append(known)
    return tuple(found)


def _exit(text: str) -> tuple[int | None, int | None]:
    told = _EXIT.fullmatch(text)
    return (int(told[1]), int(told[2])) if told else (None, None)


def _known(value: str) -> str | None:
    return value if value and value not in ("None", "(null)", "N/A", "Unknown") else None
