"""A diagnosis is one question: what stands under its id is taken, never overwritten, and asked anew where it failed."""

import dataclasses
import json
from pathlib import Path

import pytest

from orchestrator.config import Config, HostConfig
from orchestrator.diagnosing.again import told_again
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.attempts import differing
from orchestrator.diagnosing.budget import Budget
from orchestrator.diagnosing.keeping import asked_json
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.running import standing, taking_over
from orchestrator.diagnosing.same import require_same
from orchestrator.diagnosing.stages import STAGES
from orchestrator.diagnosing.walk import diagnose
from orchestrator.errors import ClaimedError, JobFileError
from orchestrator.order import Order
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.store.diagnoses import diagnosis_ids, keep_diagnosis
from orchestrator.updates import Note, Update
from remote_payload.schema import StandaloneJob, to_json
from remote_payload.schema.run import RunPhase
from tests.diagnosing.test_stages import asked
from tests.support.made_runs import made_run, put_files

CONFIG = Config()


@pytest.fixture
def told() -> list[Update]:
    """What the lease tells."""
    return []


@pytest.fixture
def lease(tmp_path: Path, told: list[Update]) -> Lease:
    """Of a host that nobody ever reaches."""
    session = HostSession("gpu1", HostConfig(ssh="gpu1.invalid"), lambda _: None)
    return Lease("d", None, Budget(), session, Store(tmp_path), told.append)


def put(lease: Lease, stage: str, about: Asked, phase: RunPhase = "succeeded", number: int = 1) -> None:
    """A stage's run as this diagnosis would ask for it, whole on this laptop."""
    run_id = about.run_id(stage) + (f".{number}" if number > 1 else "")
    record = made_run(run_id, phase=phase)
    planned = next(item for item in STAGES if item.name == stage).plan(about, CONFIG, Results())
    assert not isinstance(planned, str)
    spec = dataclasses.replace(record.spec, job_kind=planned.job.kind, job_json=to_json(planned.job))
    put_files(lease.store.begin(dataclasses.replace(record, spec=spec)), {})


def refused(lease: Lease, about: Asked) -> str:
    with pytest.raises(ClaimedError) as error:
        require_same(about, CONFIG, lease)
    assert error.value.hint is not None
    assert "`--run-id d` alone" in error.value.hint
    return error.value.message


def test_the_same_question_goes_on_and_another_is_named(lease: Lease) -> None:
    require_same(asked(), CONFIG, lease)
    put(lease, "offline", asked())
    put(lease, "serve", asked())
    require_same(asked(), CONFIG, lease)
    require_same(dataclasses.replace(asked(), deep=True, again=True, budget_s=3.0), CONFIG, lease)
    other = dataclasses.replace(asked(draft="/e"), draft="/e")
    assert "its stage offline has other settings (--draft)" in refused(lease, other)
    with pytest.raises(ClaimedError) as no_more:
        require_same(dataclasses.replace(asked(), samples={}), CONFIG, lease)
    told = "diagnosis d has a stage offline, and is asked for none now: no captured training rows were named (--rows)"
    assert no_more.value.message == told
    assert "repeat those of before" in str(no_more.value.hint)


MORE = dataclasses.replace(
    asked(repeats=3, sampled=1.0),
    samples={**asked().samples, "heldout": "/held"},
    trained="embed,2,4",
    only_training=True,
)
"""The question with more in it: held-out rows, the trainer's word, repeats, sampling."""


def test_what_is_added_runs_anew_the_stages_that_it_changes_and_no_other(lease: Lease, told: list[Update]) -> None:
    for stage in ("offline", "capture", "serve"):
        put(lease, stage, asked())
    require_same(MORE, CONFIG, lease)
    (note,) = told
    assert isinstance(note, Note)
    assert "offline (--heldout); serve (--repeats, --sampled); what was measured stays" in note.text
    orders = {
        "offline": Order(planned=MORE.offline(CONFIG), run_id="d.offline"),
        "capture": Order(planned=MORE.capture(CONFIG), run_id="d.capture"),  # the trainer's word changes no state
        "serve": Order(planned=MORE.serve(CONFIG), run_id="d.serve"),
    }
    found = {name: standing(order, lease, again=False) for name, order in orders.items()}
    assert [name for name, run in found.items() if run is not None] == ["capture"]


def test_an_earlier_question_takes_its_own_runs(lease: Lease) -> None:
    """Also behind those of another one."""
    put(lease, "offline", asked())
    put(lease, "offline", MORE, number=2)
    for about, run_id in ((asked(), "d.offline"), (MORE, "d.offline.2")):
        found = standing(Order(planned=about.offline(CONFIG), run_id="d.offline"), lease, again=False)
        assert found is not None
        assert found.run_id == run_id


