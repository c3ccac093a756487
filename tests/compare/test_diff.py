import dataclasses

import pytest

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, SetComparison
from orchestrator.compare.diff import compare_many, compare_sets, is_unsure, overall
from orchestrator.compare.pooling import Operand
from orchestrator.errors import UsageError
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.report.diff_verdict import verdict_lines
from tests.support.made_sets import CASE, facts, lengths, measurement, measurement_set, throughputs

BASE = (90.1, 89.6, 90.4, 90.0, 89.9)
BETTER = (100.1, 99.6, 100.4, 100.0, 99.9)
WORSE = (80.1, 79.6, 80.4, 80.0, 79.9)


def side(*measurements: Measurement, label: str = "run", **more: object) -> Operand:
    return Operand(label=label, sets=(measurement_set(*measurements, run_id=label, **more),))


def compared(ours: Measurement, theirs: Measurement, **asked: object) -> SetComparison:
    return compare_sets(side(ours, label="new"), side(theirs, label="old"), Asked(**asked))  # type: ignore[arg-type]


def only(found: SetComparison) -> CaseComparison:
    (case,) = found.cases
    return case


def line(found: SetComparison, metric: str) -> Comparison:
    return next(item for item in only(found).comparisons if item.metric.name == metric)


def test_the_primary_metrics_decide_and_are_corrected_for_each_other() -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    theirs = measurement(throughputs(*BASE), lengths(tokens, verifies))
    ours = measurement(throughputs(*BETTER), lengths([value * 1.3 for value in tokens], verifies))
    found = compared(ours, theirs)
    assert found.verdict == only(found).verdict == "improved"
    first = line(found, "output_throughput_tok_s")
    assert first.correction == "Holm"
    assert first.p_adjusted is not None
    assert first.tests[0].p is not None
    assert first.p_adjusted > first.tests[0].p


def test_one_regression_outweighs_an_improvement() -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    theirs = measurement(throughputs(*BASE), lengths(tokens, verifies))
    ours = measurement(throughputs(*WORSE), lengths([value * 1.3 for value in tokens], verifies))
    assert compared(ours, theirs).verdict == "regressed"
    assert compared(ours, theirs, metrics=("accept_length_pooled",)).verdict == "improved"


@pytest.mark.parametrize("name", ["target", "draft", "gpu", "prompts_sha256"])
def test_a_hard_circumstance_leaves_no_verdict_unless_forced_or_under_test(name: str) -> None:
    ours, theirs = measurement(throughputs(*BETTER), hard={name: "another"}), measurement(throughputs(*BASE))
    found = compared(ours, theirs)
    assert found.verdict == "not comparable"
    assert [item.name for item in only(found).hard] == [name]
    barred = line(found, "output_throughput_tok_s")
    assert (barred.change.value, barred.tests, barred.verdict) == (None, (), "not comparable")
    assert barred.ours.value == pytest.approx(100.0, abs=1e-3)
    forced = compared(ours, theirs, force=True)
    assert (forced.verdict, [item.name for item in only(forced).hard]) == ("improved", [name])
    varied = compared(ours, theirs, vary=(name,))
    assert (varied.verdict, only(varied).hard) == ("improved", ())
    assert [item.name for item in only(varied).varied] == [name]


def test_what_cannot_but_vary_with_a_factor_varies_with_it_and_nothing_else() -> None:
    theirs = measurement(throughputs(*BASE), hard={"num_steps": "3", "num_draft_tokens": "4"})
    ours = measurement(throughputs(*BETTER), hard={"num_steps": "5", "num_draft_tokens": "6"})
    assert compared(ours, theirs, vary=("speculative_num_steps",)).verdict == "improved"
    assert compared(ours, theirs, vary=("num_draft_tokens",)).verdict == "not comparable"


def test_soft_circumstances_and_arguments_are_told_and_do_not_bar() -> None:
    theirs = measurement(throughputs(*BASE), soft={"host": "gpu1"}, arguments={"page_size": "1", "port": "1"})
    ours = measurement(throughputs(*BETTER), soft={"host": "gpu2"}, arguments={"page_size": "64", "port": "2"})
    found = only(compared(ours, theirs))
    assert found.verdict == "improved"
    assert [(item.name, item.ours, item.theirs) for item in found.soft] == [("host", "gpu2", "gpu1")]
    assert [item.name for item in found.arguments] == ["page_size"]
    alone = only(compared(measurement(throughputs(*BETTER), soft={"host": "gpu1", "seed": "1"}), theirs))
    assert [(item.name, item.ours, item.theirs) for item in alone.soft] == [("seed", "1", None)]


