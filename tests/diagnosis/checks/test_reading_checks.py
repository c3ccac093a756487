"""K5, K8, K9, K11: what the readings say about inputs, computation, positions and steps."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.checks import graph, rope, steps, wiring
from orchestrator.diagnosis.finding import CheckResult
from remote_payload.schema.standalone import GraphFlag, ReadingFacts, SkippedReading
from tests.support.made_measured import (
    BEST,
    LATER,
    SHIFTED,
    WORSE,
    Made,
    Rows,
    factor_facts,
    made_measured,
    sound_self_fed,
)
from tests.support.made_results import made_declared

LOW = (0.75, 0.35, 0.35, 0.35)
"""Right at step 1, wrong from step 2 on."""


def findings(results: tuple[CheckResult, ...]) -> list[CheckResult]:
    return [result for result in results if result.outcome == "finding"]


def only(results: tuple[CheckResult, ...], title: str) -> CheckResult:
    (result,) = [result for result in results if result.title == title]
    return result


def without_factors(**changes: Any):
    """As a sweep of the wiring alone leaves it."""
    measured = made_measured(**changes)
    kept = tuple(facts for facts in measured.result.readings if facts.stage == "full")
    return replace(measured, result=replace(measured.result, readings=kept, skipped_readings=()))


class TestWiring:
    def test_a_sound_one_passes_with_both_numbers(self):
        result = only(wiring(made_measured()), "wiring")
        assert result.outcome == "passed"
        assert result.evidence[0].value == pytest.approx(0.75, abs=0.03)
        assert result.evidence[0].n == 600

    @pytest.mark.parametrize(("shares", "severity"), [(WORSE.shares, "serious"), ((0.1, 0.05, 0.0, 0.0), "fatal")])
    def test_severity_is_what_is_left_of_the_accept_length(self, shares, severity):
        declared = made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4))
        result = only(
            wiring(made_measured((BEST, replace(WORSE, shares=shares), SHIFTED), declared=declared)), "wiring"
        )
        assert (result.outcome, result.severity, result.cause) == ("finding", severity, "wiring")
        assert any("[-1, 1, 3]" in line for line in result.remedy)

    @pytest.mark.parametrize(
        ("declared", "needs"),
        [
            (made_declared((2, 4, 6), None), "capture rows that also hold the state 6"),
            (made_declared(None, None, target_class="X", problem="no rule is known for X"), "no ids are known"),
        ],
    )
    def test_what_cannot_be_compared_is_no_finding(self, declared, needs):
        result = only(wiring(made_measured(declared=declared)), "wiring")
        assert result.outcome == "cannot_tell"
        assert needs in (result.needs or "")

    def test_a_weak_drafter_is_not_passed(self):
        readings = (Made((0.2, 0.2, 0.2, 0.2)), Made((0.1, 0.1, 0.1, 0.1), LATER))
        assert only(wiring(made_measured(readings)), "wiring").outcome == "cannot_tell"

    def test_too_few_rows_cannot_tell(self):
        declared = made_declared((2, 4, 5), LATER)
        result = only(wiring(made_measured(rows=Rows(count=3), declared=declared)), "wiring")
        assert result.outcome == "cannot_tell"

    def test_nothing_fits_is_a_symptom_that_ranks_last(self):
        nothing = (Made((0.03, 0.0, 0.0, 0.0)), Made((0.02, 0.0, 0.0, 0.0), LATER))
        result = only(wiring(made_measured(nothing)), "wiring")
        assert (result.outcome, result.severity, result.effect) == ("finding", "serious", 0.0)

    def test_a_drafter_that_predicts_nothing_cannot_show_that_it_needs_its_states(self):
        nothing = (Made((0.03, 0.0, 0.0, 0.0)), Made((0.02, 0.0, 0.0, 0.0), LATER))
        measured = made_measured(nothing)
        control = replace(measured.result.readings[-1], first_step_hits=9, paired_first_step_hits=10)  # of 200
        readings = (*measured.result.readings[:-1], control)
        measured = replace(measured, result=replace(measured.result, readings=readings))
        result = only(wiring(measured), "use of the states")
        assert (result.outcome, result.effect) == ("cannot_tell", None)

    @pytest.mark.parametrize(("hits", "outcome"), [(40, "passed"), (134, "passed"), (136, "finding"), (150, "finding")])
    def test_a_drafter_that_needs_no_states_does_not_use_them(self, hits, outcome):
        control = replace(factor_facts("states=zeroed", BEST.name), first_step_hits=hits)  # of 200, 150 with its states
        measured = made_measured()
        readings = (*(item for item in measured.result.readings if item.stage == "full"), control)
        measured = replace(measured, result=replace(measured.result, readings=readings))
        assert only(wiring(measured), "use of the states").outcome == outcome


class TestGraph:
    def test_sound_flags_pass_and_show_how_far_the_others_are_behind(self):
        (result,) = graph(made_measured())
        assert result.outcome == "passed"
        assert [item.value for item in result.evidence] == [pytest.approx(-0.3)] * 2
        assert (result.evidence[0].low, result.evidence[0].high) == (pytest.approx(-0.38), pytest.approx(-0.22))

    def test_the_summary_counts_what_is_surely_worse(self):
        assert "2 of 2 others are surely worse" in graph(made_measured())[0].summary
        measured = made_measured()
        kept = [facts for facts in measured.result.readings if facts.stage == "full"]
        even = factor_facts("residual=normed", BEST.name, leading=238)
        (result,) = graph(replace(measured, result=replace(measured.result, readings=(*kept, even))))
        assert result.outcome == "passed"
        assert "no difference seen" in result.summary

    def test_a_sweep_of_the_wiring_alone_cannot_tell(self):
        (result,) = graph(without_factors())
        assert result.outcome == "cannot_tell"
        assert "--sweep full" in (result.needs or "")

    def test_feedback_that_step_1_cannot_see(self):
        readings = (Made(changes=("feedback=normed",)), Made(LOW), WORSE)
        (result,) = graph(made_measured(readings))
        assert (result.outcome, result.severity, result.cause) == ("finding", "serious", "wiring")
        assert '"norm_output": true' in result.remedy[0]
        (evidence,) = result.evidence
        assert evidence.value == pytest.approx(1.93 - 1.13, abs=0.12)
        assert evidence.low is not None
        assert 0.5 < evidence.low < (evidence.value or 0)  # type: ignore[operator]
        assert evidence.confidence == pytest.approx(1 - 0.05 / 2)
        assert evidence.n == 12

    def test_a_flag_that_sglang_ignores(self):
        declared = replace(made_declared((0, 2, 4), (0, 1, 2)), changes=("residual=raw",))
        flags = (GraphFlag(name="residual", value="normed", source="config", evidence="config", served="raw"),)
        readings = (BEST, Made((0.5, 0.4, 0.4, 0.4), changes=("residual=raw",)), WORSE)
        (result,) = graph(made_measured(readings, declared=declared, checkpoint_graph=flags))
        assert result.outcome == "finding"
        assert "`residual=normed`, it is served `raw`" in result.summary
        assert "vLLM" in result.remedy[0]

    def test_a_flag_that_is_served_right_by_luck(self):
        declared = replace(made_declared((0, 2, 4), (0, 1, 2)), changes=("residual=raw",))
        flags = (GraphFlag(name="residual", value="normed", source="config", evidence="config", served="raw"),)
        readings = (Made(changes=("residual=raw",)), Made((0.5, 0.4, 0.4, 0.4)), WORSE)
        (result,) = graph(made_measured(readings, declared=declared, checkpoint_graph=flags))
        assert (result.outcome, result.severity) == ("finding", "minor")
        assert "other engines may not" in result.summary

    def test_no_difference_is_never_a_finding(self):
        declared = replace(made_declared((0, 2, 4), (0, 1, 2)), changes=("residual=raw",))
        readings = (BEST, Made(changes=("residual=raw",)), WORSE)
        (result,) = graph(made_measured(readings, declared=declared))
        assert result.outcome == "passed"

    @pytest.mark.parametrize("count", [3, 12])
    def test_a_change_that_helps_by_chance_is_no_finding(self, count):
        readings = (Made((0.755, 0.72, 0.70, 0.70), changes=("residual=normed",)), BEST, WORSE)
        (result,) = graph(made_measured(readings, rows=Rows(count=count)))
        assert result.outcome == "passed"

    @pytest.mark.parametrize(("leading", "outcome"), [(290, "cannot_tell"), (250, "passed")])
    def test_a_change_that_only_few_rows_speak_for_is_not_passed_over(self, leading, outcome):
        measured = made_measured()  # 240 leading hits on 200 positions beside it, standard error 0.04
        kept = [facts for facts in measured.result.readings if facts.stage == "full"]
        readings = (*kept, factor_facts("residual=normed", BEST.name, leading=leading))
        (result,) = graph(replace(measured, result=replace(measured.result, readings=readings)))
        assert result.outcome == outcome
        assert result.evidence[0].value == pytest.approx((leading - 240) / 200)

    def test_what_is_served_but_was_not_measured_cannot_be_told(self):
        declared = replace(made_declared((0, 2, 4), (0, 1, 2)), changes=("residual=raw",))
        (result,) = graph(made_measured(declared=declared))
        assert result.outcome == "cannot_tell"
        assert "residual=raw" in result.summary

    def test_two_choices_that_were_only_measured_together_are_named_together(self):
        readings = (Made(changes=("feedback=normed", "residual=normed")), Made(LOW), WORSE)
        (result,) = graph(made_measured(readings))
        assert "`residual=normed`" in result.summary
        assert "`feedback=normed`" in result.summary

    def test_two_choices_that_were_measured_each_are_two_findings(self):
        readings = (
            Made(changes=("feedback=normed", "residual=normed")),
            Made(LOW, changes=("residual=normed",)),
            Made((0.5, 0.5, 0.5, 0.5), changes=("feedback=normed",)),
            Made((0.4, 0.2, 0.2, 0.2)),
        )
        results = graph(made_measured(readings))
        assert [item.outcome for item in results] == ["finding", "finding"]
        assert results[0].effect != results[1].effect


class TestRope:
    def test_a_better_base_is_named_with_its_config_line(self):
        readings = (Made(changes=("rope=theta 1e+06",)), Made((0.7, 0.6, 0.6, 0.6)), WORSE)
        result = only(rope(made_measured(readings)), "rotary parameters")
        assert result.outcome == "finding"
        assert '"rope_theta": 1000000.0' in result.remedy[0]
        assert result.cause == "wiring"

    @pytest.mark.parametrize(
        ("label", "line"), [("unscaled", '"rope_scaling": null'), ("target's", "/srv/target/config.json")]
    )
    def test_other_labels(self, label, line):
        readings = (Made(changes=(f"rope={label}",)), Made((0.6, 0.5, 0.5, 0.5)), WORSE)
        result = only(rope(made_measured(readings)), "rotary parameters")
        assert any(line in text for text in result.remedy)

    def test_bases_that_short_rows_cannot_tell_apart_are_no_finding(self):
        readings = (BEST, Made(changes=("rope=theta 1e+06",)), WORSE)
        assert only(rope(made_measured(readings)), "rotary parameters").outcome == "passed"

    def test_another_base_than_the_targets_is_noted(self):
        measured = made_measured()
        kept = tuple(facts for facts in measured.result.readings if "rope=theta 1e+06" not in facts.changes)

        def told(reason: str, *more: ReadingFacts) -> list[CheckResult]:
            skipped = (SkippedReading(name="rope=target's", reason=reason),)
            result = replace(measured.result, skipped_readings=skipped, readings=(*kept, *more))
            results = rope(replace(measured, result=result))
            return [item for item in results if item.title == "rotary parameters against the target's"]

        (note,) = told("it is `theta 1e+06`")
        assert (note.severity, [item.value for item in note.evidence[:2]]) == ("note", ["theta 10000", "theta 1e+06"])
        assert "(theta 10000) are not the target's (theta 1e+06)" in note.summary
        worse = factor_facts("rope=theta 1e+06", BEST.name)
        even = replace(worse, leading_hits=worse.paired_leading_hits)
        assert len(told("it is `theta 1e+06`", even)) == 1
        assert told("it is `theta 1e+06`", worse) == []
        assert told("it is the checkpoint's own") == []
        assert told("the target's rotary embedding is not known") == []

    def test_what_was_skipped_says_why(self):
        measured = without_factors()
        skipped = (SkippedReading(name="rope=target's", reason="it is the checkpoint's own"),)
        measured = replace(measured, result=replace(measured.result, skipped_readings=skipped))
        result = only(rope(measured), "rotary parameters")
        assert result.outcome == "cannot_tell"
        assert "it is the checkpoint's own" in result.summary

    def test_short_rows_cannot_tell_about_positions(self):
        result = only(rope(made_measured()), "accuracy by position")
        assert result.outcome == "cannot_tell"
        assert "60 tokens" in result.summary
        assert result.evidence[0].n == 600

    @pytest.mark.parametrize(("later", "outcome"), [(0.75, "passed"), (0.65, "passed"), (0.3, "finding")])
    def test_accuracy_that_falls_beyond_a_position(self, later, outcome):
        from tests.support.made_results import made_hits  # noqa: PLC0415

        rows = Rows(count=8, response=590)
        measured = made_measured((BEST, WORSE), rows=rows)
        mask = rows.mask()

        def hit(j: int, s: int, row: int = 0) -> bool:
            share = 0.75 if j < 256 else later
            return (j * 37 + row * 11) % 100 < 100 * share

        own = [made_hits(BEST.name, row, mask, 4, lambda j, s, row=row: hit(j, s, row)) for row in range(8)]
        hits = [*own, *(item for item in measured.train.hits if item.reading != BEST.name)]
        measured = replace(measured, train=replace(measured.train, hits=hits))
        result = only(rope(measured), "accuracy by position")
        assert result.outcome == outcome
        assert result.evidence[0].value == pytest.approx(0.75, abs=0.02)
        assert result.evidence[1].value == pytest.approx(later, abs=0.02)
        assert (result.evidence[0].n, result.evidence[1].n) == (8 * (256 - 9), 8 * (599 - 256))
        if outcome == "finding":
            assert "from position 256 on" in result.summary
            assert result.evidence[-1].value == pytest.approx(0.45, abs=0.03)


class TestSteps:
    def test_a_sound_profile_passes(self):
        (result,) = steps(made_measured())
        assert result.outcome == "passed"
        assert [item.value for item in result.evidence[:4]] == [pytest.approx(x, abs=0.06) for x in BEST.shares]

    @pytest.mark.parametrize(
        ("shares", "step"),
        [((0.75, 0.3, 0.3, 0.3), 2), ((0.75, 0.7, 0.2, 0.2), 3), ((0.75, 0.6, 0.5, 0.42), None)],
    )
    def test_a_step_that_collapses_alone(self, shares, step):
        rows = Rows(count=24)
        (result,) = steps(made_measured((Made(shares), replace(WORSE, shares=(0.4, 0.4, 0.4, 0.4))), rows=rows))
        assert result.outcome == ("passed" if step is None else "finding")
        if step:
            assert f"step {step} collapses" in result.summary
            assert f"--speculative-num-steps {step - 1}" in result.remedy[-1]
            fresh = sound_self_fed().fresh_hits[step - 1] / sound_self_fed().positions[step - 1]
            assert f"{100 * fresh:.0f} % of these tokens" in result.summary

    def test_a_wrong_first_step_says_nothing_about_later_ones(self):
        (result,) = steps(made_measured((Made((0.3, 0.05, 0.0, 0.0)), WORSE)))
        assert result.outcome != "finding"

    def test_one_step_or_few_chains_cannot_tell(self):
        (one,) = steps(made_measured((Made((0.75,)), Made((0.4,), LATER)), rows=Rows(steps=1)))
        assert "--steps" in (one.needs or "")
        (few,) = steps(made_measured(rows=Rows(count=5, response=8)))
        assert few.outcome == "cannot_tell"
