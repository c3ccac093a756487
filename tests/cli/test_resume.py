"""`run standalone --resume RUN`: what can be refused before any host is asked."""

from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.support.made_runs import made_run


def test_a_run_of_another_host_is_no_run_to_go_on_with(store: Store, eagle: Eagle) -> None:
    store.begin(made_run("run-a1"))
    answer = eagle("run", "standalone", "--host", "gpu2", "--resume", "run-a")
    assert answer.code == 2
    assert "expected a run of standalone on gpu2, `run-a1` is one of: standalone on gpu1" in answer.err


def test_a_run_that_only_its_host_knows_needs_its_settings_again(eagle: Eagle) -> None:
    answer = eagle("run", "standalone", "--host", "gpu1", "--resume", "run-elsewhere")
    assert answer.code == 2
    assert "`draft` is not set; give --draft" in answer.err
