"""Starting the worker: session and process group of its own, logs as files, the run's environment and secrets.

By fork and exec, not by `os.posix_spawn`: its `setsid` raises NotImplementedError in a Python that was built against a
glibc older than 2.26, as Pythons made to run everywhere may be.
"""

import errno
import os
import signal
from pathlib import Path
from typing import NoReturn

from remote_payload import processes
from remote_payload.gpus.choice import handed_down
from remote_payload.rundir import RunDir
from remote_payload.schema import Failure, RunSpec


def spawn_worker(run: RunDir, spec: RunSpec, secrets: dict[str, str], archive: Path) -> int:
    """Start `spec.python` on the payload's `work` verb; returns its pid. Raises OSError when it cannot be run.

    Secrets exist only in the memory of this process and in the environment of the worker.
    """
    python = os.path.expanduser(spec.python)
    # These need no installed packages, so they need not wait for `site` to look through them.
    isolation = ["-I", "-S"] if spec.job_kind in ("selftest", "sweep", "hold") else []
    command = [python, *isolation, "-u", str(archive), "work", str(run.path)]
    # Devices that were leased for a sweep hold for its units, too, and those of a hold for its members, whatever the
    # host's configuration says.
    environment = {**os.environ, **spec.environment, **handed_down(os.environ), **secrets}
    environment |= {"EAGLE3_RUN_ID": spec.run_id, processes.MARK: str(run.path)}
    read_end, write_end = os.pipe()  # a successful exec closes it; an error comes through it
    pid = os.fork()
    if pid == 0:
        try:
            _become(command, environment, run)
        except OSError as error:
            os.write(write_end, str(error.errno or 0).encode("ascii"))
        finally:
            os._exit(127)  # never back into the supervisor's code
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        raise OSError(int(problem), os.strerror(int(problem)), python)
    return pid


def no_worker(python: str, error: OSError) -> Failure:
    """Why `spawn_worker` could not start one, for the run's final state."""
    if error.errno == errno.E2BIG:
        return Failure(
            kind="job",
            message=f"the job's environment is longer than this host takes, {error.strerror}: {python}",
            hint="Linux takes 128 KiB a variable: shorten `environment` or the secret, or put the text in a file there",
        )
    return Failure(
        kind="machine",
        message=f"the worker's Python cannot be started, {error.strerror}: {python}",
        hint="name another interpreter as `python` for this host in eagle3.toml",
    )


def _become(command: list[str], environment: dict[str, str], run: RunDir) -> NoReturn:
    os.setsid()
    os.chdir(run.path)
    logs = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(run.stdout, logs, 0o600), 1)
    os.dup2(os.open(run.stderr, logs, 0o600), 2)
    for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # what the supervisor or a background shell ignores, it need not
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execvpe(command[0], command, environment)  # noqa: S606 - no shell is what we want
