"""Which method is taken for which samples, what is said beside it, and what is refused."""

from dataclasses import replace

import pytest

from orchestrator.compare.metrics import METRICS, metric_of
from orchestrator.compare.statistics import compare_series, with_bootstrap
from orchestrator.compare.statistics.bootstrap import paired_bootstrap
from orchestrator.compare.statistics.prompts import pair
from orchestrator.records.measurement import Series
from tests.support.made_series import ACCURACY, LENGTH, THROUGHPUT, TTFT, number, prompts, runs

A = (90.1, 89.6, 90.4, 90.0, 89.9)
BASE = ([256] * 6 + [180, 90], [128, 120, 142, 110, 134, 125, 95, 50])
NEW = ([256] * 6 + [175, 94], [112, 109, 128, 101, 119, 116, 85, 48])


# One run, one number


def test_one_run_is_not_tested_and_told_against_the_others() -> None:
    found = compare_series(THROUGHPUT, runs(46.7), runs(*A))
    assert (found.verdict, found.change.low, found.detectable, found.needed) == ("single run", None, None, None)
    assert found.change.value == pytest.approx(46.7 / 90 - 1, abs=1e-4)
    assert "no verdict below 3 runs (server starts) a side: it takes 2 more runs of ours" in found.note
    assert "our one run is outside what a further run like the other 5 would show in 95 % of cases: 89.12 to 90.89" in (
        found.note
    )
    assert "not tested: -48.1 % is beyond the 10 % that call for a second look" in found.note
    near = compare_series(THROUGHPUT, runs(90.5), runs(*A))
    assert "is inside what" in near.note
    assert "+0.6 % is within the 10 %" in near.note
    assert compare_series(THROUGHPUT, runs(90), runs(46.7)).verdict == "single run"


def test_runs_against_a_number_that_somebody_typed() -> None:
    found = compare_series(THROUGHPUT, runs(46.7, 47.5, 46.2), number(90))
    assert (found.verdict, found.level, found.n_ours, found.n_theirs) == ("regressed", "summary", 3, 1)
    assert found.tests[0].name == "one-sample t of logs"
    assert found.method == "runs against one number, Student's t of logs"
    assert "their number came without its samples and is taken as exact" in found.note
    turned = compare_series(THROUGHPUT, number(90), runs(46.7, 47.5, 46.2))
    assert turned.verdict == "improved"
    two = compare_series(THROUGHPUT, runs(46.7, 47.5), number(90))
    assert (two.verdict, two.change.low) == ("inconclusive", None)
    assert "no verdict below 3 runs (server starts): it takes 1 more run of ours" in two.note


def test_prompts_against_a_published_number() -> None:
    published = number(2.687, metric=LENGTH.name, unit="tokens", n=80)
    found = compare_series(LENGTH, prompts(*BASE), published)
    assert (found.verdict, found.n_theirs, found.pairs) == ("regressed", 80, None)
    assert found.theirs.low is None
    assert "their number came without its samples (n = 80)" in found.note
    few = compare_series(LENGTH, prompts([5, 6], [2, 3]), published)
    assert (few.verdict, few.change.low) == ("inconclusive", None)
    assert "an interval needs 5 prompts (or conversations), found 2 on our side" in few.note


def test_two_numbers() -> None:
    found = compare_series(THROUGHPUT, number(56.8), number(90))
    assert (found.verdict, found.method) == ("single run", "two numbers without samples")
    assert found.change.value == pytest.approx(56.8 / 90 - 1)


def test_prompts_against_runs() -> None:
    several = runs(1.9, 1.92, 1.88, metric=LENGTH.name, unit="tokens")
    found = compare_series(LENGTH, prompts(*NEW), several)
    assert (found.level, found.method) == ("run", "prompts against runs, Welch's t of logs")
    assert found.verdict == "improved"
    one = compare_series(LENGTH, prompts(*NEW), runs(1.9, metric=LENGTH.name, unit="tokens"))
    assert "their figure is of one run and is taken as exact" in one.note
    assert one.verdict == "improved"


