"""Figures of a served benchmark against numbers worked out by hand, by others, and by slower ways."""

import math
import random
import statistics
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.compare.served import draft_of, served_figures
from orchestrator.compare.served_acceptance import acceptance, depth_profile
from orchestrator.compare.served_pairing import (
    corrected,
    identical_outputs,
    pair,
    repeated_outputs,
    speedup_of,
    step_cost_of,
)
from orchestrator.compare.served_speed import Speed, mean_of_repeats, speed, spread, tokens_of, tpot_s
from orchestrator.compare.stats import UNKNOWN, Estimate
from remote_payload.schema.bench import BenchResult, RequestSample
from tests.support.made_bench import made_bench, made_paired, made_point, made_request, made_server

SAMPLE = (11, 14, 11, 4, 0, 3)
"""Of https://github.com/sgl-project/sglang/pull/33518: completion 106, verify 43, correct 63, proposed 215."""


def test_a_real_answer_gives_the_figures_of_its_own_server() -> None:
    item = made_request(0, 0, tokens=106, histogram=SAMPLE, proposed_drafts=215)
    found = acceptance([item])
    assert found is not None
    assert (found.verify_steps, found.correct_drafts, found.proposed_drafts) == (43, 63, 215)
    assert found.tokens_per_verify.value == pytest.approx(2.4651162790697674)
    assert found.accept_length.value == pytest.approx(1 + 63 / 43)
    assert found.rate(6) == pytest.approx(63 / 215)
    joint = [round(depth.joint.value or 0, 4) for depth in found.depths]
    conditional = [round(depth.conditional.value or 0, 4) for depth in found.depths]
    assert joint == [0.7442, 0.4186, 0.1628, 0.0698, 0.0698]
    assert conditional == [0.7442, 0.5625, 0.3889, 0.4286, 1.0]
    assert [depth.conditional.n for depth in found.depths] == [43, 32, 18, 7, 3]
    assert [depth.is_shown for depth in found.depths] == [True, True, False, False, False]
    assert 1 + sum(depth.joint.value or 0 for depth in found.depths) == pytest.approx(found.accept_length.value)


def test_pooled_and_macro_are_different_things() -> None:
    long, short = made_request(0, 0, tokens=91, histogram=(10, 20, 0, 20)), made_request(0, 1, tokens=3, histogram=(2,))
    found = acceptance([long, short])
    assert found is not None
    assert found.accept_length.value == pytest.approx(1 + 80 / 52)
    assert found.accept_length_macro == pytest.approx((1 + 80 / 50 + 1.0) / 2)
    assert found.tokens_per_verify_macro == pytest.approx((91 / 50 + 3 / 2) / 2)
    assert found.histogram == (12, 20, 0, 20)
    assert found.per_request == pytest.approx((2.6, 1.0))


def test_no_verify_steps_told_is_unknown_and_never_one() -> None:
    assert acceptance([made_request(0, 0)]) is None
    assert acceptance([made_request(0, 0, verify_steps=0)]) is None
    assert acceptance([]) is None


def test_an_old_server_tells_verify_steps_alone() -> None:
    old = made_request(0, 0, tokens=64, histogram=(10, 20)).__dict__ | {"correct_drafts": None, "histogram": None}
    found = acceptance([type(made_request(0, 0))(**old)])
    assert found is not None
    assert found.accept_length.value is None
    assert found.length.value == pytest.approx(64 / 30)
    assert found.histogram is None
    assert found.depths == ()
    assert found.rate(4) is None


def test_a_prompt_sent_again_adds_no_certainty() -> None:
    draws = random.Random(1)
    once = [made_request(0, i, histogram=(draws.randint(5, 20), draws.randint(5, 20))) for i in range(8)]
    twice = once + [made_request(1, item.prompt, histogram=item.histogram) for item in once]
    a, b = acceptance(once), acceptance(twice)
    assert a is not None
    assert b is not None
    assert (b.accept_length.low, b.accept_length.high) == pytest.approx((a.accept_length.low, a.accept_length.high))
    assert b.accept_length.rows == 8


@pytest.mark.parametrize(("served", "cost"), [(46.7, 3.66), (56.8, 3.01)])
def test_the_storys_numbers(served: float, cost: float) -> None:
    """90 tok/s plain, accept length 1.9: what a step cost, and what it would have taken."""
    spec, plain = _speed(served), _speed(90.0)
    found = pair(spec, plain, _length(1.9), (), ())
    assert found.speedup.value == pytest.approx(served / 90)
    assert round(found.step_cost or 0, 2) == cost
    assert found.break_even == found.step_cost
    assert not found.suspicious