def test_steps_that_change_while_a_server_runs_are_a_step_flag() -> None:
    fixed, adaptive, older = (
        measurement(throughputs(*values), arguments={"page_size": "1"} | told)
        for values, told in (
            (BASE, {"speculative_adaptive": "false"}),
            (BETTER, {"speculative_adaptive": "true"}),
            (BETTER, {}),
        )
    )
    found = compared(adaptive, fixed)
    assert found.verdict == "not comparable"
    assert [(item.name, item.ours, item.theirs) for item in only(found).hard] == [
        ("speculative_adaptive", "true", "false")
    ]
    assert compared(adaptive, older).verdict == "not comparable"
    assert (compared(older, fixed).verdict, only(compared(older, fixed)).arguments) == ("improved", ())
    assert compared(adaptive, fixed, vary=("speculative_adaptive",)).verdict == "improved"


def test_what_a_side_does_not_tell_is_unknown_and_no_mismatch() -> None:
    found = only(compared(measurement(throughputs(*BETTER), hard={"gpu": None}), measurement(throughputs(*BASE))))
    assert (found.verdict, found.unknown) == ("improved", ("gpu",))


def test_the_same_prompts_under_another_name_are_the_same_prompts() -> None:
    theirs = measurement(throughputs(*BASE), hard={"dataset": "a.jsonl"})
    ours = measurement(throughputs(*BETTER), hard={"dataset": "b.jsonl"})
    assert compared(ours, theirs).verdict == "improved"
    other = measurement(throughputs(*BETTER), hard={"dataset": "b.jsonl", "prompts_sha256": "cd"})
    assert {item.name for item in only(compared(other, theirs)).hard} == {"dataset", "prompts_sha256"}


def test_an_invalid_measurement_has_no_verdict_forced_or_not() -> None:
    ours = measurement(throughputs(*BETTER), invalid=("1 of 8 requests failed",))
    assert compared(ours, measurement(throughputs(*BASE))).verdict == "invalid"
    assert compared(measurement(throughputs(*BASE)), ours).verdict == "invalid"
    forced = compared(ours, measurement(throughputs(*BASE), hard={"gpu": "another"}), force=True)
    assert (forced.verdict, line(forced, "output_throughput_tok_s").change.value) == ("invalid", None)
    (told,) = verdict_lines(forced, Asked(force=True))  # no hint at a force that would not help
    assert told.startswith("Invalid: ")
    assert "1 of 8 requests failed" in told


def test_other_definitions_are_not_comparable_unless_forced() -> None:
    theirs = measurement(throughputs(*BASE, definition="tokens / total duration, the last question in"))
    found = compared(measurement(throughputs(*BETTER)), theirs)
    assert found.verdict == "not comparable"
    assert "other definition" in line(found, "output_throughput_tok_s").note
    forced = compared(measurement(throughputs(*BETTER)), theirs, force=True)
    assert forced.verdict == "improved"
    assert "the last question in" in line(forced, "output_throughput_tok_s").note


def test_a_typed_number_takes_our_definition_but_never_our_unit() -> None:
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(90.0,))
    ours = side(measurement(throughputs(*BETTER)), label="new")

    def against(series: Series) -> SetComparison:
        typed = side(Measurement(case=(), series=(series,)), label="baseline:plain", origin="typed")
        return compare_sets(ours, typed, Asked())

    found = against(number)
    assert found.verdict == "improved"
    assert set(only(found).unknown) >= {"gpu", "side", "concurrency"}
    assert against(dataclasses.replace(number, unit="req/s")).verdict == "not comparable"


def test_a_published_number_is_held_by_its_own_definition() -> None:
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="theirs", level="summary", y=(90.0,))
    published = side(Measurement(case=(), series=(number,)), label="published:x", origin="published")
    ours = side(measurement(throughputs(*BETTER)), label="new")
    assert compare_sets(ours, published, Asked()).verdict == "not comparable"
    assert compare_sets(ours, published, Asked(force=True)).verdict == "improved"


