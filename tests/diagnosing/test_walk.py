"""When a stage is run: until the cause is certain, within the budget, and where only it can name the fix."""

import dataclasses
from typing import Any

import pytest

from orchestrator.diagnosing.applying import fix_of
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.stages import STAGES, Stage
from orchestrator.diagnosing.walk import Diagnosed, cut_short, reason_to_skip
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.fix import Fix, ServerEdit
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.errors import InvalidRunError
from remote_payload.schema.run import RunPhase
from tests.diagnosing.test_stages import asked
from tests.diagnosis.decision.scenes import offline
from tests.support.made_runs import made_run

CERTAIN = decide(Known(offline=offline("wrong")))
UNSURE = decide(Known())
TRAINED = dataclasses.replace(asked(), trained="embed,2,4")
EDIT = ServerEdit(name="speculative_num_draft_tokens", value="4", why="what the server runs with")
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
        ("capture", TRAINED, {"config": {}}, True),  # the server's flags are mended, and the ids are not known
        ("capture", TRAINED, {"config": {}, "by_hand": ("train it anew",)}, False),
    ],
)
def test_after_a_certain_cause(name: str, about: Asked, fix: bool | dict[str, Any], is_run: bool) -> None:
    decision = CERTAIN if fix else dataclasses.replace(CERTAIN, fix=None)
    if isinstance(fix, dict):
        decision = dataclasses.replace(CERTAIN, fix=Fix(server=(EDIT,), **fix))
    assert (reason_to_skip(stage(name), about, decision, RAN, None) is None) == is_run


def test_an_unsure_decision_goes_on_and_a_budget_ends_it() -> None:
    assert reason_to_skip(stage("serve"), asked(), UNSURE, RAN, None) is None
    bounded = dataclasses.replace(asked(), budget_s=120.0, deep=True)
    assert reason_to_skip(stage("serve"), bounded, UNSURE, RAN, 60.0) is None
    assert reason_to_skip(stage("serve"), bounded, UNSURE, RAN, 0.5) == (
        "the budget of 2.0 min is used up: the same command with a longer --budget goes on"
    )


@pytest.mark.parametrize(("phase", "ends"), [("killed", True), ("lost", True), ("cancelled", True), ("failed", False)])
def test_a_cheap_stage_that_was_cut_short_comes_before_the_dear_ones(phase: RunPhase, ends: bool) -> None:
    run = made_run("d.offline", phase=phase)
    assert run.state is not None
    run = dataclasses.replace(
        run, state=dataclasses.replace(run.state, signal="SIGKILL" if phase == "killed" else None)
    )
    reason = cut_short(Results(records={"offline": run}), None)
    assert (reason is not None) == ends
    assert reason is None or reason.startswith("offline was cut short")


def test_which_ids_mend_it_is_not_known_where_the_servers_flags_alone_are() -> None:
    decision = dataclasses.replace(CERTAIN, fix=Fix(config={}, server=(EDIT,)))
    with pytest.raises(InvalidRunError, match="not known yet which states it was trained on"):
        fix_of(Diagnosed(asked=asked(), known=Known(offline=offline("wrong")), decision=decision, results=RAN))
