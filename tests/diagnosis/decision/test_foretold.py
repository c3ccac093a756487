"""Served against predicted: identical where a real server was, and every kind of difference told apart."""

import random
from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.foretelling import Asked, foretell
from orchestrator.diagnosis.decision.foretold import MARGIN, compare
from orchestrator.diagnosis.decision.inputs import Predicted, PredictedRequest
from tests.diagnosis.decision.scenes import answers, offline, predicted, served, sound
from tests.support.made_bench import chain_histogram, made_request

TOKENS = 64


def foretold(histograms, **more):
    """A prediction of one request a prompt."""
    requests = tuple(
        PredictedRequest(prompt=prompt, histogram=tuple(item), tokens=TOKENS, greedy=True, **more)
        for prompt, item in enumerate(histograms)
    )
    return Predicted(split="train", run_id="r", part="as served", reading="x", states=None, dtype="float32",
                     requests=requests)  # fmt: skip


def given(histograms, **more):
    return tuple(
        made_request(0, prompt, histogram=item, tokens=TOKENS, index=prompt, **more)
        for prompt, item in enumerate(histograms)
    )


def chains(seed, accept, prompts=40, steps=30):
    draw = random.Random(seed)
    return [chain_histogram(draw, steps, accept) for _ in range(prompts)]


