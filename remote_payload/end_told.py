"""`notify_command` of a host: run by whoever settles a run that is over, with its ending as JSON on standard input.

That is its supervisor; under Slurm, where a job may be ended with its supervisor, also whoever looks first. Once.
The run's state is final by then, and nothing here changes it. A command that fails is run again, a few times within a
minute; what it failed of last is an event of the run, and is told with its state. One that was ended by force is not:
it may have told.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Sequence

from remote_payload.detach import DetachError, Report, start_detached
from remote_payload.event_log import EventLog
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.runstate import read_spec, read_state
from remote_payload.schema import Event, RunSpec, to_json
from remote_payload.schema.ending import ending_of
from remote_payload.sweep.ledger import read_ledger
from remote_payload.watch import WATCHED

LONGEST_S = 30.0
"""Of one try."""
PAUSES_S = (1.0, 5.0, 15.0)
"""Before each further try. Under Slurm a node waits meanwhile."""
TOLD = "told"
"""In the run's folder: the command was run. Empty, or why it did not tell, as JSON."""


def tell_the_end(run: RunDir, spec: RunSpec) -> None:
    """Run the command where there is one and the run is over; what goes wrong is noted among the run's events."""
    if not spec.notify_command:
        return
    with contextlib.suppress(OSError, Refusal):  # a full disk, a state that is damaged: nothing to tell, nowhere to
        state = read_state(run)
        if state is None or not state.is_terminal or not _is_first(run):
            return
        attempts = read_ledger(run) if spec.job_kind == "sweep" else ()
        ending = to_json(ending_of(spec, state, spec.told_as or os.uname().nodename, "host", attempts))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)  # the command's children inherit what is blocked
        problem = _tried(spec.notify_command, ending.encode("ascii") + b"\n")
        if problem is not None:
            now_s, words = time.time(), f"`notify_command` of the host: {problem}"
            write_atomically(run.path / TOLD, json.dumps({"problem": problem, "unix_s": now_s}).encode("ascii"))
            EventLog(run.events).report(Event(time_unix_s=now_s, kind="note", name="notify", message=words))


def untold(run: RunDir) -> str | None:
    """Why the run's end was not told by the host's command; None where it was, or is being, or nobody had to."""
    try:
        return str(json.loads((run.path / TOLD).read_bytes())["problem"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def tell_apart(run: RunDir) -> None:
    """The same in a process of its own, for whoever found a run over whose supervisor could not tell, and cannot wait.

    Nothing is told of one unit of a sweep.
    """
    with contextlib.suppress(OSError, Refusal, DetachError):
        spec, state = read_spec(run), read_state(run)
        is_unit = state is not None and state.slurm is not None and "_" in state.slurm.job_id
        if spec.notify_command and not is_unit:

            def body(report: Report) -> None:
                report("begun")
                tell_the_end(run, spec)

            start_detached(body, keep=(), timeout_s=LONGEST_S)


def _is_first(run: RunDir) -> bool:
    """Whether nobody has told of it; a disk that takes no file more is no reason to keep it back."""
    try:
        os.close(os.open(run.path / TOLD, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _tried(command: Sequence[str], data: bytes) -> str | None:
    """Run it until it tells, a few times; what went wrong at last, None = nothing."""
    for tries, pause_s in enumerate((*PAUSES_S, None), 1):
        problem, may_have_told = _problem(command, data)
        if problem is None or may_have_told or pause_s is None:
            return problem if problem is None or tries == 1 else f"{problem} ({tries} tries)"
        time.sleep(pause_s)
    return None


def _problem(command: Sequence[str], data: bytes) -> tuple[str | None, bool]:
    """What went wrong, None = nothing; and whether it may have told all the same."""
    import subprocess  # noqa: PLC0415 - few hosts have a command, and every element of an array starts with this
    import tempfile  # noqa: PLC0415

    from remote_payload.bounded import KILL_WAIT_S  # noqa: PLC0415

    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as output:
        told.write(data)
        told.seek(0)
        try:
            child = subprocess.Popen(
                [os.path.expanduser(command[0]), *command[1:]],
                stdin=told,  # not a pipe: one that reads nothing is no error
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"it cannot be run: {error}", False
        try:
            code = child.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(KILL_WAIT_S)
            return f"ended by force, for it took longer than {LONGEST_S:.0f} s", True
        if code == 0:
            return None, False
        output.seek(0)
        said = " ".join(output.read(4096).decode("utf-8", "replace").split())[-300:]
        return f"exit code {code}: {said or 'no message'}", False
