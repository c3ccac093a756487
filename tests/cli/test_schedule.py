"""`--every` and what goes with it: refused before any host is asked; and schedules as text."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import cli
from orchestrator.errors import UsageError
from orchestrator.report.schedule_text import history_text, list_text, made_text, next_text
from remote_payload.schema import Failure, RunSpec, RunState, SelftestJob, to_json
from remote_payload.schema.frames import ScheduleFrame
from remote_payload.schema.schedule import EngineAnswer, Occasion, Schedule, Standing


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a host that has secrets; nothing answers at its address."""
    text = '[hosts.gpu1]\nssh = "nobody@127.0.0.1:1"\nsecrets = ["HF_TOKEN"]\n'
    (tmp_path / "eagle3.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_TOKEN", "hidden")
    return tmp_path


BENCH = ("bench", "--model", "/m", "--attach-url", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("selftest", "--every", "0 22 * *"), "--every: expected five fields"),
        (("selftest", "--every", "@daily", "--at", "22:00"), "it goes with neither --at nor --after"),
        (("selftest", "--every", "@daily", "--after", "night"), "it goes with neither --at nor --after"),
        (("selftest", "--every", "@daily", "--detach"), "it goes with neither --detach nor --junit"),
        (("selftest", "--overlap"), "--engine and --overlap belong to --every"),
        (("selftest", "--every", "@daily", "--run-id", "x" * 60), "a schedule's id has at most 50 characters"),
        ((*BENCH, "--every", "@daily"), "nobody is there to hand over the `secrets` of [hosts.gpu1]"),
    ],
)
def test_what_makes_no_sense(project: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        cli.main(["run", words[0], "--host", "gpu1", *words[1:]], standalone_mode=False)
    assert said in str(caught.value)
    assert "hidden" not in f"{caught.value} {caught.value.hint}"


SPEC = RunSpec(
    run_id="nightly",
    job_kind="selftest",
    job_json=to_json(SelftestJob()),
    python="/usr/bin/python3",
    payload_sha256="0" * 64,
    environment={},
    launched_by="somebody@laptop",
    created_unix_s=1.0,
)
SCHEDULE = Schedule(
    schedule_id="nightly",
    cron="0 22 * * mon-fri",
    engine="cron",
    spec=SPEC,
    host="gpu1",
    zone="CET, UTC+01:00",
    path="/usr/bin",
    python="/usr/bin/python3",
    created_unix_s=1796000000.0,
)
DUE = 1796072400
"""2026-11-30 21:00 UTC."""


def occasion(what: Any, due: int | None, **more: Any) -> Occasion:
    return Occasion(what=what, due_unix_s=due, noted_unix_s=float(DUE), boot_offset_s=1.0, **more)


HISTORY = (
    occasion("missed", DUE - 5 * 86400, until_unix_s=DUE - 3 * 86400, count=3, why="the host was off"),
    occasion("clock_step", None, why="the host's clock was set by +3600 s"),
    occasion("skipped", DUE - 86400, why="nightly.20261128-2100 is not over yet"),
    occasion("fired", DUE, run_id="nightly.20261130-2100"),
)
RUN = RunState(
    run_id="nightly.20261130-2100", sequence=4, phase="failed", failure=Failure(kind="job", message="asked to fail")
)
STANDING = Standing(
    schedule_id="nightly",
    schedule=SCHEDULE,
    installed=True,
    coming_unix_s=(DUE + 86400,),
    coming_local=("2026-12-01 22:00 CET",),
    runs=(RUN,),
    history=HISTORY,
    counts={"missed": 3, "clock_step": 1, "skipped": 1, "fired": 1},
)
FRAME = ScheduleFrame(
    standings=(STANDING,),
    engines=(EngineAnswer(engine="cron", answer="ok", daemon=True), EngineAnswer(engine="systemd", answer="missing")),
    zone="CET, UTC+01:00",
    time_unix_s=float(DUE),
)


def test_the_texts() -> None:
    assert made_text("gpu1", FRAME) == (
        "nightly: `0 22 * * mon-fri` by cron of gpu1, whose zone is meant (CET, UTC+01:00); next: 2026-12-01 22:00 CET"
    )
    assert next_text(FRAME).splitlines()[1] == "2026-12-01 22:00 CET  2026-12-01 21:00:00 UTC"
    (line,) = list_text("gpu1", FRAME).splitlines()[3:]
    assert line.split("  ")[0] == "nightly"
    assert line.endswith("fired 2026-11-30 21:00:00  3 missed, 1 skipped, 1 fired")
    rows = [" ".join(row.split()) for row in history_text(FRAME).splitlines()]
    assert rows[1:] == [
        "2026-11-25 21:00:00 .. 2026-11-27 21:00:00 (3 times) missed - - the host was off",
        "2026-11-30 21:00:00 clock step - - the host's clock was set by +3600 s",
        "2026-11-29 21:00:00 skipped - - nightly.20261128-2100 is not over yet",
        "2026-11-30 21:00:00 fired nightly.20261130-2100 failed",
        "",
        "3 missed, 1 skipped, 1 fired",
    ]


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"daemon": False}, "! cron does not run on this host: nothing starts until somebody starts it"),
        ({"daemon": None}, "! whether cron runs cannot be seen by this user"),
        ({"answer": "hung", "problem": "`crontab -l` hangs"}, "! cron cannot be asked: `crontab -l` hangs"),
    ],
)
def test_what_keeps_a_schedule_from_running_is_said(engine: dict[str, Any], said: str) -> None:
    told = dataclasses.replace(FRAME, engines=(dataclasses.replace(FRAME.engines[0], **engine),))
    for text in (list_text("gpu1", told), next_text(told), history_text(told), made_text("gpu1", told)):
        assert text.splitlines()[-1] == said


def test_what_is_left_of_a_schedule_is_said() -> None:
    gone = dataclasses.replace(STANDING, installed=False)
    orphan = Standing(schedule_id="weekly", installed=True, problem="its folder is gone", counts={})
    lines = list_text("gpu1", dataclasses.replace(FRAME, standings=(gone, orphan))).splitlines()
    assert lines[-2].startswith("! nightly: its entry is gone from the host, so nothing starts it")
    assert lines[-1] == "! weekly: its folder is gone; `schedule rm` takes it away"
    assert list_text("gpu1", dataclasses.replace(FRAME, standings=())) == "no schedule on gpu1"
