"""The verbs the laptop may call: `PYTHON -I -S PAYLOAD.pyz VERB`, one JSON request on stdin, frames on stdout.

Exit codes (for people; programs read the frames): 0 answered, 1 refused, 2 no request to speak of, 70 a bug here.
`work RUNDIR` is internal: the worker, started by the supervisor; so is `fire ROOT ID`: a schedule's time, started by
the host's cron or systemd.
"""

# ruff: noqa: PLC0415 - each verb loads only what it needs: start-up time

import os
import sys
from pathlib import Path

VERBS = (
    "launch",
    "follow",
    "status",
    "cancel",
    "hold",
    "probe",
    "top",
    "sweep",
    "gather",
    "identify",
    "tell",
    "gc",
    "schedule",
    "correct",
    "wiring",
    "work",
)


def main(arguments: list[str], archive: str) -> int:
    """Run one verb of the payload file `archive`; returns the exit code."""
    os.environ.pop("PYTHONHOME", None)  # of a start-up file, for one interpreter; we start others (PYTHONPATH stays)
    if len(arguments) == 2 and arguments[0] == "work":
        from remote_payload.worker import work

        return work(arguments[1], Path(archive))
    if len(arguments) == 3 and arguments[0] == "fire":
        from remote_payload.schedule.fire import fire

        return fire(arguments[1], arguments[2], Path(archive))
    if len(arguments) == 2 and arguments[0] == "batch":
        from remote_payload.slurm.batch import batch

        return batch(arguments[1], Path(archive))
    if len(arguments) != 1 or arguments[0] not in VERBS[:-1]:
        sys.stderr.write(f"usage: payload.pyz {{{'|'.join(VERBS)}}} < request.json\n")
        return 2
    from remote_payload.verbs import answer

    return answer(arguments[0], sys.stdin.buffer.read(), Path(archive))
