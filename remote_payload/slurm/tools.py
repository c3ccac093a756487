"""Slurm's own tools, each bounded by a time: a controller that is down keeps them waiting for minutes."""

import os
from collections.abc import Sequence

UNANSWERED = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted or received",
    "Message receive failure",
)
"""Of slurm_errno.c: the question was asked, or may have been, and what became of it is unknown."""
ELSEWHERE = ("/opt/slurm/bin", "/usr/local/slurm/bin", "/usr/local/bin", "/cm/shared/apps/slurm/current/bin")


class SlurmError(Exception):
    """Slurm could not be asked; the message says what it said itself."""


class NoAnswerError(SlurmError):
    """It did not answer in time: what it would have said is unknown."""


class RefusedError(SlurmError):
    """It answered, and refused."""


def search_path() -> str:
    """PATH with where clusters put Slurm: a command over SSH reads no start-up file that would add it."""
    return ":".join((os.environ.get("PATH", os.defpath), *ELSEWHERE))


def ask(words: Sequence[str], answer_s: float, script: str | None = None) -> str:
    """What the tool printed; `script` goes to its stdin. Raises NoAnswerError, RefusedError."""
    import shutil  # noqa: PLC0415 - an element of an array starts with this module, and asks nothing
    import subprocess  # noqa: PLC0415

    # Times in the host's own zone and form; SQUEUE_FORMAT and the like are not to change what is asked for.
    changed = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SACCT_"))}
    environment = {**changed, "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C", "PATH": search_path()}
    try:
        done = subprocess.run(
            [shutil.which(words[0], path=search_path()) or words[0], *words[1:]],
            input=script or "",
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=answer_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"Slurm did not answer within {answer_s:g} s ({words[0]})") from None
    except OSError as error:
        raise RefusedError(f"cannot run `{words[0]}`: {error.strerror} (PATH: {search_path()})") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").replace("\n", "; ")
        if any(words in said for words in UNANSWERED):
            raise NoAnswerError(f"Slurm's controller does not answer ({said})")
        raise RefusedError(f"{words[0]}: {said}")
    return done.stdout