# Server starts


def one_start(*y: float, name: str = "run", told: bool = True) -> Series:
    """Repeats of one run; `told`: that they are of one server start."""
    keys = tuple(f"{name}/{index}" for index in range(len(y)))
    return replace(runs(*y), keys=keys, clusters=(f"{name}/start 0",) * len(y) if told else ())


def test_repeats_of_one_start_are_one_sample_and_never_judged() -> None:
    ours, theirs = one_start(100.1, 99.6, 100.4, name="a"), one_start(*A, name="b")
    found = compare_series(THROUGHPUT, ours, theirs)
    assert (found.verdict, found.n_ours, found.n_theirs, found.change.low) == ("single run", 1, 1, None)
    assert found.ours.value == pytest.approx((100.1 * 99.6 * 100.4) ** (1 / 3))
    assert found.theirs.low is None
    assert found.note.startswith("3 and 5 repeats of one server start each: +11.1 % [+10.")
    assert ", without the differences between starts; " in found.note
    assert "it takes 2 more runs of ours and 2 more runs of theirs" in found.note
    typed = compare_series(THROUGHPUT, ours, number(90))
    assert (typed.verdict, typed.change.value) == ("single run", pytest.approx(0.1115, abs=1e-4))
    assert typed.note.startswith("3 repeats of one server start: +11.1 % [")
    untold = compare_series(THROUGHPUT, one_start(*A, told=False), theirs)
    assert "repeats of one run, whose server starts are not told," in untold.note


def test_several_starts_are_as_many_samples_whatever_their_repeats() -> None:
    starts = replace(runs(100, 102, 99, 101, 98, 99), keys=tuple(f"a/{i}" for i in range(6)), clusters=tuple("xxyyzz"))
    found = compare_series(THROUGHPUT, starts, runs(*A))
    same = compare_series(THROUGHPUT, runs(*((a * b) ** 0.5 for a, b in ((100, 102), (99, 101), (98, 99)))), runs(*A))
    assert (found.verdict, found.n_ours, found.change) == ("improved", 3, same.change)
    against_one = compare_series(THROUGHPUT, one_start(120.0, 121.0), starts)
    assert (against_one.verdict, against_one.n_ours, against_one.n_theirs) == ("single run", 1, 3)
    assert "are one sample: how starts differ is not seen in them" in against_one.note
    assert "our one run is outside what a further run like the other 3 would show" in against_one.note
    two = compare_series(THROUGHPUT, runs(100, 100.1), runs(80, 80.1))
    assert (two.verdict, two.change.low, two.n_ours) == ("inconclusive", None, 2)


# Prompts


def test_prompts_that_one_side_did_not_answer_are_left_out() -> None:
    extra = prompts([*NEW[0], 999, 999], [*NEW[1], 1, 1])
    found = compare_series(LENGTH, extra, prompts(*BASE))
    same = compare_series(LENGTH, prompts(*NEW), prompts(*BASE))
    assert (found.change, found.ours) == (same.change, same.ours)
    assert (found.n_ours, found.n_theirs, found.pairs) == (10, 8, 8)
    assert found.note == "2 prompts that only one side answered are left out"


def test_the_order_of_prompts_is_of_no_account() -> None:
    keys = [f"p{index}" for index in reversed(range(8))]
    shuffled = prompts(NEW[0][::-1], NEW[1][::-1], keys=keys)
    found = compare_series(LENGTH, shuffled, prompts(*BASE)).change
    same = compare_series(LENGTH, prompts(*NEW), prompts(*BASE)).change
    assert (found.value, found.low, found.high) == pytest.approx((same.value, same.low, same.high))