@pytest.mark.parametrize(
    ("about", "runs", "expected"),
    [
        (asked(), (), "d.offline"),
        (MORE, (), "d.offline.2"),
        (asked(), ("d.offline.2",), "d.offline.2"),  # what was taken stands, whatever eagle3.toml says since
        (asked(max_prompts=3), ("d.serve",), "d.offline"),
        (
            dataclasses.replace(asked(), samples={"rows": "/other"}),
            (),
            "d.offline.2",
        ),  # of an older version of the tool
        (dataclasses.replace(asked(), samples={"rows": "/other"}), ("d.serve",), None),
    ],
)
def test_what_is_told_again_is_what_was_asked_last(
    lease: Lease, about: Asked, runs: tuple[str, ...], expected: str | None
) -> None:
    put(lease, "offline", asked(), "failed")
    put(lease, "offline", MORE, "failed", number=2)
    record = DiagnosisRecord(
        diagnosis_id="d", created_unix_s=1.0, host="gpu1", asked_json=asked_json(about), why_not="no", runs=runs
    )
    keep_diagnosis(lease.store.home, record)
    records = told_again("d", Config(hosts={"gpu1": HostConfig(ssh="gpu1")}), lease.store).results.records
    assert {name: run.run_id for name, run in records.items()} == ({} if expected is None else {"offline": expected})


def test_a_run_of_an_older_version_was_asked_the_same(lease: Lease) -> None:
    """Its job lacks the settings that came since; a setting that is gone makes it another one."""
    put(lease, "offline", asked())
    known = lease.store.load_exact("d.offline")
    job = json.loads(known.spec.job_json)
    now = asked().offline(CONFIG).job
    lacking = {key: value for key, value in job.items() if key != "add_embedding"}
    for older, differs in ((lacking, []), ({**job, "gone": 1}, ["gone"])):
        spec = dataclasses.replace(known.spec, job_json=json.dumps(older))
        assert differing(dataclasses.replace(known, spec=spec), now) == differs


@pytest.mark.parametrize(
    ("started_s", "before", "resumes"),
    [(5.0, None, "d.offline.2"), (None, "d.offline", "d.offline"), (None, None, None)],
)
def test_a_test_that_was_cut_short_goes_on_with_what_it_finished(
    started_s: float | None, before: str | None, resumes: str | None
) -> None:
    planned = asked().offline(CONFIG)
    assert isinstance(planned.job, StandaloneJob)
    earlier = dataclasses.replace(planned.job, resume=before)
    run = made_run("d.offline.2", phase="cancelled")
    assert run.state is not None
    run = dataclasses.replace(
        run,
        spec=dataclasses.replace(run.spec, job_kind="standalone", job_json=to_json(earlier)),
        state=dataclasses.replace(run.state, started_unix_s=started_s),
    )
    job = taking_over(planned, run).job
    assert isinstance(job, StandaloneJob)
    assert (job.resume, job.or_anew) == (resumes, resumes is not None)
    assert not differing(run, job)  # the next try is one of the same question
    served = asked().serve(CONFIG)
    assert taking_over(served, run) is served


def test_what_failed_is_asked_as_it_is_meant_now(lease: Lease) -> None:
    put(lease, "offline", asked(), "failed")
    other = dataclasses.replace(asked(draft="/e"), draft="/e")
    refused(lease, other)
    require_same(dataclasses.replace(other, again=True), CONFIG, lease)
    put(lease, "offline", asked(), "cancelled", number=2)
    require_same(other, CONFIG, lease)


def test_what_is_home_is_taken_without_the_host_and_what_comes_to_nothing_is_not(lease: Lease) -> None:
    order = Order(planned=asked().offline(CONFIG), run_id="d.offline")
    assert standing(order, lease, again=False) is None
    put(lease, "offline", asked(), "failed")
    found = standing(order, lease, again=False)
    assert found is not None
    assert found.phase == "failed"
    assert standing(order, lease, again=True) is None
    put(lease, "offline", asked(), number=2)
    found = standing(order, lease, again=True)
    assert found is not None
    assert found.run_id == "d.offline.2"
    assert standing(dataclasses.replace(order, planned=asked().serve(CONFIG)), lease, again=False) is None


def test_what_is_refused_is_not_kept(lease: Lease) -> None:
    nothing = Asked(diagnosis_id="d", model=None, draft=None)
    with pytest.raises(JobFileError, match="--model"):
        diagnose(nothing, CONFIG, lease)
    put(lease, "offline", asked())
    with pytest.raises(ClaimedError):
        diagnose(dataclasses.replace(asked(draft="/e"), draft="/e"), CONFIG, lease)
    assert diagnosis_ids(lease.store.home) == ()
