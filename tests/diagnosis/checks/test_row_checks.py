"""K7, K10, K20, teacher, capture and the gap: what the rows say, of themselves and against others."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.checks import alignment, capture, data, gap, slots, teacher
from orchestrator.diagnosis.finding import CheckResult
from remote_payload.schema.standalone import MaskEdge, SkippedRow
from remote_payload.schema.state_change import StateChange
from tests.support.made_measured import (
    BEST,
    STATES,
    WORSE,
    Made,
    Rows,
    factor_facts,
    made_measured,
    sound_capture,
    sound_lint,
    sound_slots,
    sound_teacher,
)
from tests.support.made_results import bitmap, made_row


def findings(results: tuple[CheckResult, ...]) -> list[CheckResult]:
    return [result for result in results if result.outcome == "finding"]


def only(results: tuple[CheckResult, ...], title: str) -> CheckResult:
    (result,) = [result for result in results if result.title == title]
    return result


class TestSlots:
    def check(self, changes: dict[int, dict[str, Any]], **other: Any) -> tuple[CheckResult, ...]:
        made = tuple(replace(slot, **changes.get(slot.slot, {})) for slot in sound_slots())
        return slots(made_measured(rows_slots=made, **other))

    def test_right_labels_pass_and_the_embedding_is_recognised(self):
        (result,) = self.check({})
        assert result.outcome == "passed"
        assert "slot 0 is the embedding output" in result.summary

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({"rms": 0.5, "constant": True}, "one and the same vector"),
            ({"rms": 0.0, "constant": True}, "zeros"),
            ({"rms": 0.0}, "zeros"),  # as earlier versions' results say it
        ],
    )
    @pytest.mark.parametrize("states", [STATES, None])
    def test_a_slot_that_was_never_written_is_no_embedding_and_no_wrong_label(self, changes, what, states):
        dead = {"repeats_equal": 700, "lens_normed_hits": 0, **changes}  # a pure function of the token, as it were
        (finding,) = findings(self.check({2: dead}, rows_states=states))
        assert finding.summary == f"slot 2 holds {what} for every token: the capture wrote nothing there"
        assert "--states" not in " ".join(finding.remedy)

    def test_no_labels_cannot_be_wrong_but_are_missed(self):
        (result,) = self.check({}, rows_states=None)
        assert result.outcome == "cannot_tell"
        assert "--states" in (result.needs or "")
        assert "slot 0 is the embedding output" in result.summary

    def test_an_embedding_that_is_none(self):
        (finding,) = findings(self.check({0: {"embedding_share": 0.0, "repeats_equal": 12}}))
        assert (finding.severity, finding.cause) == ("serious", "data")
        assert "slot 0 is labelled as the embedding output" in finding.summary
        assert pytest.approx(12 / 700) in [line.value for line in finding.evidence[:2]]

    def test_an_embedding_that_is_labelled_as_a_layer(self):
        (finding,) = findings(self.check({2: {"embedding_share": 1.0, "repeats_equal": 700}}))
        assert "slot 2 is labelled as state 4, but is the embedding" in finding.summary

    def test_purity_tells_where_the_targets_embedding_is_unknown(self):
        unknown = {slot: {"embedding_share": None} for slot in range(4)}
        assert self.check(unknown)[0].outcome == "passed"
        (finding,) = findings(self.check({**unknown, 0: {"embedding_share": None, "repeats_equal": 400}}))
        assert "slot 0" in finding.summary

    def test_few_repeats_tell_nothing(self):
        few = {slot: {"embedding_share": None, "repeats": 5, "repeats_equal": 0} for slot in range(4)}
        assert self.check(few)[0].outcome == "passed"

    def test_shifted_states_are_left_to_k10(self):
        beside = {0: {"embedding_share": 0.03, "embedding_share_beside": (0.99, 0.05), "repeats_equal": 200}}
        assert findings(self.check(beside)) == []

    def test_one_state_captured_twice(self):
        (finding,) = findings(self.check({3: {"equals_slot": 2}}))
        assert "slots 2 and 3 hold the same numbers" in finding.summary

    def test_an_early_label_on_a_state_that_answers_like_the_last(self):
        (finding,) = findings(self.check({3: {"lens_normed_hits": 560}}))  # the teacher agrees in 80 % of 700
        assert "slot 3 is labelled as state 5 of 8" in finding.summary
        assert findings(self.check({3: {"lens_normed_hits": 500}})) == []

    def test_swapped_labels_contradict_size_and_answer(self):
        a, _, b = sound_slots()[1:]
        swapped = {
            1: {"rms": b.rms, "lens_normed_hits": b.lens_normed_hits},
            3: {"rms": a.rms, "lens_normed_hits": a.lens_normed_hits},
        }
        (finding,) = findings(self.check(swapped))
        assert "slot 2 (labelled state 4) is smaller and further from the answer than slot 1 (labelled state 2)" in (
            finding.summary
        )
        before, after = (line.value for line in finding.evidence[1::-1])
        assert (before, after) == (pytest.approx(350 / 700), pytest.approx(280 / 700))
        assert "`--states embed,5,4,2`" in finding.remedy[0]

    @pytest.mark.parametrize(
        "changes", [{"rms": 1.0}, {"lens_normed_hits": 100}, {"rms": 2.6, "lens_normed_hits": 275}]
    )
    def test_one_sign_alone_is_none(self, changes):
        assert findings(self.check({3: changes})) == []


class TestAlignment:
    def edges(self, **shares: int) -> Any:
        made = tuple(MaskEdge(place=place, responses=12, most_common=n, token=7) for place, n in shares.items())  # type: ignore[arg-type]
        return made_measured(rows_lint=sound_lint(edges=made))

    def test_the_usual_pairing_passes(self):
        offset, mask = alignment(made_measured())
        assert (offset.outcome, mask.outcome) == ("passed", "passed")
        assert [item.value for item in offset.evidence] == [pytest.approx(0.2), pytest.approx(0.75)]
        shifts = {item.name: (item.value, item.n) for item in mask.evidence if "shifted" in item.name}
        assert shifts["step-1 accuracy, mask shifted by +0"] == (pytest.approx(0.75, abs=0.03), 600)
        assert shifts["step-1 accuracy, mask shifted by -1"][1] == 600
        assert shifts["step-1 accuracy, mask shifted by +1"][1] == 588  # the last token has no successor

    def test_another_offset_is_the_trainers(self):
        readings = (Made(offset=0), Made((0.3, 0.3, 0.3, 0.3)), WORSE)
        finding = only(alignment(made_measured(readings)), "token offset")
        assert (finding.outcome, finding.cause) == ("finding", "wiring")
        assert "trained again" in finding.remedy[0]

    def test_or_the_captures_where_the_final_states_are_shifted_as_well(self):
        readings = (Made(offset=0), Made((0.3, 0.3, 0.3, 0.3)), WORSE)
        shifted = sound_teacher(agrees=20, shifted_agrees=(500, 20))
        without = tuple(replace(slot, embedding_share=0.0) for slot in sound_slots())
        finding = only(alignment(made_measured(readings, rows_teacher=shifted, rows_slots=without)), "token offset")
        assert finding.cause == "data"
        measured = made_measured(readings, rows_teacher=shifted)  # here slot 0 is the embedding of its own token
        assert only(alignment(measured), "token offset").outcome == "cannot_tell"
        assert (
            "they alone stand a token too late, for slot 0 is" in only(teacher(measured), "teacher consistency").summary
        )

    def test_an_offset_ahead_by_chance_is_no_finding(self):
        readings = (Made((0.76, 0.72, 0.7, 0.7), offset=0), BEST, WORSE)
        assert only(alignment(made_measured(readings)), "token offset").outcome == "cannot_tell"

    def test_one_offset_alone_cannot_tell(self):
        assert only(alignment(made_measured((BEST, WORSE))), "token offset").outcome == "cannot_tell"

    @pytest.mark.parametrize(("beside", "word"), [((0.99, 0.04), "late"), ((0.04, 0.99), "early")])
    def test_states_that_are_the_embedding_of_the_token_beside(self, beside, word):
        made = (replace(sound_slots()[0], embedding_share=0.03, embedding_share_beside=beside), *sound_slots()[1:])
        finding = only(alignment(made_measured(rows_slots=made)), "token offset")
        assert f"one token too {word}" in finding.summary
        assert finding.cause == "data"
        assert [line.value for line in finding.evidence] == [0.99, 0.04]

    @pytest.mark.parametrize(("change", "word"), [("states=later", "late"), ("states=earlier", "early")])
    def test_states_that_are_read_better_from_the_token_beside(self, change, word):
        measured = made_measured()
        facts = factor_facts(change, BEST.name)
        ahead = replace(
            facts,
            first_step_hits=facts.positions * 3 // 4,
            leading_hits=(facts.paired_leading_hits or 0) + facts.positions,
            paired_error=0.02,
        )
        result = measured.result
        told = replace(measured, result=replace(result, readings=(*result.readings, ahead)))
        finding = only(alignment(told), "token offset")
        text = f"(all but slot 0, which is the embedding of its own token) stand one token too {word} beside tokens"
        assert text in finding.summary
        assert (finding.severity, finding.cause) == ("serious", "data")
        final = replace(told.result.rows, teacher=sound_teacher(agrees=20, shifted_agrees=(500, 20)), slots=())
        told = replace(told, result=replace(told.result, rows=final))  # the final states are shifted, not these
        assert only(alignment(told), "token offset").outcome == "passed"
        for no_evidence in (replace(ahead, paired_error=0.5), replace(ahead, first_step_hits=facts.positions // 4)):
            told = replace(measured, result=replace(result, readings=(*result.readings, no_evidence)))
            assert only(alignment(told), "token offset").outcome == "passed"

    def test_a_mask_that_begins_late(self):
        measured = self.edges(two_before=12, before=5, first=5, second=5, last=12)
        finding = only(alignment(measured), "loss mask")
        assert (finding.outcome, finding.severity) == ("finding", "minor")
        assert "one token late" in finding.summary
        assert [line.value for line in finding.evidence[:2]] == [pytest.approx(5 / 12), 1.0]

    def test_a_mask_that_begins_and_ends_early(self):
        measured = self.edges(two_before=12, before=12, first=12, second=5, last=5, after=5)
        assert "one token early" in only(alignment(measured), "loss mask").summary

    @pytest.mark.parametrize(
        "shares",
        [
            {"two_before": 12, "before": 12, "first": 12, "second": 5, "last": 12},  # answers that begin <think>
            {
                "two_before": 12,
                "before": 12,
                "first": 12,
                "second": 5,
                "last": 5,
                "after": 12,
            },  # and end before <|end|>
        ],
    )
    def test_ordinary_templates_are_no_finding(self, shares):
        assert only(alignment(self.edges(**shares)), "loss mask").outcome == "passed"

    @pytest.mark.parametrize("same", [4, 6])  # no template at all or a mask two tokens late; two templates
    def test_tokens_that_vary_before_the_mask_cannot_tell(self, same):
        measured = self.edges(**dict.fromkeys(("two_before", "before", "first", "second", "last"), same))
        result = only(alignment(measured), "loss mask")
        assert (result.outcome, "two tokens late or more" in result.summary) == ("cannot_tell", True)
        assert "n_prompt_tokens" in (result.needs or "")
        rows = measured.result.rows
        assert rows.lint is not None
        lint = replace(rows.lint, prompts_stated=rows.used)  # and the mask begins where the prompt is said to end
        stated = replace(measured, result=replace(measured.result, rows=replace(rows, lint=lint)))
        assert only(alignment(stated), "loss mask").outcome == "passed"

    def test_a_mask_two_tokens_early(self):
        shares = {"two_before": 5, "before": 12, "first": 12, "second": 12, "last": 5}
        assert "two tokens early" in only(alignment(self.edges(**shares, after=5)), "loss mask").summary
        assert (
            only(alignment(self.edges(**shares, after=12)), "loss mask").outcome == "passed"
        )  # `<think>` and a newline

    def test_few_responses_cannot_tell(self):
        few = (MaskEdge(place="first", responses=4, most_common=4, token=7),)
        result = only(alignment(made_measured(rows_lint=sound_lint(edges=few))), "loss mask")
        assert result.outcome == "cannot_tell"
        assert "8 responses" in (result.needs or "")

    def test_the_prompts_stated_length_tells_for_sure(self):
        measured = made_measured()
        rows = [replace(row, prompt_tokens=row.prompt_tokens - 2) for row in measured.train.rows]
        finding = only(alignment(replace(measured, train=replace(measured.train, rows=rows))), "loss mask")
        assert "2 tokens after the prompt's stated end" in finding.summary
        mixed = [*rows[:6], *measured.train.rows[6:]]
        assert (
            only(alignment(replace(measured, train=replace(measured.train, rows=mixed))), "loss mask").outcome
            == "passed"
        )

    @staticmethod
    def beside(shift: int, **shares: int) -> CheckResult:
        """Rows whose mask begins `shift` tokens behind the stated end of the prompt, with these edges."""
        measured = TestAlignment().edges(**shares)
        rows = [replace(row, prompt_tokens=row.prompt_tokens - shift) for row in measured.train.rows]
        return only(alignment(replace(measured, train=replace(measured.train, rows=rows))), "loss mask")

    def test_a_template_between_prompt_and_mask_is_noted_alone(self):
        template = {"two_before": 12, "before": 12, "first": 12, "second": 12, "last": 12}
        assert self.beside(3, **template).severity == "note"
        assert self.beside(-2, **template).severity == "note"
        assert "as a template's do" in self.beside(3, **template).summary
        assert self.beside(-1, **template).severity == "minor"
        varied = {**template, "before": 4, "second": 4}
        assert self.beside(1, **varied).severity == "minor"
        assert self.beside(3, **varied).severity == "minor"
        assert self.beside(-2, **varied).severity == "minor"

    @staticmethod
    def masked_by(*masks: list[int]) -> tuple[CheckResult, ...]:
        measured = made_measured()
        rows = [replace(row, loss_mask=bitmap(masks[at % len(masks)])) for at, row in enumerate(measured.train.rows)]
        return alignment(replace(measured, train=replace(measured.train, rows=rows)))

    def test_an_inverted_mask_marks_the_first_token_and_not_the_last(self):
        finding = only(self.masked_by([1] * 10 + [0] * 50), "loss mask")
        assert (finding.severity, finding.cause) == ("serious", "data")
        assert "inverted" in finding.summary
        assert (finding.evidence[0].value, finding.evidence[0].n, finding.evidence[1].value) == (1.0, 12, 50)

    @pytest.mark.parametrize(
        "masks",
        [
            ([0] * 10 + [1] * 50,),
            ([1] * 60,),
            ([1] * 57 + [0] * 3,),  # everything is trained on, but for the template's end
            ([1] * 10 + [0] * 50, [0] * 10 + [1] * 50),
            ([0] * 10 + [1] * 20 + [0] * 30,),  # a turn of the user's at the end
        ],
    )
    def test_other_masks_are_not_called_inverted(self, masks):
        assert "inverted" not in only(self.masked_by(*masks), "loss mask").summary

    def test_a_mask_that_was_rolled_too_far_begins_at_the_first_token(self):
        finding = only(self.masked_by([1] * 3 + [0] * 10 + [1] * 47), "loss mask")
        assert (finding.severity, finding.cause) == ("minor", "data")
        assert "marks the first 3 tokens of every row" in finding.summary
        assert "rolled 3 tokens too far" in finding.summary
        assert (finding.evidence[0].value, finding.evidence[1].value) == (1.0, 3)
        some = only(self.masked_by([1] * 20 + [0] * 10 + [1] * 30, *[[0] * 10 + [1] * 50] * 3), "loss mask")
        assert "3 of 12 rows from token 0 on" in some.summary
        assert "rolled" not in some.summary

    @pytest.mark.parametrize(("hole", "is_told"), [(1, True), (2, True), (3, False)])
    def test_holes_in_responses(self, hole, is_told):
        found = only(self.masked_by([0] * 10 + [1] * 20 + [0] * hole + [1] * (30 - hole)), "loss mask")
        assert (found.outcome == "finding" and "holes" in found.summary) == is_told

    def test_masks_that_contradict_each_other_are_told(self):
        measured = made_measured(rows_lint=sound_lint(masks_contradict=12, masks_inverse=12))
        finding = only(alignment(measured), "loss mask")
        assert finding.severity == "minor"
        assert "in 12 of 12 rows" in finding.summary
        assert "very inverse" in finding.summary


class TestData:
    def test_sound_rows_pass_with_their_counts(self):
        (result,) = data(made_measured())
        assert result.outcome == "passed"
        assert result.evidence[0].value == 12
        assert result.evidence[1].value == pytest.approx(50 / 60)

    @pytest.mark.parametrize(
        ("changes", "word", "severity"),
        [
            ({"with_nan": 1}, "NaN", "minor"),
            ({"with_nan": 3}, "NaN", "serious"),
            ({"lengths_differ": 2}, "different lengths", "serious"),
            ({"duplicates": 4}, "duplicates", "minor"),
        ],
    )
    def test_oddities(self, changes, word, severity):
        (finding,) = findings(data(made_measured(rows_lint=sound_lint(**changes))))
        assert (finding.severity, finding.cause) == (severity, "data")
        assert word in finding.summary
        assert finding.evidence[0].n == 12

    @pytest.mark.parametrize(
        ("prompts", "lengths", "is_cut"),
        [
            (range(5, 17), [60] * 12, True),  # responses of 44 to 55 tokens, all ended by the row's limit
            (range(5, 17), [*range(48, 54), *[60] * 6], True),
            ([10] * 12, [60] * 12, False),  # responses of one length: the generation's budget
            (range(5, 17), [*[50] * 4, *[58] * 3, *[60] * 5], False),  # lengths tie by chance
            (range(5, 17), [*range(48, 56), *[60] * 4], False),  # too few
        ],
    )
    def test_rows_that_a_limit_cut(self, prompts, lengths, is_cut):
        masks = [[0] * prompt + [1] * (length - prompt) for prompt, length in zip(prompts, lengths, strict=True)]
        rows = tuple(made_row(row, mask) for row, mask in enumerate(masks))
        at_longest = lengths.count(60)
        measured = made_measured(rows_lint=sound_lint(cut_at_longest=at_longest, at_longest=at_longest))
        found = findings(data(replace(measured, train=replace(measured.train, rows=rows))))
        assert len(found) == is_cut
        assert all(f"{at_longest} of 12 rows were cut at 60 tokens" in item.summary for item in found)

    @pytest.mark.parametrize("changes", [{"cut_at_longest": 1}, {"duplicates": 1}, {"at_longest": 9}])
    def test_one_odd_row_is_none(self, changes):
        assert findings(data(made_measured(rows_lint=sound_lint(**changes)))) == []

    @pytest.mark.parametrize(
        ("shared", "prompts", "severity"), [(0, 0, None), (0, 1, None), (0, 6, "minor"), (6, 6, "minor")]
    )
    def test_held_out_rows_that_are_not_held_out(self, shared, prompts, severity):
        measured = made_measured(heldout=Rows(seed="held-out"))
        assert measured.result.heldout is not None
        lint = sound_lint(also_in_train=shared, prompts_in_train=prompts)
        result = replace(measured.result, heldout=replace(measured.result.heldout, lint=lint))
        found = findings(data(replace(measured, result=result)))
        assert [item.severity for item in found] == ([severity] if severity else [])

    def test_a_mask_that_marks_everything(self):
        (finding,) = findings(data(made_measured(rows_response_tokens=720)))
        assert "prompts as well" in finding.summary

    def test_rows_left_out_for_other_reasons(self):
        skipped = tuple(SkippedRow(name=f"data_{at}.ckpt", reason="no mask") for at in range(3))
        (finding,) = findings(data(made_measured(rows_skipped=skipped, rows_found=15)))
        assert "no mask" in finding.summary
        explained = made_measured(rows_skipped=skipped, rows_found=15, rows_lint=sound_lint(with_nan=3))
        assert ["NaN" in item.summary for item in findings(data(explained))] == [True]

    def test_few_rows_cannot_tell(self):
        (result,) = data(made_measured(rows=Rows(count=3)))
        assert result.outcome == "cannot_tell"


class TestTeacher:
    def check(self, rows: tuple[float, ...], *, source: str | None = None, **changes: Any) -> CheckResult:
        share = sum(rows) / len(rows)
        facts = sound_teacher(agrees=round(588 * share), rows_agreeing=rows, **changes)
        made = Rows(greedy=rows, sources=(source,))
        lens = tuple(replace(slot, lens_normed_hits=round(0.6 * share * 700)) for slot in sound_slots())
        return only(teacher(made_measured(rows=made, rows_teacher=facts, rows_slots=lens)), "teacher consistency")

    @pytest.mark.parametrize(
        "rows",
        [(1.0,) * 12, (0.99, 0.6) * 6, (0.7,) * 12, (0.55,) * 12, (0.51, 0.45, 0.7, 0.99) * 3],
    )
    def test_greedy_and_sampled_rows_pass(self, rows):
        assert self.check(rows).outcome == "passed"

    def test_low_agreement_that_may_be_sampling_cannot_be_told(self):
        result = self.check((0.4, 0.35, 0.45) * 4)
        assert result.outcome == "cannot_tell"
        assert "greedily" in (result.needs or "")

    def test_less_than_any_text_would_agree(self):
        result = self.check((0.05, 0.1) * 6)
        assert (result.outcome, result.severity, result.cause) == ("finding", "serious", "data")
        assert result.evidence[0].value == pytest.approx(0.075, abs=0.01)

    def test_rows_that_are_named_greedy_must_agree(self):
        result = self.check((0.7,) * 12, source="book.txt|greedy")
        assert result.outcome == "finding"
        assert "greedy responses agree" in result.summary
        assert self.check((0.99,) * 12, source="book.txt|greedy").outcome == "passed"
        assert self.check((0.7,) * 12, source="book.txt|temperature=0.0").outcome == "finding"
        assert self.check((0.7,) * 12, source="book.txt|temperature: 0").outcome == "finding"
        assert self.check((0.7,) * 12, source="book.txt|temperature=0.7").outcome == "passed"
        assert self.check((0.7,) * 12, source="book.txt|temperature=0.05").outcome == "passed"

    @pytest.mark.parametrize(
        ("source", "greedy"),
        [
            ("greedy", True),
            ("a|b.txt|greedy, max_tokens=64", True),
            ("book.txt|temperature = 0", True),
            ("book.txt|non-greedy sampled T=0.7", False),
            ("book.txt|not greedy", False),
            ("greedy_match.py|temperature=0.7", False),
            ("greedy|temperature=0.7", False),
            ("greedy_match.py", False),
            ("a greedy tale.txt", False),
            ("prompts|greedy_match.py", False),
            ("book.txt|ungreedy", False),
            ("book.txt|temperature=0.7 then 1", False),
        ],
    )
    def test_only_a_mark_behind_the_last_separator_says_greedy(self, source, greedy):
        assert self.check((0.7,) * 12, source=source).outcome == ("finding" if greedy else "passed")

    def test_shifted_states_answer_another_token(self):
        result = self.check((0.05,) * 12, shifted_agrees=(520, 20))
        assert "offset +0" in result.summary
        late = self.check((0.05,) * 12, shifted_agrees=(20, 520))
        assert "offset +2" in late.summary

    def test_a_final_state_that_is_an_early_layers(self):
        made = (*sound_slots()[:3], replace(sound_slots()[3], lens_normed_hits=315))
        facts = sound_teacher(agrees=265, rows_agreeing=(0.45,) * 12)
        (result, _) = teacher(made_measured(rows_slots=made, rows_teacher=facts))
        assert result.outcome == "finding"
        assert "slot 3 (state 5 of 8)" in result.summary

    @pytest.mark.parametrize(
        ("kind", "rms", "outcome"),
        [
            ("post_norm", 1.0, "passed"),
            ("post_norm", 12.0, "finding"),
            ("pre_norm", 12.0, "passed"),
            ("pre_norm", 1.01, "finding"),
            ("post_norm", None, "cannot_tell"),
        ],
    )
    def test_the_side_of_the_norm(self, kind, rms, outcome):
        measured = made_measured(rows_final_state=kind, rows_teacher=sound_teacher(norm_rms=rms))
        assert only(teacher(measured), "final norm").outcome == outcome

    def test_stored_answers_have_no_norm(self):
        measured = made_measured(rows_final_state="answers", rows_teacher=sound_teacher(norm_rms=None))
        assert [item.title for item in teacher(measured)] == ["teacher consistency"]


class TestCapture:
    def check(self, slot: dict[str, Any] | None = None, **changes: Any) -> tuple[CheckResult, ...]:
        made = sound_capture(**changes)
        if slot is not None:
            made = replace(made, slots=(replace(made.slots[0], **slot), *made.slots[1:]))
        return capture(made_measured(capture=made))

    def test_the_same_states_pass(self):
        (result,) = self.check()
        assert result.outcome == "passed"

    def test_what_did_not_run_says_why(self):
        (result,) = self.check(ran=False, why_not="transformers is not installed")
        assert result.outcome == "cannot_tell"
        assert "transformers is not installed" in result.summary

    def test_a_wrong_label(self):
        (finding,) = findings(self.check({"nearest": 1, "labelled_error": 0.25}))
        assert "slot 0 is state 1 of the target" in finding.summary
        assert [line.value for line in finding.evidence[:2]] == [0.25, 0.01]
        assert finding.remedy == ("run again with the labels that the states have: `--states 1,2,4,5`",)

    def test_one_capture_is_one_finding(self):
        made = sound_capture()
        far = tuple(replace(slot, error=0.8 + 0.1 * slot.slot, labelled_error=1.3) for slot in made.slots)
        (finding,) = findings(self.check(slots=far))
        assert "slot 0, slot 1, slot 2, slot 3 are no state of this target: off by 110 %" in finding.summary
        assert finding.evidence[0].value == pytest.approx(1.1)
        two, three = (replace(made.slots[at], nearest=made.slots[3 - at].nearest, labelled_error=0.4) for at in (1, 2))
        (finding,) = findings(self.check(slots=(made.slots[0], two, three, made.slots[3])))
        assert "slot 1 is state 4, slot 2 is state 2 of the target, not what their labels say" in finding.summary
        assert "`--states embed,4,2,5`" in finding.remedy[0]

    def test_neighbours_that_rounding_confuses_are_no_finding(self):
        assert findings(self.check({"nearest": 1, "error": 0.04, "labelled_error": 0.05})) == []

    def test_a_state_of_no_layer(self):
        (finding,) = findings(self.check({"error": 0.8, "next_error": 0.9, "labelled_error": 0.8}))
        assert "no state of this target" in finding.summary

    def test_a_state_in_other_numbers(self):
        def changes(label: int) -> tuple[StateChange, ...]:
            left = [0.004 if index == label else 0.4 for index in range(9)]
            return tuple(StateChange(factor=0.5, scaled_error=one, turned_error=one) for one in left)

        far = {"nearest": 3, "error": 0.45, "next_error": 0.46, "labelled_error": 0.5}
        (finding,) = findings(self.check({**far, "changes": changes(0)}))
        assert "slot 0 is state 0 x 0.50 of this target, but for 0.4 %" in finding.summary
        assert finding.cause == "data"
        (finding,) = findings(self.check({**far, "changes": changes(-1)}))
        assert "no state of this target" in finding.summary

    def test_between_rounding_and_another_state_it_cannot_be_told(self):
        (result,) = self.check({"error": 0.2, "labelled_error": 0.2})
        assert result.outcome == "cannot_tell"

    @pytest.mark.parametrize(("same", "outcome"), [(199, "passed"), (185, "cannot_tell"), (120, "finding")])
    def test_other_answers(self, same, outcome):
        (result,) = self.check(same_answers=same)
        assert result.outcome == outcome


class TestGap:
    def check(self, lift: float, count: int = 24, **heldout: Any) -> CheckResult:
        rows = Rows(count=count)
        (result,) = gap(made_measured(rows=rows, heldout=replace(rows, lift=lift, seed="held-out", **heldout)))
        return result

    def test_no_held_out_rows_cannot_tell(self):
        (result,) = gap(made_measured())
        assert "--heldout" in (result.needs or "")

    @pytest.mark.parametrize("lift", [0.0, -0.07, 0.05])
    def test_an_honest_gap_passes(self, lift):
        result = self.check(lift)
        assert result.outcome == "passed"
        assert result.evidence[0].value == pytest.approx(-lift, abs=0.03)

    @pytest.mark.parametrize(("count", "outcome"), [(8, "cannot_tell"), (24, "passed")])
    def test_an_interval_that_reaches_a_large_gap_is_not_honest(self, count, outcome):
        rows = Rows(count=count, response=12, greedy=(1.0,))
        (result,) = gap(made_measured(rows=rows, heldout=replace(rows, lift=-0.12, seed="held-out")))
        told = result.evidence[0]
        assert (told.value or 0.0) <= 0.1
        assert ((told.high or 0.0) > 0.2) == (outcome == "cannot_tell")
        assert result.outcome == outcome

    @pytest.mark.parametrize(("lift", "severity"), [(-0.16, "minor"), (-0.35, "serious")])
    def test_a_gap_surely_beyond_is_a_finding(self, lift, severity):
        result = self.check(lift)
        assert (result.outcome, result.severity, result.cause) == ("finding", severity, "generalization")
        assert result.evidence[0].low is not None
        assert result.evidence[0].low > 0.07
        assert result.effect == pytest.approx(result.evidence[3].value)

    @pytest.mark.parametrize("leak", ["also_in_train", "prompts_in_train"])
    def test_a_small_gap_to_train_rows_says_nothing(self, leak):
        def told(lift: float, **leaked: int) -> CheckResult:
            rows = Rows(count=24)
            measured = made_measured(rows=rows, heldout=replace(rows, lift=lift, seed="held-out"))
            heldout = measured.result.heldout
            assert heldout is not None
            lint = sound_lint(**{"also_in_train": 0, "prompts_in_train": 0, **leaked})
            heldout = replace(heldout, used=24, lint=lint)
            (result,) = gap(replace(measured, result=replace(measured.result, heldout=heldout)))
            return result

        result = told(0.0, **{leak: 24})
        assert result.outcome == "cannot_tell"
        assert result.summary.startswith("24 of 24 held-out rows")
        assert told(0.0, **{leak: 1}).outcome == "passed"  # one of 24 hides next to nothing
        assert told(-0.3, **{leak: 12}).outcome == "finding"  # larger still without them

    def test_few_rows_cannot_tell(self):
        assert self.check(-0.3, count=3).outcome == "cannot_tell"

    def test_unlike_splits_cannot_tell(self):
        result = self.check(-0.3, greedy=(1.0,))
        assert result.outcome == "cannot_tell"
        assert "greedy and sampled" in (result.needs or "")
