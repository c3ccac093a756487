import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import console
from orchestrator.errors import UsageError


def test_data_goes_to_stdout_and_everything_else_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.out("data")
    console.out_json({"unknown": None, "text": "ü\x1b", "never": [float("nan"), (float("inf"),)]})
    console.note("note")
    console.warn("careful")
    console.show_error(UsageError("expected x, found: y\x1b[2J", hint="try x"))
    captured = capsys.readouterr()
    assert captured.out == 'data\n{"unknown": null, "text": "\\u00fc\\u001b", "never": [null, [null]]}\n'
    assert captured.err == "note\nwarning: careful\nerror: expected x, found: y\\x1b[2J\nhint: try x\n"


def test_a_bug_is_said_as_such_without_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EAGLE3_REMOTE_TRACEBACK", raising=False)

    def show() -> str:
        try:
            [].pop()
        except IndexError as error:
            console.show_bug(error)
        return capsys.readouterr().err

    text = show()
    assert text.startswith("error: this is a bug in eagle3-remote, please report it: IndexError: pop from empty list")
    assert "Traceback" not in text
    monkeypatch.setenv("EAGLE3_REMOTE_TRACEBACK", "1")
    assert "Traceback" in show()


def _on_a_terminal(code: str, **environment: str) -> bytes:
    """Run the code with stdout and stderr on a pseudo terminal; everything it wrote."""
    leader, follower = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    with os.fdopen(leader, "rb", buffering=0) as reader:
        child = subprocess.Popen(
            [sys.executable, "-c", f"from orchestrator.cli import console; {code}"],
            stdout=follower,
            stderr=follower,
            env={**clean, "TERM": "xterm", **environment},
            cwd=Path(__file__).parents[2],
        )
        os.close(follower)
        found = b""
        while True:
            try:
                chunk = reader.read(4096)
            except OSError:  # Linux: the other end is closed
                break
            if not chunk:
                break
            found += chunk
        assert child.wait(30) == 0
    return found


def test_colour_only_on_a_terminal_that_wants_it() -> None:
    code = "console.show_error(console.Eagle3Error('x'))"
    assert b"\x1b[31merror:\x1b[0m x" in _on_a_terminal(code)
    assert b"\x1b" not in _on_a_terminal(code, NO_COLOR="1")
    assert b"\x1b" not in _on_a_terminal(code, TERM="dumb")


def test_an_error_is_broken_between_words_on_a_terminal_and_its_commands_stay_whole() -> None:
    command = "`eagle3-remote runs show run-20260102-0304-ab12cd --verbose`"
    code = (
        "console.show_error(console.Eagle3Error('the server failed, it ended with exit code 1: the "
        f"target cannot be read\\n  - {'word ' * 20}end', hint='look at its log, or say {command} to see it all'))"
    )
    lines = _on_a_terminal(code, NO_COLOR="1", COLUMNS="60").decode().split("\r\n")
    assert lines == [
        "error: the server failed, it ended with exit code 1: the",
        "  target cannot be read",
        f"  - {'word ' * 11}".rstrip(),
        f"    {'word ' * 9}end",
        "hint: look at its log, or say",
        f"  {command}",
        "  to see it all",
        "",
    ]


def test_job_output_is_raw_in_a_pipe_and_harmless_on_a_terminal() -> None:
    code = r"console.raw(b'a\x1b[2Jb\r50%\tc\xff\n', 'stdout')"
    assert _on_a_terminal(code) == rb"a\x1b[2Jb" + b"\r50%\tc" + rb"\xff" + b"\r\n"
    piped = subprocess.run(
        [sys.executable, "-c", f"from orchestrator.cli import console; {code}"],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert piped.stdout == b"a\x1b[2Jb\r50%\tc\xff\n"


def test_no_byte_of_a_job_reaches_a_terminal_as_a_command() -> None:
    pieces = [b"\xc2", b"\x9b2J\x7f\xe2\x80", b"\xaec\xc3", b"\xbc\x9b\n"]  # C1, DEL, a bidi override, a bare C1 byte
    code = f"[console.raw(piece, 'stdout') for piece in {pieces!r}]"
    assert _on_a_terminal(code) == rb"\x9b2J\x7f\u202ec" + "ü".encode() + rb"\x9b" + b"\r\n"


def test_text_survives_a_stdout_that_knows_only_ascii() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from orchestrator.cli import console; console.out('ü')"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == b"\\xfc\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    environment = {**os.environ, "EAGLE3_REMOTE_HOME": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m orchestrator.cli runs list --json | true"],
        capture_output=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == b""


def test_width_is_the_same_in_every_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console.width() == 110


@pytest.mark.parametrize(
    ("columns", "expected"), [("80", 80), ("132", 132), ("7", 40), ("0", 110), ("wide", 110), ("", 110)]
)
def test_columns_hold_in_a_pipe_too(monkeypatch: pytest.MonkeyPatch, columns: str, expected: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console.width() == expected
