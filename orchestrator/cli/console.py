"""The only printer: data to stdout, everything else to stderr, readable without colour, safe on any terminal.

Text that came from a host may hold control sequences; all text but job logs in a pipe is cleaned before it is printed.
"""

import codecs
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from orchestrator.errors import Eagle3Error, OutputClosedError, OutputError

if TYPE_CHECKING:
    from rich.console import Console

_RED, _YELLOW, _CYAN, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[0m"
_LINE_CONTROLS = "\n\r\t\b"  # what a progress line of a job needs, and no terminal is harmed by
WIDTH = 110
LEAST_WIDTH = 40
"""Narrower reports cannot be read; a terminal breaks their lines itself."""
_DECODERS: dict[str, codecs.IncrementalDecoder] = {}
"""By stream: a character may come in two pieces."""


def out(text: str) -> None:
    """Data, to stdout."""
    _write(sys.stdout, f"{safe(text)}\n")


def out_json(value: Any) -> None:
    """Data as one line of JSON, to stdout; unknown is null, and so is a number that JSON cannot carry."""
    _write(sys.stdout, json.dumps(_finite(value), ensure_ascii=True, allow_nan=False) + "\n")


def note(text: str) -> None:
    """Anything that is not data, to stderr."""
    _write(sys.stderr, f"{safe(text)}\n")


def warn(text: str) -> None:
    """A warning, to stderr."""
    _write(sys.stderr, f"{_coloured('warning:', _YELLOW)} {safe(text)}\n")


def raw(data: bytes, stream: str) -> None:
    """A job's output as it came, to `stdout` or `stderr`; a terminal gets nothing it would obey, as `safe` says."""
    target = sys.stderr if stream == "stderr" else sys.stdout
    if target.isatty():
        if stream not in _DECODERS:
            _DECODERS[stream] = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        _write(target, safe(_DECODERS[stream].decode(data), _LINE_CONTROLS))
        return
    with _reported(target):
        target.flush()
        target.buffer.write(data)
        target.buffer.flush()


def safe(text: str, controls: str = "\n\t") -> str:
    """The text with everything a terminal might obey written as an escape; only the `controls` stay."""
    return "".join(
        char if char.isprintable() or char in controls else char.encode("unicode_escape").decode() for char in text
    )


def is_terminal() -> bool:
    """Whether somebody watches: progress bars only there."""
    return sys.stderr.isatty()


def width() -> int:
    """`COLUMNS` of the environment, else those of the terminal that stdout is; 110 elsewhere: files look alike."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and len(asked) <= 4 and int(asked):
        columns = int(asked)
    elif sys.stdout.isatty():
        import shutil

        columns = shutil.get_terminal_size((WIDTH, 24)).columns
    else:
        columns = WIDTH
    return max(columns, LEAST_WIDTH)


def rich_stderr() -> "Console":
    """Rich's console for progress bars, on stderr."""
    from rich.console import Console

    return Console(stderr=True, no_color=not _colour_wanted(sys.stderr))


def show_error(error: Eagle3Error) -> None:
    """`error: ...`, and `hint: ...` on its own line; on a terminal broken between words, elsewhere a line each."""
    _write(sys.stderr, f"{_coloured('error:', _RED)} {_fitting(safe(error.message), 'error: ')}\n")
    if error.hint:
        _write(sys.stderr, f"{_coloured('hint:', _CYAN)} {_fitting(safe(error.hint), 'hint: ')}\n")


def _fitting(text: str, before: str) -> str:
    """The text as the terminal has room for it."""
    if not sys.stderr.isatty():
        return text
    import shutil

    from orchestrator.report.lines import folded

    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return folded(text, max(columns, LEAST_WIDTH), len(before))


def show_bug(error: BaseException) -> None:
    """Our own mistake, said as such: what and where, the whole traceback only when asked for."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    text = f"this is a bug in eagle3-remote, please report it: {type(error).__name__}: {error}{where}"
    _write(sys.stderr, f"{_coloured('error:', _RED)} {safe(text)}\n")
    if os.environ.get("EAGLE3_REMOTE_TRACEBACK"):
        note("".join(traceback.format_exception(error)))
    else:
        note("hint: the same command with EAGLE3_REMOTE_TRACEBACK=1 in the environment shows the whole traceback")


def open_closed_streams() -> None:
    """Python has no stream where the caller closed one (`>&-`): stdout becomes one that refuses, stderr one that drops.

    This also keeps the numbers 1 and 2 from becoming those of sockets.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def silence(stream: TextIO) -> None:
    """It cannot be written: let the interpreter's last flush go nowhere instead of failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _finite(value: Any) -> Any:
    """The value with None for NaN and infinities, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _colour_wanted(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _coloured(text: str, colour: str) -> str:
    return f"{colour}{text}{_PLAIN}" if _colour_wanted(sys.stderr) else text


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    with _reported(stream):
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


@contextmanager
def _reported(stream: TextIO) -> Iterator[None]:
    """A stdout that cannot be written ends the command as an error of ours; words that stderr refuses are lost."""
    try:
        yield
    except BrokenPipeError:
        if stream is sys.stdout:
            raise OutputClosedError("whoever read standard output is gone") from None
        silence(stream)
    except OSError as error:
        if stream is sys.stdout:
            raise OutputError(f"cannot write to standard output: {error.strerror or error}") from None
        silence(stream)
