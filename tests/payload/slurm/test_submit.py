"""Submission through tools that behave as sites' wrappers may; Slurm itself is not needed."""

import time
from pathlib import Path

import pytest

from remote_payload.runstate import advance
from remote_payload.schema import RunState, to_json
from remote_payload.schema.slurm import SlurmJob, SlurmSettings
from remote_payload.slurm.settle import in_the_end
from remote_payload.slurm.submit import time_of
from tests.payload.rig import Rig, of_kind

SETTINGS = SlurmSettings(poll_s=1.0, answer_s=5.0)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "root")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools, the first on PATH; each writes down how it was called in `asked`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $@" >> {folder}/asked\n{body}\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("limit", "units", "elements", "told"),
    [
        (None, 5000, 1000, None),
        ("10", 1000, 1000, "10"),
        ("10", 1001, 1000, "0-00:20:00"),
        ("8:00:00", 5000, 1000, "1-16:00:00"),
        ("1:30", 2001, 1000, "0-00:05:00"),  # whole minutes, as Slurm counts
        ("UNLIMITED", 5000, 1000, "UNLIMITED"),
        ("10", 1, None, "10"),
    ],
)
def test_an_element_has_the_time_of_all_its_units(
    limit: str | None, units: int, elements: int | None, told: str | None
) -> None:
    assert time_of(limit, units, elements) == told


def test_what_was_submitted_without_an_id_told_is_taken_back(rig: Rig, tools: Path) -> None:
    tool(tools, "sbatch", "echo your job is in good hands")
    tool(tools, "squeue", f"echo '7|{rig.run('r1').path}'; echo '8|/elsewhere'")
    tool(tools, "scancel", "")
    (error,) = of_kind(rig.launch(rig.spec("r1", slurm=SETTINGS), exit_code=1), "error")
    assert "sbatch did not tell a job id: 'your job is in good hands'" in error.message
    assert (tools / "asked").read_text().splitlines()[-1] == "scancel --quiet 7"
    assert not rig.run("r1").path.exists()


def test_a_run_that_an_earlier_submission_took_meanwhile_is_that_ones(rig: Rig, tools: Path) -> None:
    taken = SlurmJob(job_id="6", submitted_unix_s=1.0, poll_s=1.0, answer_s=5.0, node="node1")
    state = to_json(RunState(run_id="r1", sequence=1, phase="running", slurm=taken))
    tool(tools, "sbatch", f"echo '{state}' > {rig.run('r1').state}; echo 7")
    tool(tools, "scancel", "")
    (launched,) = of_kind(rig.launch(rig.spec("r1", slurm=SETTINGS)), "launched")
    assert launched.state.slurm == taken
    assert (tools / "asked").read_text().splitlines()[-1] == "scancel --quiet 7"


def test_who_looks_seldom_waits_until_slurms_word_has_stood(rig: Rig, tools: Path) -> None:
    tool(tools, "squeue", "echo '6|NODE_FAIL|node1|NodeDown'")
    tool(tools, "scontrol", "exit 1")
    run = rig.run("r1")
    run.result.mkdir(parents=True)
    run.spec.write_text(to_json(rig.spec("r1", slurm=SETTINGS)))
    job = SlurmJob(job_id="6", submitted_unix_s=time.time() - 9, poll_s=1.0, answer_s=5.0)
    advance(run, RunState(run_id="r1", sequence=1, phase="running", slurm=job))
    state = in_the_end(run)
    assert state is not None
    assert (state.phase, state.failure is not None) == ("lost", True)
    assert "NODE_FAIL" in (state.failure.message if state.failure else "")