def test_a_number_without_a_load_fits_the_drafters_side_and_never_two_loads() -> None:
    loads = [
        measurement(throughputs(*BETTER), case={"side": name, "concurrency": users})
        for name, users in (("spec", "1"), ("plain", "1"), ("spec", "4"))
    ]
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(90.0,))
    typed = side(Measurement(case=(), series=(number,)), label="plain", origin="typed")
    one = compare_sets(side(*loads[:2]), typed, Asked())
    assert [fact.value for fact in only(one).case] == ["spec", "1"]
    several = compare_sets(side(*loads), typed, Asked())
    assert several.verdict == "not comparable"
    assert "--where concurrency=1" in several.notes[0]
    chosen = compare_sets(side(*loads), typed, Asked(where={"concurrency": "4"}))
    assert (chosen.verdict, only(chosen).case[1].value) == ("improved", "4")


def test_users_at_once_against_requests_a_second_are_compared_where_that_is_asked_for() -> None:
    ours = side(measurement(throughputs(*BASE)))
    typed = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(60.0,))
    rate = side(Measurement(case=facts({"request_rate": "4"}), series=(typed,)), label="b", origin="typed")
    told = "of different kinds: --vary {} --vary {} compares across them all the same"
    keys = ("concurrency", "request_rate")
    (note,) = compare_sets(ours, rate, Asked()).notes
    assert note.endswith(told.format(*keys))
    assert compare_sets(ours, rate, Asked(vary=keys)).verdict == "improved"
    (turned,) = compare_sets(rate, ours, Asked()).notes
    assert turned.endswith(told.format(*reversed(keys)))
    assert compare_sets(rate, ours, Asked(vary=keys)).verdict == "regressed"
    split = side(Measurement(case=facts({"split": "train"}), series=(typed,)), label="b")
    (apart,) = compare_sets(ours, split, Asked()).notes
    assert apart.endswith("are measurements of different kinds")


def test_loads_are_paired_by_what_they_are_and_the_rest_is_named() -> None:
    ours = [measurement(throughputs(*BASE), case={**CASE, "concurrency": users}) for users in ("1", "4")]
    theirs = [measurement(throughputs(*BASE), case={**CASE, "concurrency": users}) for users in ("4", "16")]
    found = compare_sets(side(*ours), side(*theirs), Asked())
    assert [fact.value for fact in only(found).case] == ["spec", "4"]
    assert [case[1].value for case in found.only_ours] == ["1"]
    assert [case[1].value for case in found.only_theirs] == ["16"]
    none = compare_sets(side(ours[0]), side(theirs[1]), Asked())
    assert (none.verdict, none.cases) == ("not comparable", ())
    assert none.notes[-1].endswith("--vary concurrency compares across them")
    other_kind = side(measurement(throughputs(*BASE), case={"split": "train"}))
    assert "measurements of different kinds" in compare_sets(side(ours[0]), other_kind, Asked()).notes[-1]
    varied = compare_sets(side(ours[0]), side(theirs[1]), Asked(vary=("concurrency",)))
    assert [(item.name, item.ours, item.theirs) for item in only(varied).varied] == [("concurrency", "1", "16")]


def test_a_figure_that_only_the_baseline_has_is_not_dropped() -> None:
    theirs = measurement(throughputs(*BASE), lengths([20.0] * 6, [10.0] * 6))
    found = compared(measurement(throughputs(*BETTER)), theirs)
    missing = line(found, "accept_length_pooled")
    assert (missing.verdict, missing.ours.value, missing.theirs.value) == ("not comparable", None, pytest.approx(2.0))
    assert "this side has no accept_length_pooled, but it has output_throughput_tok_s" in missing.note
    assert found.verdict == "improved"  # what can be compared decides


