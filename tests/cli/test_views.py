"""`runs show` and what a reader may ask of a run: every check, every depth, every trainer's rule, a step's cost."""

from pathlib import Path

import pytest

from orchestrator.store import Store
from tests.cli.conftest import Eagle
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_standalone

STORED = '[[step_costs]]\ntarget = "target"\ngpu = "made"\nbase = 1.0\nper_step = 0.1\nsource = "measured"\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, for eagle3.toml."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(store: Store) -> str:
    """A finished run with held-out rows, ten points worse on them."""
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.3})
    other, other_hits, _ = made_readings({((0, 1, 2), 1): 0.65}, rows=8)
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)))
    result = type(result)(
        **{**vars(result), "heldout": result.rows, "heldout_readings": (result.readings[0],)},
    )
    put_standalone(store, made_run("run-a1"), result, rows, hits, heldout=(other, other_hits))
    return "run-a1"


def test_the_plain_report_compares_train_and_held_out(run: str, eagle: Eagle) -> None:
    shown = eagle("runs", "show", run)
    assert shown.code == 0
    assert "Train against held-out:" in shown.out
    assert "12 train and 8 held-out rows" in shown.out
    assert "Predicted speed-up" not in shown.out  # nobody said what a step costs
    gap = eagle("runs", "show", run, "--json").json["gap"]
    assert 0.02 < gap["first_step"]["value"] < 0.2


def test_depths_with_a_cost_by_flag(run: str, eagle: Eagle) -> None:
    shown = eagle("runs", "show", run, "--depths", "--step-cost", "1.47+0.16k")
    assert shown.code == 0
    assert "r = 1.47 + 0.16 k (--step-cost 1.47+0.16k)" in " ".join(shown.out.split())
    assert "held-out rows" in shown.out
    assert [line.split()[0] for line in shown.out.splitlines()[2:5]] == ["1", "2", "3"]
    value = eagle("runs", "show", run, "--json", "--step-cost", "46.7/90@1.9").json["prediction"][0]
    assert round(value["depths"][0]["break_even_accept_length"], 2) == 3.66
    assert value["pays"] is False


def test_a_stored_cost_holds_where_target_and_device_are_its_own(run: str, eagle: Eagle, project: Path) -> None:
    (project / "eagle3.toml").write_text(STORED, encoding="utf-8")
    told = eagle("runs", "show", run, "--json").json["prediction"][0]
    assert told["step_cost"]["source"] == "measured"
    assert told["pays"] is True
    assert "Predicted speed-up:" in eagle("runs", "show", run).out
    assert eagle("runs", "show", run, "--json", "--step-cost", "9").json["prediction"][0]["pays"] is False
    (project / "eagle3.toml").write_text(STORED.replace('"made"', '"H200"'), encoding="utf-8")
    assert eagle("runs", "show", run, "--json").json["prediction"][0]["step_cost"] is None


def test_rules_and_verbose(run: str, eagle: Eagle) -> None:
    rules = eagle("runs", "show", run, "--rules").out
    assert all(words in rules for words in ("specforge", "safeailab", "speculators", "serving", "held-out rows"))
    verbose = eagle("runs", "show", run, "--verbose").out
    assert all(words in verbose for words in ("K1 tensor", "needs: ", "Every reading that was tried", "made CPU"))
    assert "K1 tensor" not in eagle("runs", "show", run).out


@pytest.mark.parametrize("command", [("runs", "show", "run-a1"), ("run", "standalone", "--host", "gpu1")])
def test_a_mistake_in_a_cost_is_said_before_anything_is_done(
    run: str, eagle: Eagle, project: Path, command: tuple[str, ...]
) -> None:
    answer = eagle(*command, "--step-cost", "fast")
    assert (answer.code, answer.out) == (2, "")
    assert "--step-cost: expected `1.9`" in answer.err
    (project / "eagle3.toml").write_text("[[step_costs]]\nbase = 0.0\n", encoding="utf-8")
    answer = eagle(*command)
    assert answer.code == 2
    assert "step_costs, table 1: `base` and `per_step` must not both be 0" in answer.err
