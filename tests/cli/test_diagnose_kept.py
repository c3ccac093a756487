"""`diagnose --run-id ID` alone is what was asked before; a flag that says what to diagnose asks anew."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.diagnose import _kept, diagnose
from orchestrator.config import Config
from orchestrator.diagnosing.keeping import asked_json, asked_of
from orchestrator.errors import ClaimedError, NotFoundError, StoreError
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.store import Store
from orchestrator.store.diagnoses import diagnosis_ids, going_on, keep_diagnosis, load_diagnosis
from tests.diagnosing.test_stages import asked

ABOUT = dataclasses.replace(asked(), job_file=Path("/jobs/b.toml"), trained="embed,2,4")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    record = DiagnosisRecord(diagnosis_id="d", created_unix_s=1.0, host="gpu1", asked_json=asked_json(ABOUT))
    keep_diagnosis(tmp_path, record)
    return Store(tmp_path)


def flags(**given: Any) -> dict[str, Any]:
    switches = {"deep": False, "again": False, "applies": False, "redact": False, "as_json": False}
    return {**{item.name or "": None for item in diagnose.params}, **switches, **given}


def test_it_is_kept_as_it_was_asked(store: Store) -> None:
    assert diagnosis_ids(store.home) == ("d",)
    assert asked_of(load_diagnosis(store.home, "d")) == ABOUT
    kept = _kept(flags(run_id="d", deep=True, budget="2m"), store, Config())
    assert kept == dataclasses.replace(ABOUT, deep=True, budget_s=120.0)


@pytest.mark.parametrize(
    "given",
    [
        {"run_id": None},
        {"trained": "embed,2,5"},
        {"heldout": "/h"},
        {"states": "embed,2"},
        {"repeats": 3},
        {"server_args": ("--x",)},
    ],
)
def test_what_is_said_anew_is_never_passed_over(store: Store, given: dict[str, Any]) -> None:
    assert _kept(flags(**{"run_id": "d", **given}), store, Config()) is None


def test_an_id_that_nobody_gave_is_not_found_unless_the_configuration_says_what_to_diagnose(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no diagnosis on this laptop is called: dd") as unknown:
        _kept(flags(run_id="dd"), store, Config())
    assert unknown.value.hint == "did you mean d?"
    for told in ({"model": "/t"}, {"attach_url": "http://127.0.0.1:9"}):
        assert _kept(flags(run_id="dd"), store, Config(jobs={"bench": told})) is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"job_file": null, "diagnosis_id": 3}'])
def test_what_cannot_be_read_says_so(store: Store, text: str) -> None:
    record = dataclasses.replace(load_diagnosis(store.home, "d"), asked_json=text)
    with pytest.raises(StoreError, match="what diagnosis d was asked cannot be read"):
        asked_of(record)


def test_two_commands_are_never_at_one_diagnosis(store: Store) -> None:
    with going_on(store.home, "d"), going_on(store.home, "e"):
        with (
            pytest.raises(ClaimedError, match="another command on this laptop is at diagnosis d"),
            going_on(store.home, "d"),
        ):
            pass
        assert diagnosis_ids(store.home) == ("d",)
    with going_on(store.home, "d"):
        pass
