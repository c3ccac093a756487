"""The environment of a server, and the secrets in it."""

import os
from pathlib import Path

from remote_payload import processes
from remote_payload.failure import job_failure
from remote_payload.gpus.choice import handed_down
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.arguments import requested_of
from remote_payload.sglang_bench.redact import is_secret, secrets_of_variable


def server_environment(job: BenchJob, run_directory: Path) -> dict[str, str]:
    """What the server gets beside what it inherits.

    Behind an `exec_prefix` nothing may be inherited, so the host's `environment` and `secrets` are handed over as well,
    and the devices that were leased. Raises JobFailure(job) where the job names others.
    """
    handed = {name: os.environ[name] for name in _names_of_run(run_directory) if name in os.environ}
    own = dict(pair.split("=", 1) for pair in job.server_environment)
    leased = handed_down(os.environ)
    if leased.keys() & own.keys():
        raise job_failure(
            "`server_environment` names devices, but the run has leased its own: CUDA_VISIBLE_DEVICES="
            f"{leased['CUDA_VISIBLE_DEVICES']}",
            hint="leave CUDA_VISIBLE_DEVICES out of it, or run without --gpus",
        )
    handed |= leased
    return {**handed, "PYTHONUNBUFFERED": "1", processes.MARK: str(run_directory), **own}


def api_key(job: BenchJob) -> str | None:
    """The key to send: the variable's value, or the one in `server_args`; None = none, or an empty one.

    Raises JobFailure(job), without the key in it, if the variable is not set or no header can hold its value.
    """
    if job.api_key_env is not None:
        if job.api_key_env not in os.environ:
            raise job_failure(
                f"`api_key_env` names a variable that is not set in the job's environment: {job.api_key_env}",
                hint="name it in the host's `secrets`, and set it on the laptop",
            )
        return _sendable(os.environ[job.api_key_env], job.api_key_env)
    key = requested_of(job.server_args).get("api_key")
    return None if key is None or key is True else _sendable(str(key), "--api-key")


def _sendable(key: str, name: str) -> str | None:
    if key.isascii() and key.isprintable() and key == key.strip():
        return key or None
    raise job_failure(
        f"the API key in `{name}` cannot be sent: a header holds printable ASCII characters in one line alone",
        hint="look for a line end or a blank at its end",
    )


def secret_values(job: BenchJob, run_directory: Path) -> tuple[str, ...]:
    """Values that must stand in no log: of the host's `secrets`, of secret options and variables of the server."""
    names = {name for name in _names_of_run(run_directory, secret=True) if name in os.environ}
    values = {os.environ[name] for name in names}
    values |= {str(value) for name, value in requested_of(job.server_args).items() if is_secret(name)}
    own = dict(pair.split("=", 1) for pair in job.server_environment)
    values |= {value for pair in own.items() for value in secrets_of_variable(*pair)}
    values |= {value for word in job.server_args for value in secrets_of_variable("", word)}
    values |= {key} if (key := api_key(job)) else set()
    return tuple(sorted(values - {"True", ""}, key=lambda value: (-len(value), value)))  # the longest first


def _names_of_run(run_directory: Path, *, secret: bool = False) -> tuple[str, ...]:
    """Names of the variables that the run's spec sets; none where there is no spec."""
    run = RunDir(run_directory)
    if not run.spec.is_file():
        return ()
    spec = read_spec(run)
    return spec.secret_names if secret else (*spec.environment, *spec.secret_names)
