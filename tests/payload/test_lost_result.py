"""When what a run left is described in the place of its supervisor, and when not."""

import os
from pathlib import Path

import pytest

from remote_payload.lost_result import settle_lost
from remote_payload.rundir import RunDir
from remote_payload.schema import RunState

HERE = os.uname().nodename


@pytest.mark.parametrize(
    ("phase", "host", "files", "is_described"),
    [
        ("lost", HERE, 2, True),
        ("lost", HERE, 0, False),
        ("lost", "another-host", 2, False),  # whose processes cannot be seen from here
        ("killed", HERE, 2, False),
    ],
)
def test_what_a_lost_run_left_is_described_once_nothing_of_it_runs(
    tmp_path: Path, phase: str, host: str, files: int, is_described: bool
) -> None:
    run = RunDir(tmp_path / "r1")
    run.result.mkdir(parents=True)
    for number in range(files):
        (run.result / f"{number}.json").write_text("{}")
    run.heartbeat.write_text(f"7 1.0 {host}\n")
    state = RunState(run_id="r1", sequence=4, phase=phase, note="processes of the run still alive: 7")
    told = settle_lost(run, state)
    assert run.manifest.is_file() == is_described
    assert told == state if not is_described else told.note == "nothing of it runs any more; it left 2 result files"
    assert settle_lost(run, told) == told
