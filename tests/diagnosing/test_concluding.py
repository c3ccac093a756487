"""A verdict needs something that was measured: what both configs foresee is none where every stage failed."""

import dataclasses

import pytest

from orchestrator.cli.diagnose import _end
from orchestrator.diagnosing.concluding import concluded
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.planned import Planned
from orchestrator.errors import CheckpointError
from orchestrator.report.decision_text import decision_text, title
from remote_payload.schema.capture_rule import CaptureRule, WiringFacts
from remote_payload.schema.run import Failure, RunPhase
from tests.diagnosing.test_stages import asked
from tests.diagnosis.decision.scenes import offline
from tests.support.made_runs import made_run

FORESEEN = Known(planned=Planned(num_steps=1, eagle_topk=1, num_draft_tokens=16, is_chain=True))


def results(**phases: RunPhase) -> Results:
    records = {}
    for stage, phase in phases.items():
        record = made_run(f"d.{stage}", phase=phase)
        assert record.state is not None
        why = Failure(kind="checkpoint", message="no such folder") if phase == "failed" else None
        records[stage] = dataclasses.replace(record, state=dataclasses.replace(record.state, failure=why))
    return Results(records=records)


def test_what_is_foreseen_is_no_verdict_where_every_stage_failed() -> None:
    failed = results(offline="failed", capture="failed", serve="failed")
    decision = concluded(decide(FORESEEN), failed)
    assert (decision.verdict, decision.certain, decision.causes) == ("cannot_tell", False, ("parameters",))
    assert title(decision) == "CANNOT TELL YET: nothing was measured; foreseen: parameters"
    assert decision.headline.startswith(
        "cannot tell yet: nothing was measured, offline, capture, serve failed; foreseen:"
    )
    assert "asked for 16 draft tokens" in decision_text(decision)
    found = Diagnosed(asked=asked(), known=FORESEEN, decision=decision, results=failed)
    with pytest.raises(CheckpointError, match="no such folder"):  # its exit code is the first stage's
        _end(found, None, None)


@pytest.mark.parametrize(
    ("known", "ran"),
    [
        (FORESEEN, results(offline="succeeded", serve="failed")),
        (FORESEEN, results()),  # nothing failed: what is foreseen is all that was asked for
        (Known(), results(offline="failed")),
        (Known(offline=offline("wrong")), results(serve="failed")),  # certain
    ],
)
def test_any_other_decision_stays(known: Known, ran: Results) -> None:
    decision = decide(known)
    assert concluded(decision, ran) is decision


WORDS = "the drafter's rotary embedding must be one of default, linear, found: 'x'"
DIED = "the server failed, it ended with exit code 1 before it was ready"
UNKNOWN = "ValueError: Unknown RoPE scaling type x"
SAME = WiringFacts(
    rule=CaptureRule(version=None, target_class=None),
    target_config='{"rope_scaling": null}',
    draft_config='{"rope_scaling": {"type": "x"}}',
)


def stopped(test: str, server: str, facts: WiringFacts | None = SAME) -> Results:
    made = results(offline="failed", capture="failed")
    for stage, kind, message in (("offline", "checkpoint", test), ("capture", "server", DIED)):
        record = made.records[stage]
        assert record.state is not None
        details = (server,) if stage == "capture" else ()
        why = Failure(kind=kind, message=message, details=details)  # type: ignore[arg-type]
        made.records[stage] = dataclasses.replace(record, state=dataclasses.replace(record.state, failure=why))
    made.facts = facts
    return made


def test_a_config_that_neither_test_nor_server_can_load_is_named_with_its_line() -> None:
    decision = concluded(decide(Known()), stopped(WORDS, UNKNOWN))
    assert (decision.verdict, decision.certain, decision.next_runs) == ("loading", True, ())
    told = decision_text(decision)
    assert 'the same line of its config.json: "rope_scaling": {"type": "x"}' in " ".join(told.split())
    assert [item.value for item in decision.findings[0].evidence] == [WORDS, UNKNOWN]
    _end(Diagnosed(asked=asked(), known=Known(), decision=decision, results=stopped(WORDS, UNKNOWN)), None, None)


@pytest.mark.parametrize(
    ("config", "test", "server", "is_named"),
    [
        ('{"type": "yarn"}', "the drafter's rotary embedding `yarn` needs `factor` in config.json, found: nothing",
         "KeyError: 'factor'", True),
        ('{"type": "x"}', WORDS, "ValueError: Unknown RoPE scaling type y", False),
        ('{"type": "x"}', WORDS, "CUDA out of memory", False),
        ('{"type": "x"}', "the drafter's config.json needs `hidden_size`", UNKNOWN, False),
    ],
)  # fmt: skip
def test_only_the_same_word_is_the_same_reason(config: str, test: str, server: str, is_named: bool) -> None:
    facts = dataclasses.replace(SAME, draft_config=f'{{"rope_parameters": {config}}}')
    decision = concluded(decide(Known()), stopped(test, server, facts))
    assert (decision.verdict == "loading") is is_named


def test_a_target_that_has_the_same_line_may_be_what_fails() -> None:
    both = dataclasses.replace(SAME, target_config=SAME.draft_config)
    assert concluded(decide(Known()), stopped(WORDS, UNKNOWN, both)).verdict == "cannot_tell"
    assert concluded(decide(Known()), stopped(WORDS, UNKNOWN, None)).verdict == "cannot_tell"