@pytest.mark.parametrize(
    ("label", "declared", "steps"),
    [("embed_right", "right", 3), ("embed_story_wrong", "wrong", 3), ("embed_override_1_16", "wrong", 1)],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_real_server_is_foretold_to_the_last_request(label, declared, steps, place):
    told = next(item for item in predicted(declared, steps)[2 * place :] if item.part == "as served")
    found = compare(told, answers(label, 0, 100.0), steps, exact=True)
    assert (found.requests, found.identical, found.lower, found.higher) == (12, 12, 0, 0)
    assert found.answer == "as_predicted"
    assert found.first == ()
    assert found.first_below is None
    assert len(found.depths) == steps
    assert found.served == found.predicted


def test_of_a_wrong_reading_a_real_server_is_not_foretold():
    told = next(item for item in predicted("right") if item.part == "as served" and item.split == "train")
    found = compare(told, answers("embed_story_wrong", 0, 100.0), 3, exact=True)
    assert found.answer == "below"
    assert found.identical < 3
    assert found.first_below == 1
    assert found.first[0].startswith("request 0 (prompt 0): served [")


def test_a_trimmed_histogram_is_the_same():
    found = compare(foretold([[30, 0, 0, 0]] * 6), given([[30]] * 6), 3, exact=True)
    assert found.identical == 6
    assert found.answer == "as_predicted"


def test_one_request_that_differs_in_float32_is_a_finding_and_is_named():
    def one_more(requests):
        return tuple(
            replace(item, histogram=(3, 3, 2, 12), correct_drafts=43) if item.prompt == 0 and item.histogram else item
            for item in requests
        )

    found = decide(sound(served=served(change=one_more)))
    assert found.place["served_train"] == "differs"  # 1 of 12 prompts by 0.05 a step: within the margin
    assert (found.verdict, found.certain) == ("cannot_tell", False)
    (item,) = [one for one in found.findings if one.check == "K12"]
    assert item.severity == "minor"
    assert "in float32 3 of 36 training requests differ" in item.summary
    assert "request 0 (prompt 0): served [3, 3, 2, 12], predicted [2, 3, 2, 13]" in item.summary
    rounded = decide(sound(served=served(change=one_more, dtype="bfloat16")))
    assert [one for one in rounded.findings if one.check == "K12"] == []
    assert "33 of 36 requests identical" in rounded.headline


def both_ways(requests):
    """Every second prompt loses a draft somewhere, every other one gains one."""
    found = []
    for item in requests:
        if item.histogram is None:
            found.append(item)
            continue
        counts = [*item.histogram, *(0 for _ in range(4 - len(item.histogram)))]
        deep, shallow = max(j for j in range(4) if counts[j]), min(j for j in range(4) if counts[j])
        place, to = (deep, deep - 1) if item.prompt % 2 else (shallow, shallow + 1)
        counts[place], counts[to] = counts[place] - 1, counts[to] + 1
        drafts = sum(index * count for index, count in enumerate(counts))
        found.append(replace(item, histogram=tuple(counts), correct_drafts=drafts))
    return tuple(found)


def dead_prompts(requests):
    """Four of twelve prompts of a split accept nothing."""
    return tuple(
        replace(item, histogram=(sum(item.histogram),), correct_drafts=0)
        if item.histogram and item.prompt < 4
        else item
        for item in requests
    )


@pytest.mark.parametrize(("change", "places"), [(both_ways, {"differs"}), (dead_prompts, {"differs", "as_predicted"})])
def test_in_float32_what_differs_is_never_as_predicted(change, places):
    found = decide(sound(served=served(change=change)))
    assert {found.place["served_train"], found.place["served_heldout"]} == places
    assert (found.verdict, found.certain) == ("cannot_tell", False)
    assert found.next_runs[0].step == "again"
    assert any("in float32" in item.summary and item.outcome == "finding" for item in found.findings)
    assert any("though in float32 the walk and the server are the same" in text for text in found.also)


def test_a_loss_of_fewer_than_eight_prompts_in_sixteen_bits_is_none_yet():
    right, lossy = [[0, 0, 30]] * 7, [[20 + n % 2, 5, 5 - n % 2] for n in range(7)]
    assert compare(foretold(right), given(lossy), 2, exact=False).answer == "open"
    assert compare(foretold(right * 2), given(lossy * 2), 2, exact=False).answer == "below"
    assert compare(foretold(right), given(lossy), 2, exact=True).answer == "below"


def test_an_accept_length_lies_between_one_and_all_drafts():
    found = compare(foretold([[9, 0, 0], [0, 0, 9]] * 3), given([[9, 0, 0], [0, 0, 9]] * 3), 2, exact=True)
    assert (found.served.low, found.served.high) == (pytest.approx(1.0, abs=0.2), pytest.approx(3.0, abs=0.2))
    assert (found.served.low or 0) >= 1
    assert (found.served.high or 9) <= 3


def test_rounding_goes_both_ways_and_a_fault_goes_one():
    right = chains(1, (0.8, 0.75, 0.7))
    rounded = [
        chain_histogram(random.Random(f"{n}"), 30, (0.8, 0.75, 0.7)) if n % 8 == 0 else h for n, h in enumerate(right)
    ]
    noise = compare(foretold(right), given(rounded), 3, exact=False)
    assert noise.answer == "as_predicted"
    assert 0.8 < noise.identical / noise.requests < 1
    fault = compare(foretold(right), given(chains(1, (0.8, 0.6, 0.5))), 3, exact=False)
    assert fault.answer == "below"
    assert fault.lower > 5 * max(fault.higher, 1)
    assert fault.first_below == 2  # the first draft is as foretold
    better = compare(foretold(chains(1, (0.8, 0.6, 0.5))), given(right), 3, exact=False)
    assert better.answer == "above"


@pytest.mark.parametrize("seed", range(20))
def test_independent_draws_of_one_drafter_are_hardly_ever_called_a_fault(seed):
    """Few prompts decide nothing; the margin keeps what is surely but hardly different from being named."""
    few = compare(foretold(chains(seed, (0.8, 0.7))), given(chains(seed + 100, (0.8, 0.7))), 2, exact=False)
    assert few.answer in ("open", "as_predicted")
    assert compare(foretold(chains(seed, (0.8,), 4)), given(chains(seed, (0.2,), 4)), 1, exact=False).answer == "open"


def test_a_small_sure_loss_within_the_margin_is_none():
    right = [[10, 20]] * 30
    slightly = [[11, 19] if n % 4 else [10, 20] for n in range(30)]
    found = compare(foretold(right), given(slightly), 1, exact=False)
    assert found.difference.high is not None
    assert -MARGIN < found.difference.high < 0
    assert found.answer == "as_predicted"


def test_equal_outcomes_of_five_prompts_in_bfloat16_are_no_certainty():
    assert compare(foretold([[5, 5]] * 5), given([[5, 5]] * 5), 1, exact=False).answer == "open"
    assert compare(foretold([[5, 5]] * 6), given([[5, 5]] * 6), 1, exact=False).answer == "as_predicted"
    assert compare(foretold([[5, 5]] * 5), given([[5, 5]] * 5), 1, exact=True).answer == "as_predicted"


def test_only_the_same_text_is_held_against_each_other():
    ids = tuple((0 * 31 + i) % 1000 for i in range(TOKENS))
    told = foretold([[5, 5]], output_ids=(*ids, 7, 8, 9))
    assert compare(told, given([[5, 5]]), 1, exact=True).requests == 1
    other = foretold([[5, 5]], output_ids=(999, *ids[1:]))
    unlike = compare(other, given([[5, 5]]), 1, exact=True)
    assert (unlike.requests, unlike.other_text) == (0, 1)
    short = replace(told, requests=(replace(told.requests[0], tokens=40),))
    assert compare(short, given([[5, 5]]), 1, exact=True).other_text == 1
    drawn = replace(told, requests=(replace(told.requests[0], greedy=False),))
    found = compare(drawn, given([[5, 5]]), 1, exact=True)
    assert (found.requests, found.not_greedy) == (0, 1)
    assert found.answer == "open"


def test_a_prompt_asked_often_is_one_prompt():
    often = given([[10, 20]]) * 40
    found = compare(foretold([[0, 30]]), often, 1, exact=False)
    assert (found.requests, found.prompts, found.lower) == (40, 1, 40)
    assert found.answer == "open"


def test_requests_without_a_histogram_or_with_an_error_are_left_out():
    bad = (made_request(0, 0, error="HTTP 500", histogram=[1, 2]), made_request(0, 0))
    assert compare(foretold([[5, 5]]), bad, 1, exact=True).requests == 0


def test_rows_that_no_prompt_stands_for_or_that_are_too_shallow_are_not_foretold():
    test = offline()
    names = [row.name for row in test.measured.train.rows]
    asked = Asked(split="train", prompts={names[3]: 7}, steps=3, max_new_tokens=64)
    best = test.wiring.best.facts
    found = foretell(best, test.measured.train, asked, part="best", run_id="r")
    assert [item.prompt for item in found.requests] == [7]
    assert found.requests[0].tokens == 64
    assert foretell(best, test.measured.train, replace(asked, steps=4), part="best", run_id="r").requests == ()
    told = foretell(best, test.measured.train, replace(asked, outputs={7: [1, 2]}), part="best", run_id="r")
    assert told.requests[0].output_ids == (1, 2)


def test_what_follows_no_walk_is_held_against_none():
    found = decide(sound(served=served(temperature=0.7)))
    assert found.place["served_train"] == "untold"
    told = [item.summary for signal in found.signals if signal.axis == "served_train" for item in signal.results]
    assert "sampling at temperature 0.7 follows no walk" in told[0]


def test_a_prediction_in_bfloat16_expects_no_identity():
    found = decide(sound(predicted=predicted(dtype="bfloat16")))
    assert found.verdict == "healthy"


def test_an_answer_that_ended_by_itself_is_walked_to_its_end():
    test = offline()
    name = test.measured.train.rows[3].name
    asked = Asked(split="train", prompts={name: 7}, steps=3, max_new_tokens=64, ends={7: 20})
    (told,) = foretell(test.wiring.best.facts, test.measured.train, asked, part="best", run_id="r").requests
    assert told.tokens == 20
    late = replace(asked, ends={7: 90, 8: 1})
    (told,) = foretell(test.wiring.best.facts, test.measured.train, late, part="best", run_id="r").requests
    assert told.tokens == 64