def test_runs_of_one_side_are_put_together_and_what_varies_among_them_is_told() -> None:
    def run(run_id: str, *values: float, **hard: str) -> MeasurementSet:
        return measurement_set(measurement(throughputs(*values, run_id=run_id), hard=hard), run_id=run_id)

    old = Operand(label="old", sets=(run("a", 90.0, 90.4), run("b", 89.6, 90.1), run("e", 90.0, 90.2)))
    new = Operand(label="new", sets=(run("c", 100.0, 100.4), run("d", 99.6, 100.1), run("f", 100.0)))
    found = compare_sets(new, old, Asked())
    assert (line(found, "output_throughput_tok_s").n_ours, found.verdict) == (3, "improved")
    mixed = Operand(label="mixed", sets=(run("c", 100.0, 100.4), run("d", 99.6, 100.1, gpu="NVIDIA H100")))
    barred = compare_sets(mixed, old, Asked())
    assert only(barred).hard[0].ours == "NVIDIA H100 / NVIDIA H200"
    assert barred.notes == ("mixed: gpu differs between its runs",)


def test_runs_of_which_the_acceptance_differs_on_the_same_prompts_are_told_apart() -> None:
    """Four runs of +0.2, -1.5, +0.2, +10.7 %: their mean over prompts is sure to a percent, and they are not."""
    verifies = [40.0, 50.0, 60.0, 45.0, 55.0, 65.0, 70.0, 48.0]

    def run(name: str, factor: float) -> MeasurementSet:
        tokens = [factor * (1.9 + 0.01 * index) * steps for index, steps in enumerate(verifies)]
        return measurement_set(measurement(lengths(tokens, verifies)), run_id=name)

    old = Operand(label="old", sets=(run("a", 1.0),))
    new = Operand(label="new", sets=tuple(run(f"n{index}", f) for index, f in enumerate((1.002, 0.985, 1.002, 1.107))))
    found = only(compare_sets(new, old, Asked()))
    assert found.ours.warnings == (
        "accept_length_pooled differs among the 4 runs put together, 1.908 to 2.144 on the same 8 prompts; their mean "
        "by run is within 1.82 to 2.157 (95 %): the interval over prompts leaves that out",
    )
    near = Operand(label="near", sets=tuple(run(f"n{index}", f) for index, f in enumerate((1.002, 0.995, 1.002))))
    assert only(compare_sets(near, old, Asked())).ours.warnings == ()
    assert only(compare_sets(old, new, Asked())).theirs.warnings == found.ours.warnings
    two = Operand(label="two", sets=new.sets[2:])
    assert (
        "2 runs put together, 1.941 to 2.144 on the same 8 prompts: the interval"
        in (only(compare_sets(two, old, Asked())).ours.warnings[0])
    )


def test_a_run_on_both_sides_is_told() -> None:
    made = {run: measurement(throughputs(*y, run_id=run)) for run, y in (("a", BASE), ("b", BETTER))}
    old, new = (measurement_set(one, run_id=run) for run, one in made.items())
    found = compare_sets(Operand(label="since", sets=(old, new)), Operand(label="a", sets=(old,)), Asked())
    assert found.notes[0] == "a is on both sides: the sides are not independent, and differ less than they would"
    apart = compare_sets(Operand(label="b", sets=(new,)), Operand(label="a", sets=(old,)), Asked())
    assert apart.notes == ()
    loads = [measurement(throughputs(*BASE), case={**CASE, "concurrency": users}) for users in ("1", "4")]
    within = compare_sets(side(loads[0]), side(loads[1]), Asked(vary=("concurrency",)))
    assert within.notes == ()  # one run, but no load of it is on both sides


def test_a_load_that_has_none_of_the_metrics_asked_for_decides_nothing() -> None:
    draws = [(20.0 + 0.1 * (n % 3), 10.0) for n in range(8)]
    tokens, verifies = [y for y, _ in draws], [x for _, x in draws]
    spec = [measurement(throughputs(*BASE), lengths([k * y for y in tokens], verifies)) for k in (1.3, 1.0)]
    plain = measurement(throughputs(*BASE), case={**CASE, "side": "plain"})
    ours, theirs = side(spec[0], plain, label="new"), side(spec[1], plain, label="old")
    found = compare_sets(ours, theirs, Asked(metrics=("accept_length_pooled",)))
    assert (found.verdict, len(found.cases)) == ("improved", 1)
    bad = side(spec[0], dataclasses.replace(plain, invalid=("3 requests failed",)), label="new")
    assert compare_sets(bad, theirs, Asked(metrics=("accept_length_pooled",))).verdict == "invalid"
    only_plain = compare_sets(side(plain, label="new"), side(plain, label="old"), Asked(vary=("side",)))
    assert only_plain.verdict != "not comparable"