def test_too_few_prompts_on_both_sides_are_compared_as_independent() -> None:
    keys = ["p0", "p1", "p2", *(f"q{index}" for index in range(5))]
    found = compare_series(LENGTH, prompts(*NEW, keys=keys), prompts(*BASE))
    assert "only 3 prompts are on both sides: compared as independent, which sees less" in found.note
    assert found.method == "prompts not paired, log ratio of sums, Welch's t"
    assert [test.name for test in found.tests] == ["Welch's t of logs", "Mann-Whitney"]
    assert found.change.low is not None


def test_turns_of_a_conversation_are_one_sample() -> None:
    turns = prompts([value for value in NEW[0] for _ in "abc"], [value for value in NEW[1] for _ in "abc"])
    base = prompts([value for value in BASE[0] for _ in "abc"], [value for value in BASE[1] for _ in "abc"])
    clusters = tuple(f"c{index}" for index in range(8) for _ in "abc")
    alone = compare_series(LENGTH, prompts(*NEW), prompts(*BASE))
    for ours, theirs in (
        (replace(turns, clusters=clusters), replace(base, clusters=clusters)),
        (replace(turns, clusters=clusters), base),
        (turns, replace(base, clusters=clusters)),
    ):
        found = compare_series(LENGTH, ours, theirs)
        assert (found.change.low, found.change.high) == pytest.approx((alone.change.low, alone.change.high))
        assert (found.pairs, found.n_ours) == (8, 24)
        assert found.method == "paired by distinct prompt or conversation, log ratio of sums, Student's t"
    naive = compare_series(LENGTH, turns, base)
    assert naive.change.standard_error is not None
    assert alone.change.standard_error is not None
    assert naive.change.standard_error < alone.change.standard_error / 1.6


def test_a_conversation_is_the_sum_of_its_turns() -> None:
    turns = [[(100, 50), (300, 90)], [(256, 100)], [(20, 8), (30, 9), (99, 60)], [(128, 70)], [(256, 99), (1, 1)]]
    clusters = [f"c{index}" for index, turn in enumerate(turns) for _ in turn]
    y, x = zip(*(pair for turn in turns for pair in turn), strict=True)
    other = [value + 3 + index for index, value in enumerate(x)]
    found = compare_series(LENGTH, prompts(y, x, clusters=clusters), prompts(y, other))
    y, x, other = (
        [sum(v for v, name in zip(values, clusters, strict=True) if name == f"c{index}") for index in range(5)]
        for values in (y, x, other)
    )
    assert found.change == compare_series(LENGTH, prompts(y, x), prompts(y, other)).change
    assert found.change.low is not None


def test_three_conversations_are_too_few() -> None:
    clusters = ("a", "a", "a", "b", "b", "b", "c", "c")
    found = compare_series(LENGTH, replace(prompts(*NEW), clusters=clusters), prompts(*BASE))
    assert (found.verdict, found.change.low, found.pairs) == ("inconclusive", None, 3)
    assert "an interval needs 5 distinct prompts or conversations on both sides, found 3" in found.note


def test_bootstrap_is_made_where_it_is_asked_for_and_always_the_same() -> None:
    ours, theirs = prompts(*NEW), prompts(*BASE)
    plain = compare_series(LENGTH, ours, theirs)
    found = with_bootstrap(plain, ours, theirs)
    assert plain.bootstrap is None
    assert found.bootstrap is not None
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx((0.0891, 0.1197), abs=0.002)
    assert with_bootstrap(plain, ours, theirs) == found


def test_no_bootstrap_without_pairs_nor_of_few_or_very_many() -> None:
    many = prompts([7] * 1000 + [8], [3] * 1001)
    for ours, theirs in (
        (prompts([5, 6], [2, 3]), prompts([5, 6], [3, 3])),
        (prompts(*NEW), prompts(*BASE, keys=list("abcdefgh"))),
        (many, many),
    ):
        plain = compare_series(LENGTH, ours, theirs)
        assert with_bootstrap(plain, ours, theirs) is plain
    typed = compare_series(THROUGHPUT, runs(*A), number(90))
    assert with_bootstrap(typed, runs(*A), number(90)) is typed


