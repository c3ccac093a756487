"""The look before any stage: what it says that it read, and what of it is kept."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config import Config
from orchestrator.diagnosing.gathering import known_of
from orchestrator.diagnosing.keeping import asked_json, asked_of
from orchestrator.diagnosing.linting import Looked, read_words, results_of
from orchestrator.diagnosing.results import Results
from orchestrator.errors import StoreError
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.store import Store
from orchestrator.store.diagnoses import find_diagnosis
from remote_payload.schema.capture_rule import CaptureRule, WiringFacts
from tests.diagnosing.test_stages import asked
from tests.diagnosis.test_effective_capture import LLAMA, config, rule, target

FACTS = WiringFacts(
    rule=rule("0.5.23", LLAMA), target_config=target(LLAMA, 8), draft_config=config([1, 3, 4]), fc_shape=(64, 192)
)


def record(facts: WiringFacts | None = FACTS, **changes: Any) -> DiagnosisRecord:
    about = dataclasses.replace(asked(), **changes)
    return DiagnosisRecord(
        diagnosis_id="d", created_unix_s=1.0, host="gpu1", asked_json=asked_json(about), facts=facts, about_json="[]"
    )


@pytest.mark.parametrize(
    ("changes", "why_not", "told"),
    [
        ({}, None, "read: the target's config.json, the drafter's config.json, the source of SGLang 0.5.23"),
        (
            {"rule": CaptureRule(version=None, target_class=None)},
            "no sglang",
            "read: the target's config.json, the drafter's config.json; not read: an installed SGLang's source "
            "(no sglang)",
        ),
        (
            {"target_config": None, "draft_config": None, "rule": CaptureRule(version=None, target_class=None)},
            None,
            "not read: the target's config.json, the drafter's config.json, an installed SGLang's source",
        ),
    ],
)
def test_the_look_says_what_it_read(changes: dict[str, Any], why_not: str | None, told: str) -> None:
    assert read_words(dataclasses.replace(FACTS, **changes), why_not) == told
    assert read_words(None, "it takes both folders") == "nothing was read: it takes both folders"


def test_what_could_not_be_read_again_never_takes_a_good_ones_place(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, broken = record(trained="embed,2,4"), record(trained="embed,x")
    Looked(record=good, results=Results()).keep(store)
    with pytest.raises(StoreError, match="what diagnosis d was asked cannot be read"):
        Looked(record=broken, results=Results()).keep(store)
    kept = find_diagnosis(store.home, "d")
    assert kept == good
    assert asked_of(kept).trained == "embed,2,4"


@pytest.mark.parametrize("words", [("--pp-size=2",), ("--x", "--pipeline-parallel-size", "4"), ("--pp", "2")])
def test_over_pipeline_stages_the_source_does_not_tell_what_is_fed(tmp_path: Path, words: tuple[str, ...]) -> None:
    store = Store(tmp_path)
    alone, spread = asked(), asked(server_args=list(words))
    known = known_of(alone, Config(), results_of(record(), alone, Config(), store), store)
    assert known.resolved is not None
    assert known.resolved.states == (2, 4, 5)
    over = known_of(spread, Config(), results_of(record(), spread, Config(), store), store)
    assert over.resolved is not None
    assert over.resolved.states is None
    assert "pipeline stages only the last is told" in str(over.resolved.problem)
