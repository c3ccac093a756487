"""Calls of the engines' own programs, each with a deadline: a program that hangs is an answer, and not the only one."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

CALL_S = 10.0
Answer = Literal["missing", "denied", "hung", "failed"]


class EngineError(Exception):
    """An engine that cannot be used: how it answered, and in which words."""

    def __init__(self, answer: Answer, problem: str) -> None:
        super().__init__(problem)
        self.answer, self.problem = answer, problem


@dataclass(frozen=True)
class Called:
    """A program that ended."""

    code: int
    out: bytes
    err: str


def call(command: Sequence[str], data: bytes = b"", environment: Mapping[str, str] | None = None) -> Called:
    """Run a program with `data` on its standard input. Raises EngineError where it is missing or hangs."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            start_new_session=True,
        )
    except FileNotFoundError:
        raise EngineError("missing", f"this host has no `{command[0]}`") from None
    except OSError as error:
        raise EngineError("failed", f"`{command[0]}` cannot be run: {error}") from None
    try:
        out, err = child.communicate(data, timeout=CALL_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1.0)
        raise EngineError("hung", f"`{' '.join(command[:3])}` has not answered for {CALL_S:.0f} s") from None
    return Called(child.returncode, out, err.decode("utf-8", "replace").strip())