def test_a_bootstrap_that_draws_nothing_counted_has_no_bounds() -> None:
    pairs = pair(prompts([1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]), prompts([1, 2, 3, 4, 5, 6], [1, 2, 4, 4, 5, 6]))
    found = paired_bootstrap(pairs, "log", 200)
    assert (found.value, found.low) == (pytest.approx(22 / 21 - 1), None)


# Shares


def test_shares_are_compared_in_points() -> None:
    ours = prompts([80, 70, 75, 90, 85, 60], [100] * 6, metric=ACCURACY.name, unit="share")
    theirs = prompts([70, 62, 64, 82, 74, 51], [100] * 6, metric=ACCURACY.name, unit="share")
    found = compare_series(ACCURACY, ours, theirs)
    assert found.change.value == pytest.approx((460 - 403) / 600)
    assert found.verdict == "improved"
    assert found.method == "paired by prompt, difference of sums, Student's t"


def test_a_share_of_yes_and_no_has_wilsons_interval() -> None:
    same = METRICS["identical_outputs"]
    ours = prompts([1.0] * 12, metric=same.name, unit="share")
    theirs = prompts([1.0] * 11 + [0.0], metric=same.name, unit="share")
    found = compare_series(same, ours, theirs)
    assert (found.ours.value, found.ours.high) == (1.0, 1.0)
    assert found.ours.low == pytest.approx(0.7575, abs=1e-4)


def test_runs_of_shares_are_compared_plainly() -> None:
    metric = METRICS["accept_rate"]
    ours = runs(0.31, 0.33, 0.32, metric=metric.name, unit="share")
    found = compare_series(metric, ours, replace(ours, y=(0.0, 0.0, 0.001)))
    assert [test.name for test in found.tests] == ["Welch's t", "Mann-Whitney"]
    assert found.verdict == "improved"


def test_without_a_better_direction_it_has_changed() -> None:
    metric = METRICS["cached_share"]
    low = runs(0.01, 0.012, 0.011, metric=metric.name, unit="share")
    high = runs(0.5, 0.51, 0.52, metric=metric.name, unit="share")
    assert compare_series(metric, low, high).verdict == compare_series(metric, high, low).verdict == "changed"
    assert compare_series(metric, low, low).verdict == "equivalent"


def test_a_share_may_be_one_but_for_rounding() -> None:
    metric = METRICS["accept_rate"]
    whole = runs(0.1 * 3 / 0.3, 1.0, 1.0000000000000002, metric=metric.name, unit="share")
    assert compare_series(metric, whole, replace(whole, y=(0.5, 0.52, 0.51))).verdict == "improved"


def test_a_small_change_is_one_both_ways() -> None:
    slower = runs(88.3, 88.2, 88.4, 88.1, 88.3, name="ours")
    assert compare_series(THROUGHPUT, slower, runs(*A)).verdict == "small change"
    assert compare_series(THROUGHPUT, runs(*A), slower).verdict == "small change"


def test_lower_is_better_for_latency() -> None:
    slow, fast = (runs(*values, metric=TTFT.name, unit="s") for values in ((0.30, 0.31, 0.32), (0.20, 0.21, 0.19)))
    assert compare_series(TTFT, slow, fast).verdict == "regressed"
    found = compare_series(TTFT, fast, slow)
    assert found.verdict == "improved"
    assert found.change.value is not None
    assert found.change.value < 0


# No spread


@pytest.mark.parametrize(("n", "verdict"), [(3, "inconclusive"), (5, "inconclusive"), (6, "improved")])
def test_equal_runs_are_no_certainty(n: int, verdict: str) -> None:
    found = compare_series(THROUGHPUT, runs(*[94.0] * n), runs(*[90.0] * n))
    assert found.verdict == verdict
    assert (found.change.low is None) == (n < 6)
    assert ("the spread is unknown, not 0" in found.note) == (n < 6)
    assert ("order statistics, of the median" in found.note) == (n >= 6)
    assert (found.detectable, found.needed, found.equivalence_p) == (None, None, None)