def test_a_plain_side_that_is_surely_too_slow_is_suspicious() -> None:
    assert pair(_speed(98.0, 100.0, 102.0), _speed(40.0, 41.0, 40.0), _length(1.9), (), ()).suspicious
    assert not pair(_speed(98.0, 100.0, 102.0), _speed(60.0, 61.0, 60.0), _length(1.9), (), ()).suspicious
    assert not pair(_speed(98.0, 100.0, 102.0), _speed(60.0, 61.0, 60.0), _length(None), (), ()).suspicious


def test_a_step_cost_that_may_be_one_accuses_nobody() -> None:
    """S = 2.00 at accept length 1.98: r = 0.99, well within what repeats and prompts leave open."""
    found = pair(_speed(196.0, 200.0, 204.0), _speed(100.0, 100.0, 100.0), _length(1.98), (), ())
    assert found.step_cost == pytest.approx(0.99)
    assert found.step_cost_low is not None
    assert found.step_cost_high is not None
    assert found.step_cost_low < 0.99
    assert found.step_cost_high > 1
    assert not found.suspicious
    alone = pair(_speed(100.0), _speed(40.0), _length(1.9), (), ())
    assert (alone.step_cost_high, alone.suspicious) == (None, False)


def test_the_interval_of_the_step_cost_holds_what_it_promises() -> None:
    draws = random.Random(11)
    held = 0
    for _ in range(400):
        spec = [draws.gauss(60, 2.0) for _ in range(5)]
        length = Estimate(value=draws.gauss(2.0, 0.05), standard_error=0.05, rows=24)
        found = step_cost_of(length, speedup_of(spec, [draws.gauss(80, 2.0) for _ in range(5)]))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 2.0 / 0.75 <= found.high
    assert 0.91 <= held / 400 <= 0.99


def test_figures_in_one_line_agree() -> None:
    """A slow first repeat: the speed-up is the ratio of the throughputs that stand beside it."""
    spec, plain = (20.0, 140.0, 140.0), (60.0, 90.0, 90.0)
    assert speedup_of(spec, plain).value == pytest.approx(100 / 80)
    assert speedup_of(spec[:2], plain[:2]).value == pytest.approx(80 / 75)


@pytest.mark.parametrize(
    ("spec", "plain", "words"),
    [
        ({"tokens": 4}, {"tokens": 64}, "4.0 tokens long with speculation and 64.0 without"),
        ({"cached_tokens": 29}, {}, "96.7 % of the prompts with speculation and 0.0 %"),
        ({"tokens": 2}, {"tokens": 2}, "too short to have been decoded"),
        ({}, {"flushed": False}, "flushed on the speculating side alone"),
        ({"cached_tokens": 2}, {"cached_tokens": 1}, None),
        ({"tokens": 64}, {"tokens": 62}, None),
    ],
)
def test_sides_that_did_other_work_have_no_speed_up(
    spec: dict[str, Any], plain: dict[str, Any], words: str | None
) -> None:
    points, requests = [], []
    for repeat in range(3):
        for side, more in (("spec", dict(spec)), ("plain", dict(plain))):
            flushed = more.pop("flushed", True)
            histogram = (2, 1) if side == "spec" else None
            items = [
                made_request(len(points), i, sent_s=float(i), seconds=1 + 0.01 * repeat, histogram=histogram, **more)
                for i in range(6)
            ]
            points.append(made_point(len(points), items, side, repeat=repeat, flushed=flushed))
            requests += items
    (both,) = served_figures(made_bench([made_server(), made_server("plain")], points), requests).pairs
    if words is None:
        assert both.pairing.refused is None
        assert both.pairing.speedup.value is not None
    else:
        assert words in (both.pairing.refused or "")
        assert (both.pairing.speedup.value, both.pairing.step_cost, both.pairing.break_even) == (None, None, None)


