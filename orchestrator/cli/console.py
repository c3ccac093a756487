"""The only printer: data to stdout, everything else to stderr, readable without colour."""

import json
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.errors import Eagle3Error

if TYPE_CHECKING:
    from rich.console import Console

# Control characters of a host's or a file's text must not move the cursor or set the title of the user's terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def out(text: str) -> None:
    """Data: one text and a newline to stdout."""
    print(safe(text), flush=True)


def out_json(value: Any) -> None:
    """Data as JSON to stdout, indented; NaN is refused (ValueError)."""
    print(json.dumps(value, indent=2, allow_nan=False), flush=True)


def out_json_line(value: Any) -> None:
    """Data as one line of JSON to stdout, for streams of objects."""
    print(json.dumps(value, allow_nan=False), flush=True)


def note(text: str) -> None:
    """For the person, not for the pipe: one line to stderr."""
    print(safe(text), file=sys.stderr, flush=True)


def raw(data: bytes, stream: Literal["stdout", "stderr"]) -> None:
    """A job's own output, byte for byte."""
    target = sys.stdout.buffer if stream == "stdout" else sys.stderr.buffer
    target.write(data)
    target.flush()


def safe(text: str) -> str:
    """The text with control characters made visible."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def show_error(error: Eagle3Error) -> None:
    """`error: ...` and, where there is one, `hint: ...`, to stderr."""
    note(f"error: {error.message}")
    if error.hint:
        note(f"hint: {error.hint}")


def show_bug(error: Exception) -> None:
    """An error nobody foresaw: said as our bug, with what a report needs."""
    traceback.print_exception(error, file=sys.stderr)
    note("error: this is a bug of eagle3-remote; please report it with the lines above")


def is_terminal() -> bool:
    """Whether a person looks at stderr right now."""
    return sys.stderr.isatty()


def rich_stderr() -> "Console":
    """Rich on stderr; honours NO_COLOR and the terminal's width by itself."""
    from rich.console import Console

    return Console(stderr=True)


def close_broken_pipe() -> None:
    """The reader of stdout went away (`| head`): keep the interpreter's own flush from complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