@pytest.mark.parametrize(
    ("n", "verdict"), [(2, "inconclusive"), (6, "inconclusive"), (58, "inconclusive"), (59, "equivalent")]
)
def test_the_same_answers_twice_are_equivalent_where_at_most_one_in_twenty_others_may_differ(
    n: int, verdict: str
) -> None:
    series = prompts(range(10, 10 + n), [7] * n)
    found = with_bootstrap(compare_series(LENGTH, series, series), series, series)
    assert (found.change.value, found.verdict) == (0.0, verdict)
    assert (found.change.low is None) == (n < 59)
    assert found.tests[0].p is None
    assert (f"up to {100 * (1 - 0.05 ** (1 / n)):.2g} % of others could show another change" in found.note) == (n >= 5)
    assert ("59 samples would tell more" in found.note) == (5 <= n < 59)


@pytest.mark.parametrize("hits", [0, 10])
def test_shares_that_are_all_nothing_or_all_one_keep_the_width_of_their_interval(hits: int) -> None:
    """Ten rows of ten or twenty drafts each count as nine equal ones: Wilson's interval of 0 in 9."""
    metric = METRICS["accept_rate"]
    sizes = [10, 20] * 5
    series = prompts([hits * size / 10 for size in sizes], sizes, metric=metric.name, unit="share")
    found = compare_series(metric, series, series)
    ours = (found.ours.low, found.ours.high)
    assert ours == pytest.approx((0.0, 0.2991) if hits == 0 else (0.7009, 1.0), abs=1e-4)
    assert (found.change.value, found.verdict) == (0.0, "inconclusive")
    unseen = 1 - 0.05**0.1
    assert (found.change.low, found.change.high) == pytest.approx((-unseen, unseen), abs=1e-9)
    assert "up to 26 % of others could show another change" in found.note
    many = prompts([0] * 400, [10] * 400, metric=metric.name, unit="share")
    assert compare_series(metric, many, many).verdict == "equivalent"
    repeats = runs(0.0, 0.0, 0.0, metric=metric.name, unit="share")
    assert compare_series(metric, repeats, repeats).ours.high == pytest.approx(1 - 0.05 ** (1 / 3), abs=1e-9)


def test_five_equal_prompts_have_no_interval_and_equal_runs_foretell_nothing() -> None:
    few, enough = (compare_series(LENGTH, *[prompts([20] * n, [10] * n)] * 2) for n in (5, 6))
    assert (few.ours.low, enough.ours.low) == (None, 2.0)
    noise = runs(0.63, 0.63 * (1 + 1e-15), 0.63)
    assert "a further run" not in compare_series(THROUGHPUT, runs(0.66), noise).note
    assert "a further run" in compare_series(THROUGHPUT, runs(0.66), runs(0.63, 0.64, 0.62)).note


def test_one_side_without_spread_is_told() -> None:
    found = compare_series(THROUGHPUT, runs(*A), runs(90.0, 90.0, 90.0))
    assert found.change.low is not None
    assert "their 3 runs are all equal: their spread counts as 0" in found.note
    against = compare_series(THROUGHPUT, runs(46.7, 46.7, 46.7), number(90))
    assert (against.verdict, against.change.low) == ("inconclusive", None)


@pytest.mark.parametrize(("n", "verdict"), [(8, "inconclusive"), (58, "inconclusive"), (59, "equivalent")])
def test_one_prompt_that_differs_makes_the_others_no_surer(n: int, verdict: str) -> None:
    """Agreement is never worth less than almost the same agreement: one rule for both."""
    same, other = prompts([20.0] * n, [10] * n), prompts([20.5, *[20.0] * (n - 1)], [10] * n)
    found = with_bootstrap(compare_series(LENGTH, other, same), other, same)
    assert found.verdict == compare_series(LENGTH, same, same).verdict == verdict
    assert (found.change.low is None, found.bootstrap, found.detectable) == (n < 59, None, None)
    assert ("but for a few, every prompt shows the same change" in found.note) is True


