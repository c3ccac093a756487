"""`run standalone --resume RUN`: what can be refused before any host is asked."""

import pytest

from orchestrator.outcome import error_of
from orchestrator.store import Store
from remote_payload.schema.run import RunPhase
from tests.cli.conftest import Eagle
from tests.support.made_runs import made_run


def test_a_run_of_another_host_is_no_run_to_go_on_with(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("run-a1"))
    answer = eagle("run", "standalone", "--host", "gpu2", "--resume", "run-a")
    assert answer.code == 2
    assert "expected a run of standalone on gpu2, `run-a1` is one of: standalone on gpu1" in answer.err


def test_a_run_that_is_not_known_here_is_named_as_the_mistake(eagle: Eagle) -> None:
    answer = eagle("run", "standalone", "--host", "gpu1", "--resume", "run-elsewhere")
    assert answer.code == 6
    said, hint = answer.err.splitlines()
    assert said == "error: --resume: no run of this laptop is called, or begins with: run-elsewhere"
    assert "its settings again (`draft` is not set; give --draft" in hint


@pytest.mark.parametrize(
    ("phase", "kind", "expected"),
    [
        (
            "lost",
            "standalone",
            "`eagle3-remote run standalone --host gpu1 --resume run-a1` asks for the same job again",
        ),
        ("timed_out", "standalone", "--resume run-a1"),
        ("killed", "standalone", "--resume run-a1"),
        ("lost", "selftest", "`eagle3-remote cancel run-a1` ends what may be left of it; else launch it again"),
    ],
)
def test_a_run_that_was_cut_off_says_how_its_work_goes_on(phase: RunPhase, kind: str, expected: str) -> None:
    state = made_run("run-a1", phase=phase).state
    assert state is not None
    error = error_of(state, job_kind=kind, host="gpu1")
    assert error is not None
    assert error.hint is not None
    assert expected in error.hint