def test_other_outputs_than_plain_decodings_give_no_step_cost() -> None:
    spec = [made_request(0, i, output_ids=(1, 2, 3)) for i in range(6)]
    plain = [made_request(point, i) for point in (1, 2, 3) for i in range(6)]
    found = pair(_speed(98.0, 100.0, 102.0), _speed(60.0, 61.0, 60.0), _length(1.9), spec, plain)
    assert found.other_outputs
    assert found.step_cost is None
    rounding = [made_request(0, i, output_ids=None if i else (1, 2, 3)) for i in range(6)]
    assert not pair(_speed(98.0), _speed(60.0), _length(1.9), rounding, plain).other_outputs


def test_ids_that_came_are_believed_before_a_count() -> None:
    assert tokens_of(made_request(0, 0, tokens=32)) == 32
    item = made_request(0, 0, tokens=32)
    assert tokens_of(RequestSample(**{**vars(item), "completion_tokens": 320})) == 32
    assert tokens_of(RequestSample(**{**vars(item), "output_ids": None, "completion_tokens": 31})) == 31


def test_fewer_requests_than_users() -> None:
    items = [made_request(0, i) for i in range(2)]
    (load,) = served_figures(made_bench([made_server()], [made_point(0, items, concurrency=64)]), items).loads
    assert (load.concurrency, load.at_once) == (64, 2)


def test_tokens_a_verify_step_are_no_accept_length_for_the_step_cost() -> None:
    result, requests = made_paired()
    old = [RequestSample(**{**vars(item), "correct_drafts": None, "histogram": None}) for item in requests]
    (both,) = served_figures(result, old).pairs
    assert (both.pairing.accept_length, both.pairing.step_cost) == (None, None)
    assert both.pairing.speedup.value is not None


def test_adaptive_steps_have_no_ceiling() -> None:
    assert draft_of([made_server(runs={"speculative_adaptive": True})]).ceiling is None


def test_throughput_stops_at_the_last_token() -> None:
    """An answer whose end comes long after its last token is not slower for it."""
    items = [made_request(0, i, sent_s=0.5 * i, seconds=2.0, done_s=50.0) for i in range(4)]
    found = speed([(made_point(0, items), items)])
    assert found.throughput.value == pytest.approx(4 * 64 / 3.5)
    assert found.request_throughput == pytest.approx(4 / 3.5)
    assert found.ttft_s.median == pytest.approx(0.2)
    assert found.e2e_s.median == pytest.approx(2.0)
    assert found.user_tok_s.median == pytest.approx(63 / 1.8)
    assert found.tpot_s.median == pytest.approx(1.8 / 63)


def test_a_first_chunk_of_several_tokens_counts_once() -> None:
    item = made_request(0, 0, chunk_s=(1.0, 2.0, 3.0), chunk_tokens=(4, 3, 2), completion_tokens=9)
    assert tpot_s(item) == pytest.approx(2.0 / 5)
    assert tpot_s(made_request(0, 0, chunk_s=(1.0,), chunk_tokens=(4,))) is None


def test_percentiles_only_where_requests_lie_beyond_them() -> None:
    draws = random.Random(3)
    values = [draws.expovariate(1) for _ in range(200)]
    found = spread(values)
    hundredths = statistics.quantiles(values, n=100, method="inclusive")
    assert found.median == pytest.approx(statistics.median(values))
    assert found.p90 == pytest.approx(hundredths[89])
    assert found.p99 == pytest.approx(hundredths[98])
    assert spread(values[:50]).p99 is None
    assert spread(values[:9]).p90 is None
    assert spread(values[:10]).p90 is not None
    assert spread([]).median is None
    slow = spread(values, upwards=False)
    assert slow.p90 == pytest.approx(hundredths[9])


def test_intervals_over_repeats_hold_what_they_promise() -> None:
    draws = random.Random(5)
    held = 0
    for _ in range(400):
        found = mean_of_repeats([draws.gauss(100, 4) for _ in range(4)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 100 <= found.high
    assert 0.91 <= held / 400 <= 0.98
    assert mean_of_repeats([1.0, 2.0]).low is None


def test_repeats_are_paired_in_turn() -> None:
    """A host that slows down for both sides alike makes the ratio no less sure."""
    found = speedup_of((50.0, 40.0, 30.0), (100.0, 80.0, 60.0))
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))
    # The repeats differ and their ratio never does: a pair each, which leave nothing unexplained.
    always = replace(pair(speed([]), speed([]), UNKNOWN, (), ()), speedup=found)
    assert [item.pays for item in corrected([always])] == [False]
    same = speedup_of((50.0, 40.0, 30.1), (50.0, 40.0, 30.1))
    assert corrected([replace(always, speedup=same)])[0].p_adjusted == 1
    assert replace(always, speedup=same).pays is None
    uneven = speedup_of((50.0, 40.0), (100.0, 80.0, 60.0))
    assert uneven.value == pytest.approx(45 / 80)
    assert uneven.low is None
    assert speedup_of((), (1.0,)).value is None


