"""The commands to run next name what the diagnosis was asked about."""

import dataclasses

from orchestrator.diagnosing.addressing import addressed
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from tests.diagnosing.test_stages import asked


def words(about: Asked) -> dict[str, tuple[str, ...]]:
    return {run.step: run.command for run in addressed(decide(Known()), about, "gpu1").next_runs}


def test_what_is_known_is_named_and_what_is_not_stays_in_capitals() -> None:
    told = words(asked())
    assert told["standalone"] == (
        *("eagle3-remote", "run", "standalone", "--host", "gpu1", "--draft", "/d", "--target", "/t", "--rows", "/r"),
        *("--heldout", "HELDOUT_ROWS"),
    )
    assert told["serve_train"][-2:] == ("--prompts", "/p")
    assert "/h" in told["serve_heldout"]
    alone = dataclasses.replace(asked(heldout_prompts=None), only_training=True)
    assert "/p" in words(alone)["serve_train"]
    assert "HELDOUT_PROMPTS.jsonl" in words(alone)["serve_heldout"]
    assert "TRAIN_PROMPTS.jsonl" in words(asked(heldout_prompts=None))["serve_train"]
    assert "TARGET" in words(dataclasses.replace(asked(), model=None))["standalone"]
