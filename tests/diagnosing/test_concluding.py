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
