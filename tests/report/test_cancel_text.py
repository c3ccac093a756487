import pytest

from orchestrator.report.runs_text import cancel_text, status_text
from remote_payload.schema import CancelAnswer, RunState, StatusAnswer


@pytest.mark.parametrize(
    ("phase", "was_terminal", "ended", "survivors", "text"),
    [
        ("cancelled", False, (), (), "r1: cancelled; nothing of it is left on the host"),
        ("succeeded", True, (), (), "r1: was over before: succeeded"),
        (
            "lost",
            True,
            (7, 8),
            (),
            "r1: was over before: lost; ended what was left of it, processes: 7, 8; nothing of it is left on the host",
        ),
        (
            "lost",
            True,
            (7,),
            (8,),
            "r1: was over before: lost; ended what was left of it, processes: 7; could not be killed: 8",
        ),
        ("cancelled", False, (), (8,), "r1: cancelled; could not be killed: 8"),
    ],
)
def test_cancel_says_what_it_ended_and_what_is_left(
    phase: str, was_terminal: bool, ended: tuple[int, ...], survivors: tuple[int, ...], text: str
) -> None:
    state = RunState(run_id="r1", sequence=1, phase=phase)  # type: ignore[arg-type]
    answer = CancelAnswer(state=state, was_terminal=was_terminal, ended=ended, survivors=survivors)
    assert cancel_text(answer) == text


def test_a_host_whose_only_runs_are_damaged_is_not_called_empty() -> None:
    answer = StatusAnswer(states=(), specs=(), heartbeat_ages_s=(), unreadable=("r1: damaged",))
    assert status_text(answer, "gpu1") == "unreadable: r1: damaged"
    assert status_text(StatusAnswer(states=(), specs=(), heartbeat_ages_s=()), "gpu1") == "no runs on gpu1"
