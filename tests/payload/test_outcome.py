import os
import signal
from pathlib import Path

import pytest

from remote_payload import oom
from remote_payload.oom import OomKills
from remote_payload.outcome import DISK_FULL_EXIT_CODE, Ending, judge
from remote_payload.schema import Failure

EXIT = {code: code << 8 for code in (0, 1, DISK_FULL_EXIT_CODE)}
KILLED, SEGV = signal.SIGKILL, signal.SIGSEGV  # a wait status below 128 is the signal itself


@pytest.mark.parametrize(
    ("ending", "phase"),
    [
        (Ending(wait_status=EXIT[0], result_files=1), "succeeded"),
        (Ending(wait_status=EXIT[0]), "failed"),
        (Ending(wait_status=EXIT[1], result_files=1), "failed"),
        (Ending(wait_status=KILLED), "killed"),
        (Ending(wait_status=KILLED, oom_kills=OomKills(group=0, host=3)), "killed"),
        (Ending(wait_status=KILLED, oom_kills=OomKills(group=1, host=0)), "out_of_memory"),
        (Ending(wait_status=SEGV, oom_kills=OomKills(group=1, host=0)), "killed"),
        (Ending(wait_status=EXIT[0], result_files=1, stopped="cancelled"), "cancelled"),
        (
            Ending(wait_status=KILLED, oom_kills=OomKills(group=1, host=0), stopped="timed_out", deadline_s=2.0),
            "timed_out",
        ),
        (Ending(wait_status=None), "failed"),
    ],
)
def test_the_phase_follows_from_what_was_seen(ending: Ending, phase: str) -> None:
    assert judge(ending).phase == phase


def test_signals_and_codes_are_told_apart() -> None:
    assert (judge(Ending(wait_status=SEGV)).signal, judge(Ending(wait_status=SEGV)).exit_code) == ("SIGSEGV", None)
    assert (judge(Ending(wait_status=EXIT[1])).signal, judge(Ending(wait_status=EXIT[1])).exit_code) == (None, 1)
    assert judge(Ending(wait_status=signal.SIGRTMIN + 3)).signal == f"signal {signal.SIGRTMIN + 3}"


def test_the_workers_own_word_goes_before_a_guess() -> None:
    failure = Failure(kind="rows", message="no rows")
    assert judge(Ending(wait_status=EXIT[1], failure=failure)).failure == failure
    guess = judge(Ending(wait_status=EXIT[1], stderr_tail=("boom",))).failure
    assert guess is not None
    assert (guess.kind, guess.details) == ("bug", ("boom",))
    full = judge(Ending(wait_status=EXIT[DISK_FULL_EXIT_CODE])).failure
    assert full is not None
    assert full.kind == "disk_full"


def test_a_result_without_a_manifest_did_not_succeed() -> None:
    failure = Failure(kind="disk_full", message="the result's manifest cannot be written")
    outcome = judge(Ending(wait_status=EXIT[0], failure=failure))
    assert (outcome.phase, outcome.failure) == ("failed", failure)


def test_counters_that_cannot_be_read_say_nothing() -> None:
    before, after = OomKills(group=None, host=3), OomKills(group=5, host=4)
    assert after.since(before) == OomKills(group=None, host=1)


def test_kills_for_memory_elsewhere_on_the_host_are_only_noted() -> None:
    outcome = judge(Ending(wait_status=KILLED, oom_kills=OomKills(group=0, host=2)))
    assert outcome.note == "meanwhile the kernel killed processes on this host for memory: 2"


def test_the_counters_of_this_machine_can_be_read() -> None:
    assert isinstance(oom.host_oom_kills(), int)
    groups = Path("/proc/self/cgroup").read_text()
    if "memory" in groups or os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        assert isinstance(oom.group_oom_kills(), int)
