"""When a stage is run: until the cause is certain, within the budget, and where only it can name the fix."""

import dataclasses

import pytest

from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.stages import STAGES, Stage
from orchestrator.diagnosing.walk import reason_to_skip
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from tests.diagnosing.test_stages import asked
from tests.diagnosis.decision.scenes import offline
from tests.support.made_runs import made_run

CERTAIN = decide(Known(offline=offline("wrong")))
UNSURE = decide(Known())
TRAINED = dataclasses.replace(asked(), trained="embed,2,4")
RAN = Results(records={"offline": made_run("d.offline")})


def stage(name: str) -> Stage:
    return next(item for item in STAGES if item.name == name)


def test_the_scene_is_what_it_says() -> None:
    assert CERTAIN.certain
    assert CERTAIN.fix is not None
    assert not UNSURE.certain


@pytest.mark.parametrize(
    ("name", "about", "fix", "is_run"),
    [
        ("capture", asked(), True, False),
        ("capture", dataclasses.replace(asked(), deep=True), True, True),
        ("capture", TRAINED, True, False),
        ("capture", asked(), False, False),  # nobody says what it was trained on: a capture would not either
        ("capture", TRAINED, False, True),
        ("serve", TRAINED, False, False),
    ],
)
def test_after_a_certain_cause(name: str, about: Asked, fix: bool, is_run: bool) -> None:
    decision = CERTAIN if fix else dataclasses.replace(CERTAIN, fix=None)
    assert (reason_to_skip(stage(name), about, decision, RAN, None) is None) == is_run


def test_an_unsure_decision_goes_on_and_a_budget_ends_it() -> None:
    assert reason_to_skip(stage("serve"), asked(), UNSURE, RAN, None) is None
    bounded = dataclasses.replace(asked(), budget_s=120.0, deep=True)
    assert reason_to_skip(stage("serve"), bounded, UNSURE, RAN, 60.0) is None
    assert reason_to_skip(stage("serve"), bounded, UNSURE, RAN, 0.5) == "the budget of 2.0 min is used up"