def test_almost_equal_runs_are_no_surer_than_equal_ones() -> None:
    equal, almost = runs(*[90.0] * 5), runs(*[90.0] * 4, 90.0001)
    assert compare_series(THROUGHPUT, almost, equal).verdict == "inconclusive"
    assert compare_series(THROUGHPUT, runs(*[100.0] * 5), almost).verdict == "inconclusive"
    six = compare_series(THROUGHPUT, runs(*[100.0] * 6), runs(*[90.0] * 5, 90.0001))
    assert (six.verdict, six.change.low) == ("improved", pytest.approx(0.1111, abs=1e-4))
    note = compare_series(THROUGHPUT, almost, equal).note
    assert "the spread is that of a few samples" in note
    assert "the interval may be too narrow" not in note  # there is none
    assert compare_series(THROUGHPUT, runs(*A), runs(*[90.0] * 4, 90.5)).change.low is not None
    seconds = runs(*(1e-6 * step for step in (1, 1.1, 0.9, 1, 1.05)), metric=TTFT.name, unit="s")
    assert compare_series(TTFT, seconds, seconds).change.low is not None  # small figures are no equal ones


def test_a_share_of_almost_all_is_no_surer_than_of_all() -> None:
    """200 prompts that are all right leave 1.5 points unseen, and one that is not narrows nothing."""
    whole, but_one, but_five = (
        prompts([0.0] * wrong + [1.0] * (200 - wrong), metric=ACCURACY.name, unit="share") for wrong in (0, 1, 5)
    )
    unseen = 1 - 0.05 ** (1 / 200)
    same, found = compare_series(ACCURACY, whole, whole), compare_series(ACCURACY, but_one, whole)
    assert (same.verdict, found.verdict) == ("inconclusive", "inconclusive")
    assert found.change.low == pytest.approx(-0.005 - unseen * 0.995)
    assert found.change.high == pytest.approx(-0.005 + unseen * 1.005)
    five = compare_series(ACCURACY, but_five, whole)  # their own interval is the wider one
    assert five.change.low is not None
    assert five.change.low < found.change.low
    assert "could show another change" not in five.note


def test_no_resampling_of_pairs_that_do_not_differ() -> None:
    rate = METRICS["accept_rate"]
    half, more = (prompts([hits] * 8, [10] * 8, metric=rate.name, unit="share") for hits in (5, 6))
    found = with_bootstrap(compare_series(rate, more, half), more, half)
    assert (found.verdict, found.bootstrap) == ("inconclusive", None)
    assert (found.change.low, found.change.high) == pytest.approx((-0.244, 0.381), abs=1e-3)
    assert (found.ours.low, found.ours.high) == pytest.approx((0.6 * 0.05**0.125, 1 - 0.4 * 0.05**0.125))


# What cannot be


def test_a_speed_or_an_accept_length_that_dropped_to_nothing_is_invalid_by_name() -> None:
    for stuck in (runs(0, 0, 0), runs(90, 0, 91)):
        found = compare_series(THROUGHPUT, stuck, runs(90, 91, 92))
        assert (found.verdict, found.change.value) == ("invalid", None)
        assert found.note == "our numbers: a value of 0 cannot be `output_throughput_tok_s`: there nothing was done"
    assert "their numbers" in compare_series(THROUGHPUT, runs(90, 91, 92), runs(0, 0, 0)).note
    no_tokens = compare_series(LENGTH, prompts([0] * 6, [1] * 6), prompts([1] * 6, [1] * 6))
    assert (no_tokens.verdict, no_tokens.note.endswith("there nothing was done")) == ("invalid", True)
    below = compare_series(LENGTH, number(0.9, metric=LENGTH.name, unit="tokens"), prompts(*BASE))
    assert "an accept length below 1 cannot be `accept_length_pooled`" in below.note
    for other in (BASE, ([256] * 6, [128] * 6)):
        steps = other[1]
        assert compare_series(LENGTH, prompts(steps, steps), prompts(*other)).verdict == "regressed"  # nothing accepted


