"""Reports against golden files. `EAGLE3_WRITE_GOLDEN=1 pytest tests/report` writes them anew; read the difference."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compare.stats import Estimate
from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.diagnosis.verdict import Effect
from orchestrator.records import Baseline, BaselineEntry, BaselineNumber
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.report.baseline_text import baseline_text, baselines_text
from orchestrator.report.content import RunReport, report_standalone
from orchestrator.report.json import run_json
from orchestrator.report.question import Question
from orchestrator.report.runs_text import cancel_text, runs_json, runs_text, status_text
from orchestrator.report.text import run_text
from orchestrator.report.views import View, view_text
from orchestrator.store import RunSummary
from remote_payload.schema import CancelAnswer, DeclaredWiring, Failure, GraphFlag, RunState, SkippedRow, StatusAnswer
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run

GOLDEN = Path(__file__).parents[1] / "golden" / "report"
STORY: dict[tuple[tuple[int, ...], int], float] = {((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.30, ((0, 2, 1), 1): 0.45}


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("EAGLE3_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def story(
    declared: DeclaredWiring,
    rows: int = 12,
    *,
    checks: tuple[CheckResult, ...] = (),
    heldout: bool = False,
    question: Question | None = None,
    **more: Any,
) -> RunReport:
    """A report whose checks are given, so that the texts of the real ones may change."""
    row_facts, hits, readings = made_readings(STORY, rows=rows)
    result = made_result(readings, declared, rows=rows, **more)
    other = None
    if heldout:
        other_rows, other_hits, _ = made_readings({wiring: share - 0.1 for wiring, share in STORY.items()}, rows=8)
        other = (other_rows, other_hits)
        full = tuple(facts for facts in result.readings if facts.slots != (0, 2, 1))
        result = type(result)(**{**vars(result), "heldout": result.rows, "heldout_readings": full})
    made = report_standalone(result, (row_facts, hits), other, question)
    findings = tuple(item for item in checks if item.outcome == "finding")
    diagnosis = dataclasses.replace(
        made.diagnosis,
        verdict=made.wiring.verdict,
        headline=made.wiring.headline,
        fix=made.wiring.fix,
        results=checks,
        findings=findings,
    )
    return RunReport(record=made_run(), standalone=dataclasses.replace(made, diagnosis=diagnosis))


def mis_wired(**more: Any) -> RunReport:
    skipped = tuple(SkippedRow(name=f"data_{n}.ckpt", reason="not a zip file: truncated") for n in range(20, 27))
    declared = made_declared((2, 4, 5), (1, 2, 3), config_ids=(1, 3, 4))
    return story(declared, skipped=skipped, warnings=("unexpected tensor: foo.weight",), **more)


CHECKS = (
    CheckResult(check="K1", title="tensor inventory", outcome="passed", summary="all 14 tensors are there and trained"),
    CheckResult(
        check="K3",
        title="vocabulary map",
        outcome="finding",
        summary="d2t holds target ids, not offsets: 3 of 640 draft tokens mean what the engine takes them for",
        severity="fatal",
        cause="loading",
        evidence=(
            Evidence(name="draft tokens in range, read as offsets", value=0.0047, unit="share", n=640),
            Evidence(name="cosine of lm_head rows, read as ids", value=0.97, low=0.95, high=0.99, confidence=0.95),
            Evidence(name="all zero", value="no"),
        ),
        remedy=("subtract arange(640) from d2t and export again", "then run this test again"),
        refuted_by="t2d marks the tokens that d2t leads to when it is read as offsets",
    ),
    CheckResult(
        check="K20",
        title="data lint",
        outcome="finding",
        summary="9 of 12 rows are cut at 60 tokens",
        severity="minor",
        cause="data",
        evidence=(Evidence(name="rows cut", value=9, unit="rows", n=12),),
        remedy=("capture with a longer limit",),
    ),
    CheckResult(
        check="capture",
        title="fresh forward",
        outcome="cannot_tell",
        summary="the target was not run on this host",
        evidence=(Evidence(name="rows compared", value=None),),
        needs="transformers on the host",
    ),
)
COST = StepCost(base=1.47, per_step=0.16, source="eagle3.toml", target="target")


def test_mis_wired() -> None:
    check("mis_wired.txt", run_text(mis_wired()))


def test_mis_wired_on_a_narrow_terminal() -> None:
    text = run_text(mis_wired(), width=80)
    check("mis_wired_80.txt", text)
    verbose = run_text(mis_wired(checks=CHECKS, heldout=True), width=80, verbose=True)
    assert [line for line in [*text.splitlines(), *verbose.splitlines()] if len(line) > 80] == []


def test_sound() -> None:
    check("sound.txt", run_text(story(made_declared((0, 2, 4), (0, 1, 2), config_ids=(-1, 1, 3)))))


def test_findings_stand_with_their_fix_before_the_figures() -> None:
    report = mis_wired(checks=CHECKS, heldout=True, question=Question(costs=(COST,)))
    text = run_text(report)
    check("findings.txt", text)
    assert text.index("K3 vocabulary map, fatal") < text.index("subtract arange(640)") < text.index("step 1 accuracy")
    assert "K1" not in text  # it passed


def test_verbose_shows_every_check_every_reading_and_every_row_left_out() -> None:
    report = mis_wired(checks=CHECKS, heldout=True, question=Question(costs=(COST,)))
    text = run_text(report, verbose=True)
    check("verbose.txt", text)
    for words in ("K1 tensor inventory: passed", "needs: transformers", "refuted by: t2d", "data_26.ckpt"):
        assert words in text


def test_a_finding_that_takes_the_top_line_brings_its_own_two_numbers() -> None:
    report = story(made_declared((0, 2, 4), (0, 1, 2)), checks=CHECKS)
    assert report.standalone is not None
    fault = CHECKS[1]
    diagnosis = dataclasses.replace(
        report.standalone.diagnosis, verdict="loading_fault", headline=fault.summary, fix=fault.remedy
    )
    text = run_text(
        RunReport(record=report.record, standalone=dataclasses.replace(report.standalone, diagnosis=diagnosis))
    )
    check("loading_fault.txt", text)
    assert text.splitlines()[2].split("  ")[-1] == "0.5 % n=640"
    assert "\nThe wiring: sound: serving feeds the drafter the states it reads best\n" in text


def on_top(fault: CheckResult, question: Question | None = None) -> str:
    """The report where this finding has the top line and the wiring is sound."""
    report = story(made_declared((0, 2, 4), (0, 1, 2)), checks=(fault,), question=question)
    assert report.standalone is not None
    diagnosis = dataclasses.replace(
        report.standalone.diagnosis, verdict="loading_fault", headline=fault.summary, fix=fault.remedy
    )
    shown = dataclasses.replace(report.standalone, diagnosis=diagnosis)
    return run_text(RunReport(record=report.record, standalone=shown))


def test_rows_that_are_not_trusted_say_nothing_about_the_wiring() -> None:
    shifted = dataclasses.replace(CHECKS[1], check="K10", cause="data", summary="the rows are shifted")
    assert "The wiring:" not in on_top(shifted)
    assert "The wiring: sound" in on_top(dataclasses.replace(shifted, check="K20"))


def test_words_are_no_proof() -> None:
    words = (Evidence(name="key", value="transformer_layer_config"), Evidence(name="unmeasured", value=None))
    text = on_top(dataclasses.replace(CHECKS[1], evidence=words))
    assert text.splitlines()[2] == "What to do:"
    assert "transformer_layer_config" not in text


def test_figures_beside_a_config_that_the_server_cannot_read_say_so() -> None:
    nested = dataclasses.replace(CHECKS[1], check="K2", severity="serious", summary="nested config")
    assert "SGLang does not read its config rightly (K2)" in on_top(nested)
    assert "SGLang does not read its config rightly" not in on_top(dataclasses.replace(nested, severity="minor"))
    assert "SGLang does not read its config rightly" not in on_top(CHECKS[1])
    assert on_top(nested, Question(costs=(COST,))).count("SGLang does not read") == 2  # beside the speed-up, too


def test_a_gap_has_the_checks_own_word() -> None:
    gap = CheckResult(check="gap", title="train against held-out", outcome="passed", summary="+8.7 points: honest")
    made = story(made_declared((0, 2, 4), (0, 1, 2)), checks=(gap,), heldout=True)
    assert "\nTrain against held-out: +8.7 points: honest\n" in run_text(made)
    unsure = dataclasses.replace(gap, outcome="cannot_tell", summary="+8.7 points, not surely more", needs="rows")
    text = run_text(story(made_declared((0, 2, 4), (0, 1, 2)), checks=(unsure,), heldout=True))
    assert "\nTrain against held-out: cannot tell: +8.7 points, not surely more\n" in text


def test_the_sglang_that_a_sound_config_needs_is_named() -> None:
    declared = made_declared((0, 2, 4), (0, 1, 2), config_ids=(-1, 1, 3))
    declared = type(declared)(**{**vars(declared), "valid_for": "SGLang 0.5.22 to 0.5.23"})
    assert "served      states embed,2,4, by the rule of SGLang 0.5.22 to 0.5.23" in run_text(story(declared))


def test_a_resumed_run_says_how_much_was_measured_elsewhere() -> None:
    report = mis_wired()
    assert "resumed" not in run_text(report)
    made = report.standalone
    assert made is not None
    for rows, words in ((7, "7 rows were"), (1, "1 row was"), (None, "its finished rows were")):
        result = type(made.result)(**{**vars(made.result), "resumed_from": "run-a", "resumed_rows": rows})
        text = run_text(RunReport(record=report.record, standalone=dataclasses.replace(made, result=result)))
        assert f"resumed     from run-a: {words} measured there" in text


def test_a_run_that_is_not_kept_is_not_offered_to_be_shown_again() -> None:
    text = run_text(mis_wired(), kept=False)
    assert "runs show RUN" not in text
    assert "This run is not kept" in text


def test_what_step_one_cannot_show_is_proven_by_accepted_drafts() -> None:
    """A drafter whose later steps are fed otherwise: both readings are alike at step 1."""
    report = story(made_declared((0, 2, 4), (0, 1, 2)))
    made = report.standalone
    assert made is not None
    best, other = made.wiring.best, made.wiring.runner_up
    assert other is not None
    fed = dataclasses.replace(best, facts=type(best.facts)(**{**vars(best.facts), "changes": ("feedback=normed",)}))
    ahead = Estimate(value=0.29, low=0.09, high=0.49, confidence=0.975, rows=12)
    effect = Effect(keys=("feedback",), best=("normed",), served=("raw",), reverted=other, difference=ahead)
    wiring = dataclasses.replace(
        made.wiring,
        verdict="mis_read",
        best=fed,
        declared=other,
        runner_up=other,
        against="declared",
        difference=Estimate(value=0.0, low=-0.01, high=0.01, rows=12),
        headline="mis-read: serving would compute feedback=raw",
        effects=(effect,),
    )
    top = dataclasses.replace(made.diagnosis, verdict="mis_read", headline=wiring.headline)
    shown = dataclasses.replace(made, wiring=wiring, diagnosis=top)
    text = run_text(RunReport(record=report.record, standalone=shown))
    check("mis_read.txt", text)
    assert "accepted drafts" in text.splitlines()[2]
    assert "+0.29 a position, 97.5 % interval +0.09 to +0.49, 12 rows" in text
    assert "computed with" in text
    fed_raw = GraphFlag(name="feedback", value="raw", source="default", evidence="`norm_output` is absent")
    checkpoint = type(shown.result.checkpoint)(**{**vars(shown.result.checkpoint), "graph": (fed_raw,)})
    result = type(shown.result)(**{**vars(shown.result), "checkpoint": checkpoint})
    told = run_text(RunReport(record=report.record, standalone=dataclasses.replace(shown, result=result)))
    (line,) = (line for line in told.splitlines() if line.startswith("computed with"))
    assert line.split() == ["computed", "with", "feedback=raw", "feedback=normed"]


def test_a_gap_on_top_is_proven_by_its_own_numbers_once() -> None:
    report = story(made_declared((0, 2, 4), (0, 1, 2)), heldout=True)
    made = report.standalone
    assert made is not None
    top = dataclasses.replace(made.diagnosis, verdict="generalization_gap", headline="generalization gap: +9 points")
    text = run_text(RunReport(record=report.record, standalone=dataclasses.replace(made, diagnosis=top)))
    assert text.splitlines()[2].startswith("  step-1 accuracy  74.2 % train  against  65.5 % held-out")
    assert "Train against held-out:" not in text


def test_every_depth() -> None:
    check("depths.txt", view_text(mis_wired(heldout=True, question=Question(costs=(COST,))), "depths"))
    unknown = view_text(mis_wired(), "depths")
    assert "Speed-up unknown" in unknown
    assert "break-even" not in unknown
    flat = " ".join(view_text(mis_wired(question=Question(costs=(StepCost(base=1.9, source="x"),))), "depths").split())
    assert "best at" not in flat
    assert "at 3 steps: speed-up 1.45" in flat
    assert "r does not depend on the number of steps k, so no number is best" in flat
    doubtful = Question(costs=(StepCost(base=0.5, source="somebody"),))
    assert "measure the baseline again" in " ".join(view_text(mis_wired(question=doubtful), "depths").split())


def test_every_rule() -> None:
    check("rules.txt", view_text(mis_wired(heldout=True), "rules"))
    for view in ("rules", "depths"):
        narrow = view_text(mis_wired(heldout=True, question=Question(costs=(COST,))), view, width=80)
        assert max(map(len, narrow.splitlines())) <= 80
    assert "simulated_acc_len" in view_text(mis_wired(), "rules", width=80)


def test_views_of_a_run_without_figures_are_its_plain_report() -> None:
    record = made_run(phase="failed")
    views: tuple[View, ...] = ("report", "verbose", "depths", "rules")
    assert {view_text(RunReport(record=record), view) for view in views} == {run_text(RunReport(record=record))}


def test_the_declared_figures_stand_first_and_a_wider_interval_is_explained() -> None:
    report = story(made_declared((0, 2, 4), (0, 1, 2)))
    assert "74.2 % declared  against  44.5 % runner-up" in run_text(report)
    assert "97.5 % interval, wider than one of 95 %" in " ".join(run_text(report, verbose=True).split())
    row_facts, hits, readings = made_readings({((0, 1, 2), 1): 0.75, ((1, 2, 3), 1): 0.3})
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)))
    two = RunReport(record=made_run(), standalone=report_standalone(result, (row_facts, hits)))
    assert "wider than" not in run_text(two, verbose=True)  # of two readings only one can be the other: 95 %


def test_unlabelled() -> None:
    check("unlabelled.txt", run_text(story(made_declared((2, 4, 5), None), states=None)))


def test_a_single_row_is_one() -> None:
    text = run_text(story(made_declared((2, 4, 5), (1, 2, 3)), rows=1))
    assert "1 row is too few" in text
    assert "no interval from 1 row\n" in text


def test_too_few_rows() -> None:
    check("too_few_rows.txt", run_text(story(made_declared((2, 4, 5), (1, 2, 3)), rows=3)))


def test_a_run_that_failed_shows_why() -> None:
    record = made_run(phase="failed")
    failure = Failure(kind="rows", message="no usable row in /srv/rows", hint="see --rows", details=("a: b", "c: d"))
    state = RunState(run_id=record.run_id, sequence=4, phase="failed", exit_code=1, failure=failure)
    failed = type(record)(host=record.host, spec=record.spec, state=state)
    check("failed.txt", run_text(RunReport(record=failed)))


def test_json_is_json_with_null_for_unknown() -> None:
    report = story(made_declared((2, 4, 5), None), rows=3, states=None)
    value = json.loads(json.dumps(run_json(report), allow_nan=False))
    assert value["wiring"]["verdict"] == "unlabelled"
    assert value["wiring"]["declared"] is None
    assert value["wiring"]["config_ids"] is None
    best = value["readings"][0]
    assert best["states"] is None
    assert best["accept_length_walk"]["low"] is None  # 3 rows
    assert best["first_step_accuracy"]["n"] == 150
    assert run_json(RunReport(record=made_run(phase=None)))["run"]["state"] is None


def test_json_carries_what_every_view_shows() -> None:
    report = mis_wired(checks=CHECKS, heldout=True, question=Question(costs=(COST,)))
    value = json.loads(json.dumps(run_json(report), allow_nan=False))
    assert [item["check"] for item in value["checks"]] == ["K1", "K3", "K20", "capture"]
    assert value["checks"][3]["evidence"][0]["value"] is None
    assert value["diagnosis"]["findings"][0]["remedy"][0].startswith("subtract arange")
    assert [item["role"] for item in value["prediction"]] == ["declared", "best"]
    depth = value["prediction"][1]["depths"][1]
    assert depth["break_even_accept_length"] == pytest.approx(1.79)
    assert depth["speedup"]["value"] == pytest.approx(depth["accept_length"]["value"] / 1.79)
    assert value["prediction"][1]["step_cost"]["source"] == "eagle3.toml"
    assert value["prediction"][1]["rows"] == "held-out"
    assert value["gap"]["how"] == "unpaired"
    assert set(value["rules"]) == {"train", "held-out"}
    assert value["rules"]["train"][1]["figure"] == "acc_s"
    plain = run_json(story(made_declared((2, 4, 5), None), states=None))
    assert plain["gap"] is None
    assert plain["prediction"][0]["step_cost"] is None
    assert plain["prediction"][0]["depths"][0]["speedup"] is None


def test_json_of_the_story_carries_the_fix() -> None:
    value = run_json(mis_wired())
    assert value["wiring"]["config_ids"] == [-1, 1, 3]
    assert [reading["role"] for reading in value["readings"]] == ["declared = runner-up", "best"] or [
        reading["role"] for reading in value["readings"]
    ] == ["declared", "best", "runner-up"]
    assert value["result"]["rows"]["skipped"][0]["name"] == "data_20.ckpt"


def baseline(entry: BaselineEntry) -> Baseline:
    return Baseline(name="plain", history=(entry,))


def test_baselines() -> None:
    throughput = BaselineNumber(metric="output_throughput_tok_s", value=90.0, unit="tok/s")
    length = BaselineNumber(metric="declared.accept_length_walk", value=1.9)
    entry = BaselineEntry(
        numbers=(throughput, length), source="me@laptop", set_at_unix_s=1767323045.0, note="no drafter"
    )
    numbers = tuple(
        Series(metric=one.metric, unit=one.unit or "tokens", definition="", level="summary", y=(one.value,))
        for one in entry.numbers
    )
    typed = MeasurementSet(
        run_id="baseline:plain",
        origin="typed",
        tool="typed",
        job_kind="typed",
        measurements=(Measurement(case=(), series=numbers),),
    )
    check("baseline.txt", baseline_text(baseline(entry), typed, 80))
    check("baselines.txt", baselines_text((baseline(entry),)))


def test_lists_of_runs() -> None:
    good = RunSummary(
        run_id="20260102-030405-standalone-ab12",
        phase="succeeded",
        job_kind="standalone",
        host="gpu1",
        created_unix_s=1767323045.0,
        has_result=True,
    )
    begun = RunSummary(run_id="run-b", phase="unknown", job_kind="selftest", host="gpu2", created_unix_s=1767323000.0)
    broken = RunSummary(run_id="run-c", phase="unreadable", problem="run.json: expected JSON")
    check("runs.txt", runs_text([good, begun, broken]))
    assert runs_text([]) == "no runs on this laptop yet"
    assert runs_json([broken])["runs"][0]["created_unix_s"] is None


def test_a_sweep_is_one_line_with_its_units_counted() -> None:
    def run(run_id: str, phase: str, kind: str, verdict: str | None = None) -> RunSummary:
        return RunSummary(run_id=run_id, phase=phase, job_kind=kind, created_unix_s=1767323045.0, verdict=verdict)

    sweep = run("night", "failed", "sweep")
    units = [run(f"night.u000{number}.0", "failed" if number == 2 else "succeeded", "bench") for number in range(4)]
    alone, orphan = run("r1", "succeeded", "bench", "slower"), run("gone.u0001.0", "succeeded", "bench")
    text = runs_text([sweep, *units, alone, orphan], limit=2)
    assert text.splitlines()[1:] == [
        "night  sweep        failed     2026-01-02 03:04:05  4 units: 3 succeeded, 1 failed",
        "r1     bench        succeeded  2026-01-02 03:04:05  slower",
    ]
    assert "gone.u0001.0" in runs_text([sweep, *units, alone, orphan])  # nobody here counts it
    assert "night.u0002.0" in runs_text([sweep, *units], units=True)
    assert "night.u0002.0" in runs_text(units)
    assert "0 units" in runs_text([sweep])
    spec = made_run().spec
    specs = [
        dataclasses.replace(spec, run_id="night", job_kind="sweep"),
        dataclasses.replace(spec, run_id="night.u0.0"),
    ]
    states = tuple(RunState(run_id=one.run_id, sequence=1, phase="running", note="n") for one in specs)
    answer = StatusAnswer(states=states, specs=tuple(specs), heartbeat_ages_s=(1.0, 1.0))
    (line,) = status_text(answer, "gpu1").splitlines()[1:]
    assert line.startswith("night ")
    assert line.endswith("1 unit: 1 running; n")
    assert len(status_text(answer, "gpu1", units=True).splitlines()) == 3


def test_status_and_cancel() -> None:
    running = RunState(run_id="run-a", sequence=2, phase="running", started_unix_s=1767323045.0)
    failed = RunState(
        run_id="run-b",
        sequence=4,
        phase="failed",
        started_unix_s=1767323045.0,
        finished_unix_s=1767323050.0,
        failure=Failure(kind="rows", message="no usable row\nmore"),
    )
    spec = made_run().spec
    answer = StatusAnswer(
        states=(running, failed), specs=(spec, spec), heartbeat_ages_s=(2.2, None), unreadable=("run-c",)
    )
    check("status.txt", status_text(answer, "gpu1"))
    nothing = StatusAnswer(states=(), specs=(), heartbeat_ages_s=())
    assert status_text(nothing, "gpu1") == "no runs on gpu1"
    assert cancel_text(CancelAnswer(state=failed, was_terminal=True)) == "run-b: was over before: failed"
    assert "nothing of it is left" in cancel_text(CancelAnswer(state=failed, was_terminal=False))
    assert "killed: 7, 8" in cancel_text(CancelAnswer(state=running, was_terminal=False, survivors=(7, 8)))


@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_no_figure_is_lost_at_any_width(width: int) -> None:
    text = run_text(mis_wired(), width=width, verbose=True)
    for figure in ("declared", "best", "tokens per verify", "n=600"):
        assert figure in text
