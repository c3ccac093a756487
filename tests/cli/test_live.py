import json
import os
import pty
import re
import sys
import threading

import pytest

from orchestrator.cli.live import Tell, update_line, update_values, watching
from orchestrator.updates import LogArrived, Note, Progressed, Reconnecting, StateChanged, Update
from remote_payload.schema import Event, RunState

EVIL = "\x1b]0;pwned\x07\x9b2J\u202e[/x]\nerror: fake"


def progress(
    name: str, done: float | None, total: float | None, *, message: str = "", unit: str | None = None
) -> Update:
    event = Event(time_unix_s=1.0, kind="progress", name=name, done=done, total=total, message=message, unit=unit)
    return Progressed(event=event)


HOSTILE = [
    progress(EVIL, 1.0, 2.0, message=EVIL, unit=EVIL),
    progress("[/x]", float("inf"), float("inf"), message="[bold]m[/bold]"),
    progress("nan", float("nan"), 0.0),
    progress("huge", 1e308, 1.0),
    progress("none", None, None),
    Progressed(event=Event(time_unix_s=1.0, kind="warning", name=EVIL, message=EVIL)),
    Note(name="python", text=EVIL),
    Reconnecting(attempt=1, reason=EVIL),
    StateChanged(state=RunState(run_id="run-a", sequence=1, phase="running")),
]


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, updates: list[Update], columns: int = 200) -> str:
    """What the bars write to a pseudo terminal that is stderr."""
    leader, follower = pty.openpty()
    found = bytearray()

    def read() -> None:
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # Linux: the other end is closed
                return
            found.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(follower, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr(sys, "stderr", terminal)
            monkeypatch.setenv("TERM", "xterm")
            monkeypatch.setenv("COLUMNS", str(columns))
            with watching(as_json=False) as tell:
                for update in updates:
                    tell(update)
            monkeypatch.undo()
    finally:
        reader.join(10)
        os.close(leader)
    return found.decode()


def test_bars_show_a_hosts_words_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_a_terminal(monkeypatch, HOSTILE)
    assert r"\x1b]0;pwned\x07\x9b2J\u202e[/x]\nerror: fake" in text
    assert "state: running" in text
    ours = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", text)  # rich's own: colours, cursor
    assert not set(ours) & set("\x1b\x07\x9b\u202e")


def test_no_bar_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_a_terminal(monkeypatch, [progress("wirings", 0, 4), progress("sleep", 11, 12)])
    assert "11/12" in text
    last = text.rsplit("sleep", 1)[1]
    assert last.endswith("\x1b[2K")  # the last line it stood on is erased


def test_counting_that_begins_anew_has_a_clock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 300
    first = [progress("requests", done, 3, unit="requests", message=long) for done in range(4)]
    text = on_a_terminal(monkeypatch, [*first, *(progress("requests", done, 3, message=long) for done in range(2))])
    assert "0:00:" in text.rsplit("1/3", 1)[1]
    assert "\u2026" in text.rsplit("1/3", 1)[1]  # the message is cut, not the clock


def test_all_that_a_benchmark_tells_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "point 3/12, 123.4 tok/s, accept length 1.90, 12 min left"
    one = progress("requests", 12, 24, unit="requests", message=message)
    text = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", on_a_terminal(monkeypatch, [one, one], columns=80))
    line = next(line for line in re.split(r"[\r\n]", text) if message in line)
    assert line.split()[:2] == ["requests", "12/24"]
    assert len(line) <= 80


def test_a_new_phase_takes_the_bar_of_the_last_one_away(monkeypatch: pytest.MonkeyPatch) -> None:
    phase = Progressed(event=Event(time_unix_s=1.0, kind="phase", name="stop", message="the server ends"))
    text = on_a_terminal(monkeypatch, [progress("requests", 6, 7), phase])
    assert "6/7" not in text.rsplit("the server ends", 1)[1]


def test_lines_and_json_of_a_hostile_host(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(as_json=False) as tell:
        _tell_all(tell)
    err = capsys.readouterr().err
    assert "progress: [/x] unknown/unknown - [bold]m[/bold]" in err
    assert not set(err) & set("\x1b\x07\x9b\u202e")
    with watching(as_json=True) as tell:
        _tell_all(tell)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(HOSTILE)
    values = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert values[1] == {**update_values(HOSTILE[1]), "done": None, "total": None}


def test_figures_are_fields_for_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"output_tok_s": 123.4, "accept_length": 1.9, "point": 3.0, "points": 12.0, "left_s": 720.0}
    event = Event(time_unix_s=1.0, kind="progress", name="requests", done=12.0, total=24.0, figures=figures)
    with watching(as_json=True) as tell:
        tell(Progressed(event=event))
    assert json.loads(capsys.readouterr().out)["figures"] == figures


def _tell_all(tell: Tell) -> None:
    for update in HOSTILE:
        tell(update)


@pytest.mark.parametrize(
    ("done", "total", "unit", "expected"),
    [
        (2.3e-07, 20.0, "s", "progress: sleep 0.0/20 s"),
        (3.0, 12.0, None, "progress: sleep 3/12"),
        (1234567.0, None, "tokens", "progress: sleep 1234567 tokens"),
        (1e12, None, None, "progress: sleep 1e+12"),
        (None, 3.0, None, "progress: sleep"),
        (3.0, 12.0, "sleep", "progress: sleep 3/12"),
    ],
)
def test_counts_are_written_for_people(
    done: float | None, total: float | None, unit: str | None, expected: str
) -> None:
    assert update_line(progress("sleep", done, total, unit=unit)) == expected


def test_a_log_is_no_line_of_ours() -> None:
    assert update_line(LogArrived(stream="stdout", data=b"x")) is None
    assert update_values(LogArrived(stream="stdout", data=b"\xff"))["text"] == "\ufffd"
