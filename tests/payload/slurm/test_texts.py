"""What Slurm 22.05 really printed, read; and what no Slurm is to be handed."""

from pathlib import Path

import pytest

from remote_payload.schema.slurm import SlurmPartition, SlurmSettings, problem_of, seconds_of
from remote_payload.slurm.taking_up import why_ended
from remote_payload.slurm.texts import (
    GOING,
    JobView,
    job_id_in,
    read_config,
    read_sacct,
    read_scontrol,
    read_sinfo,
    read_squeue,
)

SQUEUE = """\
1|CANCELLED|node1|None
2_1|FAILED|node1|NonZeroExitCode
3|FAILED||BadConstraints
2_5|PENDING||JobArrayTaskLimit
4|PENDING||JobHeldUser
2_0|RUNNING|node1|None
"""
SCONTROL = """\
JobId=7 ArrayJobId=2 ArrayTaskId=0 ArrayTaskThrottle=3 JobName=few.sh UserId=root(0) GroupId=root(0) MCS_label=N/A \
Priority=4294901758 Nice=0 Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 \
Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:03 TimeLimit=365-00:00:00 NodeList=node1 BatchHost=node1 \
Command=/root/few.sh WorkDir=/root Power=
JobId=4 JobName=e3r.r1 UserId=root(0) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=2 \
ExitCode=1:0 NodeList= NumNodes=1 Comment=it said JobState=DONE Command=(null)
JobId=9 JobName=x JobState=CANCELLED Reason=None Restarts=1 ExitCode=0:9 NodeList=node3
slurm_load_jobs error: Invalid job id specified
"""
SACCT = """\
1|CANCELLED by 1000|0:15|node1
2_1|FAILED|9:0|node1
2_[8-39]|PENDING|0:0|None assigned
5|NODE_FAIL|0:0|node3
5|COMPLETED|0:0|node2
"""
SINFO = "gpu*|up|infinite|3|gpu:h200:8\ncpu|drain|2-00:00:00|12|(null)\n"
CONFIG = """\
Configuration data as of 2026-11-30T11:46:55
AccountingStorageType   = accounting_storage/none
MaxArraySize            = 1001
ProctrackType           = proctrack/cgroup
SLURM_VERSION           = 22.05.8
"""


def test_squeue() -> None:
    found = read_squeue(SQUEUE)
    assert found["2_1"] == JobView(state="FAILED", node="node1", reason="NonZeroExitCode")
    assert found["3"] == JobView(state="FAILED", reason="BadConstraints")
    assert [job_id for job_id, view in found.items() if not view.is_over] == ["2_5", "4", "2_0"]
    assert found["2_5"].words == "PENDING (JobArrayTaskLimit)"
    assert read_squeue("slurm_load_jobs error: whatever\n\n") == {}


def test_scontrol_names_elements_as_squeue_does() -> None:
    found = read_scontrol(SCONTROL)
    assert set(found) == {"2_0", "4", "9"}
    assert found["2_0"] == JobView(state="RUNNING", node="node1", exit_code=0, signal=0, restarts=0)
    assert found["4"].words == "FAILED (NonZeroExitCode), exit code 1"
    assert found["4"].restarts == 2
    assert found["9"].words == "CANCELLED, signal 9, on node3"


def test_sacct_tells_who_cancelled_and_of_several_starts_the_last() -> None:
    found = read_sacct(SACCT)
    assert found["1"] == JobView(state="CANCELLED", node="node1", reason="by 1000", exit_code=0, signal=15)
    assert (found["2_1"].exit_code, found["2_1"].is_over) == (9, True)
    assert found["5"].state == "COMPLETED"
    assert found["2_[8-39]"].node is None


def test_partitions_and_configuration() -> None:
    first, second = read_sinfo(SINFO)
    assert first == SlurmPartition(
        name="gpu", is_default=True, state="up", time_limit="infinite", nodes=3, gres="gpu:h200:8"
    )
    assert (second.is_default, second.gres) == (False, "")
    assert read_config(CONFIG)["ProctrackType"] == "proctrack/cgroup"


@pytest.mark.parametrize("state", ["NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "TIMEOUT", "COMPLETED", "OUT_OF_MEMORY"])
def test_ends_are_ends(state: str) -> None:
    assert state not in GOING


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("slurmstepd: error: *** JOB 1 ON node1 CANCELLED AT 2026-11-30T11:45 DUE TO JOB REQUEUE ***", "JOB REQUEUE"),
        ("slurmstepd: error: *** JOB 71 ON g7 CANCELLED AT 2026-11-30T11:45 DUE TO TIME LIMIT ***", "TIME LIMIT"),
        ("slurmstepd: error: *** JOB 71 ON g7 CANCELLED AT 2026-11-30T11:45 DUE TO PREEMPTION ***", "PREEMPTION"),
        ("slurmstepd: error: *** JOB 1 ON node1 CANCELLED AT 2026-11-30T11:45:26 ***", ""),
        ("Traceback (most recent call last):", None),
    ],
)  # fmt: skip
def test_why_slurm_ended_a_job_stands_in_its_output(tmp_path: Path, line: str, why: str | None) -> None:
    log = tmp_path / "slurm.log"
    log.write_text(f"before\n{line}\n")
    assert why_ended(log) == why
    assert why_ended(log, from_byte=log.stat().st_size) is None  # of an earlier start
    assert why_ended(tmp_path / "none") is None


@pytest.mark.parametrize(
    "word",
    [
        "--wrap=rm",
        "--output=x",
        "--outp=x",
        "--o=x",
        "-o",
        "script.sh",
        "--parsable",
        "--arr=1",
        "--wait",
        "--x\ny",
        "",
    ],
)
def test_options_that_would_break_a_run_are_refused(word: str) -> None:
    assert problem_of(word) is not None
    with pytest.raises(ValueError, match=r"slurm\.options"):
        SlurmSettings(options=(word,))


def test_options_that_say_where_to_run_are_taken() -> None:
    words = ("--constraint=h200", "--exclusive", "--no-requeue", "--nodelist=node1", "--mem-per-cpu=4G", "--requeue")
    assert SlurmSettings(options=words).options == words


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("30", 1800), ("5:30", 330), ("2:30:00", 9000), ("1-12", 129600), ("1-12:30", 131400), ("1-00:00:05", 86405)],
)
def test_time_limits_in_all_of_slurms_forms(limit: str, seconds: float) -> None:
    assert seconds_of(limit) == seconds
    assert seconds_of("UNLIMITED") is None


@pytest.mark.parametrize(
    "settings",
    [
        {"time": "soon"},
        {"time": "2"},
        {"partition": "a b"},
        {"gres": "gpu:1; rm"},
        {"signal_s": 1},
        {"poll_s": 0.5},
        {"mem": "-1"},
        {"answer_s": 60.0},
    ],
)
def test_settings_that_slurm_would_not_understand_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"slurm\."):
        SlurmSettings(**settings)


@pytest.mark.parametrize(
    ("told", "job_id"),
    [
        ("1234\n", "1234"),
        ("1234;second\n", "1234"),
        ("Welcome to 2 clusters\n1234\nplease mind the quota: 12\n", "1234"),  # by a wrapper of the site's
        ("Submitted batch job 1234\n", "1234"),
        ("", None),
        ("job 1234 accepted", None),
    ],
)
def test_the_job_that_sbatch_tells(told: str, job_id: str | None) -> None:
    assert job_id_in(told) == job_id
