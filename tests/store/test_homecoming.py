"""Whether a run is home: its result is here, or its host said that there is none; that its end was seen is no proof."""

from pathlib import Path

import pytest

from orchestrator.records import RunHost, RunRecord
from orchestrator.store import Store
from orchestrator.store.homecoming import is_home, note_no_result
from remote_payload.schema import RunSpec, RunState, SelftestJob, to_json
from remote_payload.schema.run import RunPhase

SPEC = RunSpec(
    run_id="r1",
    job_kind="selftest",
    job_json=to_json(SelftestJob()),
    python="/usr/bin/python3",
    payload_sha256="0" * 64,
    environment={},
    launched_by="somebody@laptop",
    created_unix_s=1.0,
)


def record(phase: RunPhase) -> RunRecord:
    state = RunState(run_id="r1", sequence=3, phase=phase)
    return RunRecord(host=RunHost(name="gpu1", destination="gpu1"), spec=SPEC, state=state)


@pytest.mark.parametrize("phase", ["failed", "cancelled", "lost", "timed_out"])
def test_an_end_that_was_only_seen_is_not_home(tmp_path: Path, phase: RunPhase) -> None:
    run = Store(tmp_path).begin(record(phase))
    assert not is_home(run, record(phase))
    note_no_result(run)
    assert is_home(run, record(phase))
    assert not is_home(run, record("running"))


def test_a_run_that_succeeded_is_home_with_its_manifest_alone(tmp_path: Path) -> None:
    run = Store(tmp_path).begin(record("succeeded"))
    note_no_result(run)
    assert not is_home(run, record("succeeded"))
    run.result.mkdir()
    run.manifest.write_text("{}")
    assert is_home(run, record("succeeded"))
    assert not is_home(run, record("running"))