@pytest.mark.parametrize("spec", [(70.0,) * 3, (70.0, 70.0, 70.0 * (1 + 1e-15)), (70.0,) * 8, (0.1 + 0.2, 0.3, 0.3)])
def test_repeats_that_do_not_differ_at_all_are_no_certainty(spec: tuple[float, ...]) -> None:
    found = speedup_of(spec, (90.0,) * len(spec))
    assert (found.low, found.high, found.standard_error) == (None, None, None)
    assert found.value == pytest.approx(spec[0] / 90)
    unknown = pair(speed([]), speed([]), UNKNOWN, (), ())
    (told,) = corrected([replace(unknown, speedup=found)])
    assert (told.pays, told.p_adjusted) == (None, None)
    assert speedup_of((70.0, 71.0, 72.0), (90.0,) * 3).low is not None  # one side's spread is a spread


def test_repeats_on_one_start_are_one_sample_where_there_are_several_starts() -> None:
    """Starts at 1, 2 and 4 s for ten tokens, three repeats on each: the interval is that of three, not of nine."""
    points = []
    for start, seconds in enumerate((1.0, 2.0, 4.0)):
        for repeat in range(3):
            number = 3 * start + repeat
            some = [made_request(number, 0, tokens=10, seconds=seconds)]
            points.append((made_point(number, some, start=start, repeat=number), some))
    found = speed(points)
    each = [speed([one]).throughputs[0] for one in points[::3]]
    assert len(found.throughputs) == 9
    assert found.throughput == mean_of_repeats(each)
    assert found.throughput.rows == 3
    assert speed(points[:3]).throughput.rows == 3  # of one start alone its repeats


def test_a_speed_is_never_negative_however_little_is_known() -> None:
    found = mean_of_repeats([10.0, 20.0, 90.0])
    assert found.low is not None
    assert 0 < found.low < 40.0 == found.value
    assert mean_of_repeats([0.0, 0.0, 0.0]).low is None
    for equal in ([70.0] * 8, [0.3, 0.1 + 0.2, 0.3]):
        found = mean_of_repeats(equal)
        assert (found.low, found.high, found.standard_error) == (None, None, 0.0)


def test_eight_equal_loads_raise_no_more_alarms_than_one() -> None:
    draws = random.Random(11)
    alone = together = 0
    unknown = pair(speed([]), speed([]), UNKNOWN, (), ())
    for _ in range(300):
        found = []
        for _ in range(8):
            ours, theirs = ([draws.gauss(100, 3) for _ in range(3)] for _ in range(2))
            found.append(replace(unknown, speedup=speedup_of(ours, theirs)))
        alone += any(item.pays is not None for item in found)
        together += any(item.pays is not None for item in corrected(found))
    assert alone / 300 > 0.2
    assert together / 300 < 0.09


def test_a_load_that_is_surely_slower_stays_so_among_others() -> None:
    unknown = pair(speed([]), speed([]), UNKNOWN, (), ())
    slower = replace(unknown, speedup=speedup_of((50.0, 50.5, 50.2, 50.1), (100.0, 101.0, 100.2, 100.3)))
    equal = replace(unknown, speedup=speedup_of((100.0, 99.0, 101.0), (100.0, 102.0, 99.0)))
    assert [item.pays for item in corrected([equal, slower, unknown])] == [None, False, None]


def test_depths_that_nothing_reached_are_zero_and_not_absent() -> None:
    items = [made_request(0, i, histogram=(19, 10)) for i in range(6)]
    result = made_bench(
        [made_server(runs={"speculative_num_steps": 3, "speculative_eagle_topk": 1})], [made_point(0, items)]
    )
    (load,) = served_figures(result, items).loads
    assert load.acceptance is not None
    assert [(item.depth, item.joint.value, item.joint.n) for item in load.acceptance.depths[1:]] == [
        (2, 0.0, 174),
        (3, 0.0, 174),
    ]
    assert load.acceptance.depths[2].conditional.value is None