def test_a_run_against_itself_is_the_same_run_and_nothing_is_judged() -> None:
    one = side(measurement(throughputs(*BASE), lengths([20.0] * 60, [10.0] * 60)), label="a")
    found = compare_sets(one, one, Asked())
    item = line(found, "output_throughput_tok_s")
    assert (found.verdict, item.verdict, item.change.value) == ("the same run", "the same run", None)
    assert item.ours.value == item.theirs.value == pytest.approx(90.0, abs=1e-3)
    assert item.note == "it is the same run on both sides"
    assert compare_sets(one, one, Asked(force=True)).verdict == "equivalent"
    plain = side(measurement(throughputs(*WORSE), case={**CASE, "side": "plain"}), label="a")
    assert compare_sets(one, plain, Asked(vary=("side",))).verdict == "improved"  # its other side is not itself


def shares(cached: float, tokens: float = 100.0) -> tuple[Series, Series]:
    """Six prompts of which so much came from the cache, answered with so many tokens."""
    made = lengths([100.0 * cached] * 6, [100.0] * 6)
    share = dataclasses.replace(made, metric="cached_share", unit="share", definition="cached")
    return share, dataclasses.replace(made, metric="output_tokens", y=(tokens,) * 6, x=(1.0,) * 6)


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (shares(0.9), "the prefix cache held 90.0 % of our prompt tokens and 0.0 % of theirs"),
        (shares(0.0, 60.0), "our outputs are 60.0 tokens long, theirs 100.0"),
    ],
)
def test_speeds_of_unlike_work_are_not_comparable_and_acceptance_is(ours: tuple[Series, ...], words: str) -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    theirs = measurement(throughputs(*BASE), lengths(tokens, verifies), *shares(0.0))
    mine = measurement(throughputs(*BETTER), lengths([value * 0.8 for value in tokens], verifies), *ours)
    found = compared(mine, theirs)
    speed = line(found, "output_throughput_tok_s")
    assert (speed.verdict, speed.change.value, speed.note) == ("not comparable", None, words)
    assert (line(found, "accept_length_pooled").verdict, found.verdict) == ("regressed", "regressed")
    assert found.notes == (f"speeds are of unlike work: {words} (side=spec concurrency=1)",)
    assert compared(mine, theirs, metrics=("output_throughput_tok_s",)).verdict == "not comparable"
    forced = compared(mine, theirs, force=True)
    assert line(forced, "output_throughput_tok_s").verdict == "improved"
    other = measurement(throughputs(*BETTER), *ours, hard={"cache_policy": "not flushed"})
    flushed = dataclasses.replace(theirs, hard=(*theirs.hard, Fact(name="cache_policy", value="flushed")))
    varied = compared(other, flushed, vary=("cache_policy",))
    assert line(varied, "output_throughput_tok_s").verdict == "improved"
    near = measurement(throughputs(*BETTER), lengths(tokens, verifies), *shares(0.04, 104.0))
    assert compared(near, theirs).verdict == "improved"


@pytest.mark.parametrize(("temperature", "verdict"), [("0", "inconclusive"), ("0.7", "not comparable")])
def test_a_cache_that_was_flushed_on_one_side_bars_speeds_alone_where_decoding_is_greedy(
    temperature: str, verdict: str
) -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    ours, theirs = (
        measurement(
            throughputs(*speeds),
            lengths(tokens, verifies),
            hard={"temperature": temperature, "cache_policy": policy},
        )
        for speeds, policy in ((BETTER, "not flushed"), (BASE, "flushed before each point"))
    )
    found = compared(ours, theirs)
    assert (found.verdict, line(found, "output_throughput_tok_s").verdict) == (verdict, "not comparable")
    if verdict == "inconclusive":
        words = "cache_policy: not flushed against flushed before each point"
        assert line(found, "output_throughput_tok_s").note == words
        assert (only(found).hard, only(found).soft[-1].name) == ((), "cache_policy")
        assert found.notes == (f"speeds are of unlike work: {words} (side=spec concurrency=1)",)


