"""K1 to K4 and the folder: what the drafter's files say by themselves."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.checks import config, folder, shared, tensors, vocabulary
from orchestrator.diagnosis.finding import CheckResult
from remote_payload.schema.standalone import (
    ConfigNote,
    GraphFlag,
    HeadRelation,
    HeadShift,
    MapReading,
    SharedTensorFacts,
    TensorFact,
    TensorProblem,
    TensorStatistics,
    WeightFile,
)
from tests.support.made_measured import (
    BEST,
    SHIFTED,
    WORSE,
    Made,
    Rows,
    made_measured,
    sound_checkpoint,
    sound_vocabulary,
)
from tests.support.made_results import bitmap, made_declared

Q = "layers.0.self_attn.q_proj.weight"


def findings(results: tuple[CheckResult, ...]) -> list[CheckResult]:
    return [result for result in results if result.outcome == "finding"]


def outcomes(results: tuple[CheckResult, ...]) -> list[str]:
    return [result.outcome for result in results]


class TestTensors:
    def check(self, **changes: Any) -> tuple[CheckResult, ...]:
        return tensors(made_measured(**{f"checkpoint_{key}": value for key, value in changes.items()}))

    def statistics(self, **changes: Any) -> tuple[CheckResult, ...]:
        plain: dict[str, Any] = {"name": Q, "mean": 0.0, "std": 0.02, "spectral_excess": 1.8, "row_norm_spread": 2.5}
        trained = [TensorStatistics(**{**plain, "name": name}) for name in ("fc.weight", "layers.0.mlp.up_proj.weight")]
        return self.check(statistics=(TensorStatistics(**{**plain, **changes}), *trained))

    def test_a_whole_trained_drafter_passes_and_says_how_far_it_is_from_random(self):
        assert outcomes(self.check()) == ["passed", "passed"]
        assert self.check()[1].evidence[1].value == 1.8
        assert self.check()[1].evidence[2].value == 1  # norms that stand at 1

    @pytest.mark.parametrize(
        ("problem", "name", "severity"),
        [
            ("missing", "fc.weight", "fatal"),
            ("misshapen", "fc.weight", "fatal"),
            ("not_finite", "norm.weight", "fatal"),
            ("unexpected", "input_norm.weight", "serious"),
            ("unexpected", "step_counter", "minor"),
        ],
    )
    def test_problems_of_the_inventory(self, problem, name, severity):
        item = TensorProblem(problem=problem, name=name, expected="[128, 384]", found="[128, 256]")
        (finding,) = findings(self.check(problems=(item,)))
        assert (finding.check, finding.severity, finding.cause) == ("K1", severity, "loading")
        assert name in finding.summary
        assert finding.evidence[0].value == "[128, 256]"

    def test_a_final_norm_that_engines_leave_at_ones_is_missing(self):
        item = TensorProblem(problem="missing", name="norm.weight", expected="shape [128]", found="nothing")
        (finding,) = findings(self.check(problems=(item,)))
        assert (finding.severity, finding.evidence[1].value) == ("serious", "ones")
        assert "engines leave it at ones" in finding.summary
        lent = TensorFact(
            name="norm.weight", stored_name="model.norm.weight", shape=(128,), dtype="BF16", source="target"
        )
        (earlier,) = findings(self.check(tensors=(lent,)))  # as earlier versions' results have it
        assert "made with the target's instead" in earlier.summary

    def test_a_head_that_sglang_leaves_random_is_missing(self):
        head = SharedTensorFacts(name="lm_head", stored=False, used="target", served="random")
        (finding,) = findings(self.check(shared=(head,)))
        assert finding.severity == "fatal"
        assert "arange(len(d2t)) + d2t" in finding.remedy[0]
        (full,) = findings(self.check(shared=(head,), draft_vocab_size=1280))
        assert "draft_vocab_size" in full.remedy[0]

    @pytest.mark.parametrize(
        ("excess", "spread", "found"),
        [(1.0, 1.0, True), (1.02, 0.63, True), (1.0, 2.5, False), (1.65, 1.0, False), (1.0, None, True)],
    )
    def test_random_numbers_are_told_from_trained_ones(self, excess, spread, found):
        assert bool(findings(self.statistics(spectral_excess=excess, row_norm_spread=spread))) is found

    def test_a_random_head_is_fatal_and_a_random_embedding_is_left_to_k4(self):
        (finding,) = findings(self.statistics(name="lm_head.weight", spectral_excess=1.0, row_norm_spread=1.0))
        assert finding.severity == "fatal"
        random = self.statistics(name="embed_tokens.weight", spectral_excess=1.0, row_norm_spread=1.0)
        assert findings(random) == []

    def test_a_drafter_that_works_is_not_random_throughout(self):
        facts: dict[str, Any] = {"mean": 0.0, "std": 0.05, "spectral_excess": 0.95, "row_norm_spread": 0.8}
        random = tuple(TensorStatistics(name=name, **facts) for name in (Q, "fc.weight", "lm_head.weight"))
        measured = made_measured(checkpoint_statistics=random)
        assert outcomes(tensors(measured)) == ["passed", "cannot_tell"]
        broken = replace(
            measured,
            result=replace(
                measured.result,
                readings=tuple(replace(item, first_step_hits=0) for item in measured.result.readings),
            ),
        )
        assert [item.severity for item in findings(tensors(broken))] == ["serious", "fatal", "fatal"]

    @pytest.mark.parametrize(("rows", "found"), [(0, False), (2, False), (12, False), (13, True), (400, True)])
    def test_duplicate_rows_of_a_pruned_head(self, rows, found):
        result = findings(self.statistics(name="lm_head.weight", duplicate_rows=rows))
        assert bool(result) is found
        if found:
            assert (result[0].evidence[0].value, result[0].evidence[0].n) == (rows, 640)

    def test_a_full_head_may_share_the_rows_of_reserved_tokens(self):
        statistics = (TensorStatistics(name="lm_head.weight", mean=0.0, std=0.02, duplicate_rows=200),)
        assert findings(self.check(statistics=statistics, draft_vocab_size=1280)) == []
        assert findings(self.check(statistics=statistics))

    def test_one_value_throughout_is_a_fault_of_matrices_alone(self):
        assert findings(self.statistics(constant=0.5))[0].severity == "fatal"
        untouched = {"name": "norm.weight", "spectral_excess": None, "row_norm_spread": None}
        assert findings(self.statistics(**untouched, constant=1.0)) == []
        assert findings(self.statistics(**untouched, constant=0.0))
        bias = self.statistics(**untouched | {"name": "layers.0.self_attn.q_proj.bias"}, constant=0.0)
        assert findings(bias) == []
        assert bias[1].evidence[-1].value == 1

    @pytest.mark.parametrize(("served", "severity"), [("target", "minor"), ("draft", "fatal")])
    def test_what_serving_never_uses_is_minor_at_most(self, served, severity):
        """An embedding of zeros, and a head: SGLang replaces the first always, the other where there is no map."""
        facts: dict[str, Any] = {"mean": 0.0, "std": 0.0, "row_norm_spread": 1.0, "constant": 0.0}
        zeros = tuple(TensorStatistics(name=name, **facts) for name in ("embed_tokens.weight", "lm_head.weight"))
        embedding = SharedTensorFacts(
            name="embed_tokens", stored=True, used="target", served="target", identical=False, mean_cosine=None
        )
        head = SharedTensorFacts(name="lm_head", stored=True, used="draft", served=served)
        measured = made_measured(checkpoint_shared=(embedding, head), checkpoint_statistics=zeros)
        (finding,) = findings(tensors(measured))
        assert (finding.severity, "`lm_head.weight` has one value" in finding.summary) == (severity, True)
        told = shared(measured)[0]
        assert (told.check, told.title, told.outcome, told.severity) == ("K4", "embedding", "finding", "minor")
        assert "does not need it" in told.summary


class TestConfig:
    def test_agreement_passes_and_names_the_dialect(self):
        (result,) = config(made_measured())
        assert result.outcome == "passed"
        assert result.evidence[0].value == "specforge"

    @pytest.mark.parametrize(
        ("key", "severity"),
        [("architectures", "serious"), ("max_position_embeddings", "minor"), ("layers.0.q_norm.weight", "serious")],
    )
    def test_each_note_is_a_finding_with_its_remedy(self, key, severity):
        note = ConfigNote(key=key, problem="nobody reads it", remedy="write another")
        (finding,) = findings(config(made_measured(checkpoint_notes=(note,))))
        assert (finding.severity, finding.remedy) == (severity, ("write another",))
        assert "nobody reads it" in finding.summary
        bias = ConfigNote(key="layers.0.self_attn.q_proj.bias", problem="nobody reads it", remedy="write another")
        for value, weight in ((0.0, "note"), (None, "serious")):
            facts = (TensorStatistics(name=bias.key, mean=0.0, std=0.0, constant=value),)
            (one,) = findings(config(made_measured(checkpoint_notes=(bias,), checkpoint_statistics=facts)))
            assert one.severity == weight
        place = "weight files, tensor" if key.endswith(".weight") else "config.json,"
        assert finding.summary.startswith(f"{place} `{key}`: ")

    @pytest.mark.parametrize(
        ("text", "key", "shown"),
        [
            ('{"max_position_embeddings": 2048}', "max_position_embeddings", "2048"),
            ('{"eagle_config": {"norm_output": true}}', "eagle_config.norm_output", "true"),
            ('{"eagle_config": {"use_aux_hidden_state": false}}', "use_aux_hidden_state", "false"),
            ("{}", "draft_vocab_size", "absent"),
        ],
    )
    def test_what_stands_under_the_key_is_the_evidence(self, text, key, shown):
        note = ConfigNote(key=key, problem="wrong", remedy="-")
        (finding,) = findings(config(made_measured(checkpoint_notes=(note,), checkpoint_config_json=text)))
        assert (finding.evidence[0].name, finding.evidence[0].value) == (f"`{key}` in config.json", shown)

    @pytest.mark.parametrize(
        ("top", "readings", "ids", "also"),
        [
            ((0, 2, 4), (BEST, WORSE), [-1, 1, 3], "keep the ids at the top for vLLM"),
            ((2, 4, 5), (BEST, WORSE), [-1, 1, 3], "as hidden states as they stand: [0, 2, 4] there"),
            ((-1, 1, 3), (BEST, WORSE), [-1, 1, 3], "as hidden states as they stand: [0, 2, 4] there"),
            ((2, 4, 5), (WORSE, SHIFTED), [1, 3, 4], "keep the ids at the top for vLLM"),
            ((-1, 1, 3), (WORSE, SHIFTED), None, None),  # no state is -1, and nothing says which were meant
        ],
    )
    def test_ids_at_the_top_are_spelled_for_sglang(self, top, readings, ids, also):
        key = "eagle_aux_hidden_state_layer_ids"
        note = ConfigNote(key=key, problem="SGLang takes its defaults", remedy="-")
        declared = replace(made_declared((2, 4, 5), (1, 2, 3)), ignored_top_level_ids=top)
        (finding,) = findings(config(made_measured(readings, declared=declared, checkpoint_notes=(note,))))
        if ids is None:
            assert finding.remedy == ("-",)
            return
        assert finding.remedy[0] == f'"eagle_config": {{"use_aux_hidden_state": true, "{key}": {ids}}}'
        assert also in finding.remedy[1]

    def test_a_contradiction_is_told_once(self):
        flag = GraphFlag(
            name="input_norm", value="joint", source="tensors", evidence="stored", contradicted_by="config names none"
        )
        (finding,) = findings(config(made_measured(checkpoint_graph=(flag,))))
        assert "config names none" in finding.summary
        other = Made((0.75, 0.5, 0.4, 0.4), changes=("input_norm=none",))
        worse = replace(other, changes=())
        measured = made_measured((replace(BEST, changes=("input_norm=none",)), worse), checkpoint_graph=(flag,))
        assert findings(config(measured)) == []  # K8 names it, with what it costs

    def test_the_embeddings_contradiction_is_k4s(self):
        flag = GraphFlag(name="embedding", value="target", source="dialect", evidence="x", contradicted_by="stored")
        assert findings(config(made_measured(checkpoint_graph=(flag,)))) == []


class TestVocabulary:
    def check(self, **changes: Any) -> tuple[CheckResult, ...]:
        return vocabulary(made_measured(checkpoint_vocabulary=sound_vocabulary(**changes)))

    def reading(self, name: str, **changes: Any) -> MapReading:
        plain: dict[str, Any] = {"in_range": 640, "distinct": 640, "increasing": True, "agrees_with_t2d": True}
        return MapReading(reading=name, **{**plain, **changes})

    def test_sound_offsets_pass(self):
        assert outcomes(self.check()) == ["passed", "passed"]

    def test_a_full_vocabulary_needs_no_map(self):
        assert outcomes(self.check(d2t=False, draft_vocab_size=1280, t2d_marked=None)) == ["passed", "passed"]

    def test_a_pruned_one_does(self):
        (finding,) = findings(self.check(d2t=False))
        assert finding.severity == "fatal"

    def test_target_ids_instead_of_offsets(self):
        readings = (self.reading("offset", in_range=400, distinct=400, agrees_with_t2d=False), self.reading("absolute"))
        (finding,) = findings(self.check(readings=readings))
        assert (finding.severity, finding.cause) == ("fatal", "loading")
        assert "d2t - torch.arange(len(d2t))" in finding.remedy[0]

    def test_offsets_that_lead_several_ids_to_one_token(self):
        readings = (self.reading("offset", distinct=600), self.reading("absolute", distinct=30))
        (finding,) = findings(self.check(readings=readings))
        assert "0 of 640 ids outside the vocabulary and 40 to a token that another id leads to" in finding.summary
        assert [line.value for line in finding.evidence[:2]] == [0, 40]

    def test_all_zero_offsets(self):
        zero = (self.reading("offset", agrees_with_t2d=False),)
        (finding,) = findings(self.check(all_zero=True, readings=zero))
        assert "all zero" in finding.summary
        first_ids = (self.reading("offset", agrees_with_t2d=True),)
        assert findings(self.check(all_zero=True, readings=first_ids)) == []  # t2d marks just these
        full = self.check(all_zero=True, readings=zero, vocab_size=640, draft_vocab_size=640)
        assert [item.severity for item in findings(full)] == ["minor"]  # the identity is right; t2d alone disagrees

    @pytest.mark.parametrize(
        ("changes", "word"), [({"agrees_with_t2d": False}, "t2d"), ({"increasing": False}, "increasing")]
    )
    def test_what_engines_do_not_notice_is_minor(self, changes, word):
        (finding,) = findings(self.check(readings=(self.reading("offset", **changes),)))
        assert finding.severity == "minor"
        assert word in finding.summary

    POOR = (Made((0.2, 0.1, 0.1, 0.1)), Made((0.1, 0.1, 0.1, 0.1), (1, 2, 3)))

    def by_head(self, *, poor: bool = False, agrees: bool = True, **head: Any) -> list[CheckResult]:
        plain: dict[str, Any] = {"sampled": 640, "related": 0, "correlation": 0.0}
        facts = sound_vocabulary(
            head=HeadRelation(**{**plain, **head}), readings=(self.reading("offset", agrees_with_t2d=agrees),)
        )
        readings = self.POOR if poor else (BEST, WORSE, SHIFTED)
        return findings(vocabulary(made_measured(readings, checkpoint_vocabulary=facts)))

    def shift(self, first: int, last: int, by: int) -> HeadShift:
        return HeadShift(first=first, last=last, ids=last - first + 1, shift=by, correlation=0.7, as_mapped=0.0)

    def test_a_map_that_is_off_by_one_is_named_with_what_mends_it(self):
        (finding,) = self.by_head(poor=True, agrees=False, shifts=(self.shift(0, 639, -1),))
        assert (finding.severity, finding.cause) == ("fatal", "loading")
        assert "off by a constant" in finding.summary
        assert "+1 from draft id 0 to 639" in finding.summary
        assert "lm_head itself is whole" in finding.remedy[0]
        assert "`d2t[0:640] += -1`" in finding.remedy[1]

    def test_a_map_that_is_off_in_one_part_is_serious_where_all_else_reads_well(self):
        (finding,) = self.by_head(agrees=False, related=320, correlation=0.6, shifts=(self.shift(320, 639, -1),))
        assert finding.severity == "serious"
        assert "from draft id 320 to 639" in finding.summary

    def test_a_map_of_another_run_beside_the_right_t2d(self):
        (finding,) = self.by_head(poor=True, agrees=False, t2d_related=630, t2d_correlation=0.7)
        assert finding.severity == "fatal"
        assert "t2d.nonzero()" in finding.remedy[1]

    def test_a_t2d_of_another_run_beside_the_right_map_is_minor(self):
        (finding,) = self.by_head(poor=True, agrees=False, related=630, correlation=0.7, t2d_related=0)
        assert finding.severity == "minor"
        assert "t2d is of another export" in finding.summary

    def test_rows_in_another_order_are_named(self):
        (finding,) = self.by_head(related=440, correlation=0.6, elsewhere=190)
        assert finding.severity == "serious"
        assert "30 % of the rows at least" in finding.summary
        (rolled,) = self.by_head(poor=True, row_shift=1)
        assert "row i+1 belongs to draft id i's token" in rolled.summary

    def test_a_head_that_knows_no_map_is_a_fault_where_nothing_reads_well_alone(self):
        (finding,) = self.by_head(poor=True)
        assert "do not belong together" in finding.summary
        assert self.by_head() == []
        assert self.by_head(poor=True, related=400, correlation=0.3) == []

    def test_t2d_alone_is_fatal_where_nothing_is_predicted(self):
        facts = sound_vocabulary(readings=(self.reading("offset", agrees_with_t2d=False),))
        (finding,) = findings(vocabulary(made_measured(self.POOR, checkpoint_vocabulary=facts)))
        assert finding.severity == "fatal"

    def test_a_map_that_reads_better_otherwise_is_named_by_the_sweep(self):
        readings = (Made(changes=("vocabulary=absolute",)), Made((0.05, 0.05, 0.05, 0.05)), WORSE)
        (finding,) = findings(vocabulary(made_measured(readings)))
        assert "vocabulary=absolute" in finding.summary
        assert finding.severity == "fatal"
        assert finding.effect == pytest.approx(1.93 - 0.05, abs=0.2)

    @pytest.mark.parametrize(("every", "severity"), [(3, "serious"), (6, "minor"), (20, None)])
    def test_choices_that_cannot_be_proposed(self, every, severity):
        rows = Rows(count=12)
        measured = made_measured(rows=rows)
        mask = rows.mask()
        outside = bitmap([at % every != 0 for at in range(len(mask))])
        facts = [replace(row, teacher_in_draft_vocab=outside) for row in measured.train.rows]
        measured = replace(measured, train=replace(measured.train, rows=facts))
        found = findings(vocabulary(measured))
        assert [item.severity for item in found] == ([severity] if severity else [])
        if found:
            assert found[0].evidence[0].value == pytest.approx(1 / every, abs=0.02)
            assert found[0].cause == "data"
            assert "too few for this text or were chosen on other text" in found[0].summary  # they look the same
            assert found[0].evidence[1].value == measured.result.checkpoint.draft_vocab_size

    def test_coverage_is_not_blamed_where_the_map_itself_is_wrong(self):
        facts = sound_checkpoint(vocabulary=sound_vocabulary(d2t=False))
        rows = Rows(count=12)
        measured = made_measured(rows=rows, checkpoint=facts)
        nothing = [replace(row, teacher_in_draft_vocab=bitmap([0] * row.tokens)) for row in measured.train.rows]
        measured = replace(measured, train=replace(measured.train, rows=nothing))
        assert [item.title for item in findings(vocabulary(measured))] == ["vocabulary map"]


class TestShared:
    def check(self, *readings: Made, **changes: Any) -> tuple[CheckResult, ...]:
        plain: dict[str, Any] = {"name": "embed_tokens", "stored": True, "used": "target", "served": "target"}
        item = SharedTensorFacts(**{**plain, **changes})
        return shared(made_measured(readings or (BEST, WORSE), checkpoint_shared=(item,)))

    @pytest.mark.parametrize(
        ("changes", "outcome"),
        [
            ({"stored": False}, "passed"),
            ({"identical": True, "mean_cosine": 1.0}, "passed"),
            ({"identical": False, "mean_cosine": 0.995}, "passed"),
            ({"identical": None, "mean_cosine": None}, "cannot_tell"),
            ({"identical": False, "mean_cosine": 0.01}, "finding"),
        ],
    )
    def test_the_embedding(self, changes, outcome):
        (result,) = self.check(**changes)
        assert result.outcome == outcome
        if outcome == "finding":
            assert (result.severity, result.evidence[-1].value) == ("minor", 0.01)
            assert "embed_tokens.weight" in result.remedy[0]

    def test_an_embedding_that_the_drafter_needs_and_sglang_replaces(self):
        needs = (Made(changes=("embedding=draft",)), Made((0.3, 0.3, 0.3, 0.3)), WORSE)
        (result,) = self.check(*needs, identical=False, mean_cosine=0.4)
        assert (result.outcome, result.severity, result.cause) == ("finding", "serious", "wiring")
        assert "vLLM" in result.remedy[0]

    def test_a_head_of_its_own_is_no_fault_however_unlike(self):
        (result,) = self.check(name="lm_head", used="draft", served="draft", mean_cosine=0.001)
        assert result.outcome == "passed"

    def test_unless_nothing_fits(self):
        nothing = (Made((0.02, 0.0, 0.0, 0.0)), Made((0.01, 0.0, 0.0, 0.0), (1, 2, 3)))
        (result,) = self.check(*nothing, name="lm_head", used="draft", served="draft", mean_cosine=0.001)
        assert (result.outcome, result.severity) == ("finding", "fatal")
        (alike,) = self.check(*nothing, name="lm_head", used="draft", served="draft", mean_cosine=0.3)
        assert alike.outcome == "passed"

    def test_the_targets_head_is_a_fault_where_nothing_fits(self):
        same: dict[str, Any] = {"name": "lm_head", "used": "draft", "served": "draft", "identical": True}
        assert self.check(**same, mean_cosine=1.0)[0].outcome == "passed"
        nothing = (Made((0.02, 0.0, 0.0, 0.0)), Made((0.01, 0.0, 0.0, 0.0), (1, 2, 3)))
        (result,) = self.check(*nothing, **same, mean_cosine=1.0)
        assert (result.outcome, result.severity, result.cause) == ("finding", "serious", "loading")
        assert "bit by bit the target's rows" in result.summary


class TestMapsStoredAsFloats:
    @pytest.mark.parametrize(
        ("name", "dtype", "severity"),
        [("d2t", "F32", "minor"), ("d2t", "BF16", "serious"), ("t2d", "F32", "note"), ("d2t", "I64", None)],
    )
    def test_are_named(self, name, dtype, severity):
        fact = TensorFact(name=name, stored_name=name, shape=(640,), dtype=dtype, source="draft")
        found = findings(vocabulary(made_measured(checkpoint_tensors=(fact,))))
        assert [item.severity for item in found] == ([] if severity is None else [severity])
        assert all(f"{name} is stored as floats ({dtype})" in item.summary for item in found)


class TestFolder:
    def check(self, **changes: Any) -> CheckResult:
        plain: dict[str, Any] = {
            "name": "old.safetensors",
            "size_bytes": 9,
            "used": False,
            "role": "weights",
            "tensors": 3,
        }
        (result,) = folder(made_measured(checkpoint_files=(WeightFile(**{**plain, **changes}),)))
        return result

    def test_one_set_of_weights_passes(self):
        assert self.check(used=True).outcome == "passed"

    def test_a_copy_bit_by_bit_passes_and_is_named(self):
        copy = self.check(used=True, role="copy of weights")
        assert (copy.outcome, "the same numbers once more in old.safetensors" in copy.summary) == ("passed", True)

    @pytest.mark.parametrize(
        ("best", "severity", "moved"), [(BEST, "serious", "old.safetensors"), (WORSE, "fatal", "zz.safetensors")]
    )
    def test_of_two_files_with_the_same_tensors_the_one_that_reads_well_stays(self, best, severity, moved):
        text = "zz.safetensors overrides 1 of its 1 tensors"
        file = WeightFile(
            name="old.safetensors", size_bytes=9, tensors=1, used=True, role="weights", problem=text,
            overridden_by="zz.safetensors",
        )  # fmt: skip
        (result,) = folder(made_measured((best, SHIFTED), checkpoint_files=(file,)))
        assert (result.outcome, result.severity) == ("finding", severity)
        assert result.summary == f"old.safetensors: {text}"
        assert result.remedy[0].startswith(f"move {moved} out of the folder")
        assert result.evidence[0].value == "zz.safetensors"

    def test_what_engines_leave_alone_is_minor(self):
        assert self.check(role="vocabulary map", problem="beside weights", tensors=None).severity == "minor"
        assert "index" in self.check(role="index", problem="names a tensor that is not there").remedy[0]