def test_identical_outputs_and_their_control() -> None:
    spec = [made_request(0, i) for i in range(4)]
    plain = [made_request(1, i) for i in range(3)] + [made_request(1, 3, output_ids=(1, 2))]
    found = identical_outputs(spec, plain)
    assert (found.hits, found.n) == (3, 4)
    again = [*plain, made_request(2, 0, output_ids=(9,)), made_request(2, 1)]
    assert (repeated_outputs(again).hits, repeated_outputs(again).n) == (1, 2)
    assert repeated_outputs(plain).value is None


def test_the_whole_from_points_and_requests() -> None:
    result, requests = made_paired(repeats=3)
    found = served_figures(result, requests)
    assert [(load.side, load.concurrency) for load in found.loads] == [("spec", 1), ("plain", 1)]
    assert found.valid
    (both,) = found.pairs
    assert both.spec.speed.throughput.value == pytest.approx(56.8, rel=1e-6)
    assert both.plain.speed.throughput.value == pytest.approx(90.0, rel=1e-6)
    assert both.pairing.pays is False
    assert both.pairing.identical.value == 1
    assert both.pairing.plain_repeats_identical.n == 8
    assert found.draft.ceiling == 4
    assert found.draft.nodes is None


def test_a_point_with_failed_requests_is_no_measurement() -> None:
    good = [made_request(0, i) for i in range(3)]
    bad = made_request(0, 3, error="HTTP 503", status=503, chunk_s=(), chunk_tokens=(), completion_tokens=None)
    result = made_bench([made_server()], [made_point(0, [*good, bad])])
    found = served_figures(result, [*good, bad])
    assert not found.valid
    assert found.loads[0].failed == 1
    assert found.loads[0].speed.throughput.value is None


def test_cached_tokens_and_the_clients_own_work() -> None:
    items = [made_request(0, i, cached_tokens=15) for i in range(2)]
    result = made_bench([made_server()], [made_point(0, items, client_cpu_s=0.8)])
    (load,) = served_figures(result, items).loads
    assert load.cached_share == pytest.approx(0.5)
    assert load.client_cpu == pytest.approx(0.8)
    assert load.client_waited is None
    assert load.client_bound


@pytest.mark.parametrize(("waited_s", "bound"), [(None, False), (0.1, False), (0.6, True)])
def test_a_client_without_a_core_measures_itself(waited_s: float | None, *, bound: bool) -> None:
    items = [made_request(0, i) for i in range(2)]
    result = made_bench([made_server()], [made_point(0, items, client_cpu_s=0.2, client_waited_s=waited_s)])
    (load,) = served_figures(result, items).loads
    assert load.client_bound is bound


def test_the_ceiling_of_a_tree_is_its_depth_not_its_width() -> None:
    runs = {"speculative_num_steps": 5, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 16}
    draft = draft_of([made_server("plain"), made_server(runs=runs)])
    assert (draft.ceiling, draft.nodes) == (6, 16)
    assert draft_of([made_server("plain")]).ceiling is None


def test_a_profile_of_nothing_accepted() -> None:
    assert depth_profile((12,)) == ()
    assert depth_profile(()) == ()


def _speed(*tok_s: float) -> Speed:
    """A repeat a throughput."""
    some = [[made_request(i, 0, tokens=100, seconds=100 / value)] for i, value in enumerate(tok_s)]
    found = speed([(made_point(i, items), items) for i, items in enumerate(some)])
    assert math.isclose(found.throughput.value or 0, statistics.fmean(tok_s))
    return found


def _length(value: float | None) -> Estimate:
    """An accept length over two dozen prompts, known to two in a hundred."""
    return Estimate(value=value, standard_error=None if value is None else 0.02 * value, rows=24)


def test_a_run_that_ended_early_is_no_measurement() -> None:
    result, requests = made_paired(repeats=3)
    points = result.points[:5]  # the third repeat's plain side is missing
    values = {**vars(result), "points": points, "whole": False, "planned": 6, "repeats": 3}
    figures = served_figures(BenchResult(**values), requests)
    assert figures.part is not None
    assert (figures.part.done, figures.part.repeats_done, figures.part.lost_requests) == (5, 2, 8)
    assert figures.part.words == (
        "2 of 3 repeats finished, 5 of 6 points; 8 requests of the next one came back and count nowhere"
    )
    assert not figures.valid
    assert sum(len(load.requests) for load in figures.loads) == 40
    assert served_figures(result, requests).part is None