def test_what_nobody_tells_is_told_and_a_side_that_tells_nothing_is_named() -> None:
    bare = [
        Measurement(case=measurement(throughputs(1.0)).case, series=(throughputs(*values),))
        for values in (BETTER, BASE)
    ]
    found = only(compared(*bare))
    assert (found.verdict, found.silent) == ("improved", ("ours", "theirs"))
    assert {"target", "gpu", "temperature", "cache_policy"} <= set(found.unknown)
    known = measurement(throughputs(*BASE), hard={"top_k": None})
    assert only(compared(bare[0], known)).silent == ("ours",)
    assert only(compared(known, known, force=True)).unknown == ("top_k",)  # told by neither
    drafter = measurement(throughputs(*BASE), case={"split": "train"})
    assert only(compared(drafter, drafter, force=True)).unknown == ()


def test_margins_of_ones_own_replace_the_catalogues() -> None:
    ours, theirs = measurement(throughputs(*BETTER)), measurement(throughputs(*BASE))
    wide = compared(ours, theirs, margins={"output_throughput_tok_s": 0.2})
    assert (wide.verdict, line(wide, "output_throughput_tok_s").margin) == ("equivalent", 0.2)


def test_many_against_the_first_share_a_correction() -> None:
    sides = [side(measurement(throughputs(*values)), label=str(i)) for i, values in enumerate((BASE, BETTER, WORSE))]
    found = compare_many(sides, Asked())
    assert [one.verdict for one in found] == ["improved", "regressed"]
    assert {one.theirs_label for one in found} == {"0"}
    assert {line(one, "output_throughput_tok_s").correction for one in found} == {"Benjamini-Hochberg"}


def test_what_decides_between_two_sides_is_resampled_and_told() -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    old, new = (measurement(lengths(tokens, some)) for some in (verifies, [8.0, 9.0, 9.0, 9.0, 8.0, 9.0]))
    found = compared(new, old)
    item = line(found, "accept_length_pooled")
    assert item.bootstrap is not None
    assert item.change.low is not None
    assert item.bootstrap.low == pytest.approx(item.change.low, abs=0.05)
    assert any(words.startswith("by resampling the prompts: +23.1 % [+") for words in verdict_lines(found, Asked()))
    one, other = compare_many([side(old, label="old"), side(new, label="a"), side(new, label="b")], Asked())
    assert line(one, "accept_length_pooled").bootstrap is line(other, "accept_length_pooled").bootstrap is None


def test_equivalence_tells_its_own_test() -> None:
    found = compared(measurement(throughputs(90.2, 89.8, 90.1, 90.3, 89.7)), measurement(throughputs(*BASE)))
    assert found.verdict == "equivalent"
    assert any(words.endswith("(two one-sided tests: p < 0.0001)") for words in verdict_lines(found, Asked()))


def test_too_few_samples_are_no_alarm_and_unsure() -> None:
    found = compared(measurement(throughputs(100.0)), measurement(throughputs(90.0)))
    assert found.verdict == "single run"
    assert is_unsure(found, Asked())
    sure = compared(measurement(throughputs(*BETTER)), measurement(throughputs(*BASE)))
    assert not is_unsure(sure, Asked())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"vary": ("gpus",)}, "--vary: none of these measurements tells of: gpus"),
        ({"where": {"users": "4"}}, "--where: none of these measurements tells of: users"),
        ({"metrics": ("output_troughput",)}, "--metric: none of these measurements has: output_troughput"),
    ],
)
def test_names_that_nobody_knows_are_usage_errors(asked: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compared(measurement(throughputs(*BASE)), measurement(throughputs(*BASE)), **asked)


def test_a_factor_that_does_not_vary_is_told() -> None:
    found = compared(measurement(throughputs(*BETTER)), measurement(throughputs(*BASE)), vary=("gpu",))
    assert found.notes == ("--vary gpu: it is the same on both sides",)


def test_the_worst_verdict_stands_for_several() -> None:
    assert overall(["improved", "equivalent", "regressed"]) == "regressed"
    assert overall(["improved", "invalid"]) == "invalid"
    assert overall(["equivalent", "inconclusive"]) == "inconclusive"
    assert overall([]) == "not comparable"