def test_nothing_counted_has_no_ratio() -> None:
    metric = METRICS["accept_rate"]
    some = prompts([1] * 6, [1] * 6, metric=metric.name, unit="share")
    nothing = compare_series(metric, replace(some, y=(0.0,) * 6, x=(0.0,) * 6), some)
    assert (nothing.ours.value, nothing.change.value, nothing.verdict) == (None, None, "inconclusive")
    assert "nothing was counted on a side" in nothing.note


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (replace(runs(90), unit="req/s"), runs(90), "other unit: ours in req/s, theirs in tok/s"),
        (replace(runs(90), unit="x"), replace(runs(90), unit="x"), "other unit: expected tok/s, found x on both sides"),
        (replace(runs(90), definition="with prompt tokens"), runs(90), "other definition: ours is with prompt tokens"),
    ],
)
def test_other_quantities_are_not_comparable(ours: Series, theirs: Series, words: str) -> None:
    found = compare_series(THROUGHPUT, ours, theirs)
    assert (found.verdict, found.change.value, found.tests) == ("not comparable", None, ())
    assert words in found.note
    assert found.ours.value == 90.0


@pytest.mark.parametrize(
    ("metric", "ours", "words"),
    [
        ("output_throughput_tok_s", runs(-1, 90), "our numbers: a negative value"),
        ("output_throughput_tok_s", runs(1e300, 90), "our numbers: a value outside 1e-100 to 1e+100"),
        ("accept_rate", runs(0.5, 1.5, metric="accept_rate", unit="share"), "our numbers: a share above 1"),
        (
            "accept_length_per_verify",
            prompts([5] * 6, [-1] + [3] * 5, metric="accept_length_per_verify"),
            "a negative value",
        ),
        ("accept_rate", prompts([5] * 6, [4] * 6, metric="accept_rate", unit="share"), "a share above 1"),
    ],
)
def test_impossible_numbers_are_invalid(metric: str, ours: Series, words: str) -> None:
    found = compare_series(METRICS[metric], ours, replace(ours, y=(0.5,) * len(ours.y), x=()))
    assert (found.verdict, found.change.value, found.ours.value) == ("invalid", None, None)
    assert found.theirs.value == 0.5
    assert words in found.note


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_make_no_series(value: float) -> None:
    with pytest.raises(ValueError, match="output_throughput_tok_s"):
        runs(90, value)


@pytest.mark.parametrize("margin", [-0.01, float("nan"), float("inf")])
def test_margins_that_are_none(margin: float) -> None:
    with pytest.raises(ValueError, match="a margin of 0 or more"):
        compare_series(THROUGHPUT, runs(*A), runs(*A), margin=margin)


def test_another_metric_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="two series of `ttft_s`"):
        compare_series(TTFT, runs(*A), runs(*A))


def test_margins_may_be_nothing_and_names_may_be_prefixed() -> None:
    exact = compare_series(THROUGHPUT, runs(91, 92, 90), runs(90, 91, 92), margin=0)
    assert (exact.verdict, exact.needed) == ("inconclusive", None)
    metric = metric_of("declared.first_step_accuracy")
    assert metric is not None
    series = prompts([1] * 600, [2] * 600, metric=metric.name, unit="share")
    assert compare_series(metric, series, series).verdict == "equivalent"


def test_what_is_inconclusive_says_what_it_could_have_seen() -> None:
    found = compare_series(THROUGHPUT, runs(88, 93, 85, 96, 90), runs(*A))
    assert found.verdict == "inconclusive"
    assert found.detectable == pytest.approx(0.0818, abs=5e-5)
    assert found.needed == 46
    pairs = compare_series(LENGTH, prompts([10, 11, 12, 13, 14], [5] * 5), prompts([10.1, 11, 11.9, 13, 14.1], [5] * 5))
    assert pairs.needed == 5
