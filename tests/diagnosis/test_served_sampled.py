"""K19: greedy against sampled on one start of a server; what theory expects, and a server that draws nothing."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from orchestrator.compare.served import served_figures
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.sampling_theory import expected
from orchestrator.diagnosis.served import diagnose_served
from orchestrator.diagnosis.served_sampled import sampled_checks, with_sampled
from remote_payload.schema.bench import BenchResult, RequestSample, SampledLoad
from tests.support.made_bench import chain_histogram, made_bench, made_point, made_request, made_server


def answers(seed: int, accept: Sequence[float], *, ids: int = 0, prompts: int = 24) -> tuple[RequestSample, ...]:
    """Answers of 40 verify steps; `ids` other than 0: their tokens differ after the first."""
    found = []
    for prompt in range(prompts):
        histogram = chain_histogram(random.Random(f"{seed} {prompt}"), 40, accept)
        item = made_request(0, prompt, histogram=histogram, index=prompt)
        told = tuple((prompt * 31 + n * (1 + ids)) % 1000 for n in range(20))
        found.append(replace(item, output_ids=told))
    return tuple(found)


def judged(
    cold: tuple[RequestSample, ...], hot: tuple[RequestSample, ...], runs: Mapping[str, object] | None = None
) -> tuple[CheckResult, ...]:
    return tuple(sampled_checks(result_of(cold, hot, runs), served_figures(result_of(cold, hot, runs), cold), hot))


def result_of(
    cold: tuple[RequestSample, ...], hot: tuple[RequestSample, ...], runs: Mapping[str, object] | None = None
) -> BenchResult:
    server = made_server(runs=runs)
    point = SampledLoad(temperature=0.8, point=made_point(0, hot))
    return made_bench([server], [made_point(0, cold)], sampled=point)


COLD = answers(1, (0.8, 0.7, 0.6))


def test_a_fall_is_told_with_what_theory_expects() -> None:
    (found,) = judged(COLD, answers(2, (0.5, 0.4, 0.3), ids=1), {"device": "cuda"})
    assert (found.check, found.outcome, found.severity) == ("K19", "finding", "note")
    assert "at temperature 0.8 against greedy" in found.summary
    difference, greedy, sampled, first, drawn, least, most = found.evidence
    assert (least.value, most.value) == (pytest.approx(0.51, abs=0.05), pytest.approx(0.63, abs=0.05))
    assert "to be expected of a target that gives its likeliest token a probability of 0." in found.summary
    assert difference.n == 24
    assert difference.value == pytest.approx((sampled.value or 0) - (greedy.value or 0))  # type: ignore[operator]
    assert first.value == pytest.approx(0.8, abs=0.05)
    assert drawn.value == pytest.approx(0.5, abs=0.06)
    assert drawn.name.endswith("the mean of the target's probability of the draft")
    assert found.effect == pytest.approx(-float(difference.value or 0))
    (other,) = judged(COLD, answers(2, (0.5, 0.4, 0.3), ids=1), {"speculative_use_rejection_sampling": True})
    assert "sum min(p, q)" in other.remedy[0]
    (tree,) = judged(COLD, answers(2, (0.5, 0.4, 0.3), ids=1), {"speculative_eagle_topk": 4})
    assert "the tree's first drafts" in tree.remedy[0]
    assert "to be expected of a target" not in tree.summary  # of a chain alone


def test_turns_of_one_conversation_are_one_sample() -> None:
    hot = answers(2, (0.5, 0.4, 0.3), ids=1)
    result = result_of(COLD, hot, {"device": "cuda"})
    told = tuple(f"c{prompt // 3}" for prompt in range(24))
    result = replace(result, workload=replace(result.workload, conversations=told))
    (found,) = sampled_checks(result, served_figures(result, COLD), hot)
    assert [one.n for one in found.evidence[:5]] == [8] * 5


def test_one_certainty_of_the_target_is_found_again() -> None:
    """Made by theory: the likeliest token is drafted in 70 % and has probability 0.6, else the draft has 0.2."""
    draws = random.Random(5)
    sharp, hot = [], []
    for prompt in range(24):
        named = [draws.random() < 0.7 for _ in range(200)]
        taken = [draws.random() < (0.6 if hit else 0.2) for hit in named]
        for some, which in ((sharp, named), (hot, taken)):
            some.append(made_request(0, prompt, histogram=(200 - sum(which), sum(which)), index=prompt))
    found = expected(sharp, hot, None)
    assert found is not None
    assert found.least < 0.6 < found.most
    assert (found.least, found.most) == (pytest.approx(0.47, abs=0.02), pytest.approx(0.686, abs=0.02))
    assert not found.is_beyond


def test_more_than_the_targets_own_draws_allow_is_a_fault() -> None:
    (found,) = judged(answers(1, (0.5, 0.4, 0.3)), answers(2, (0.9, 0.8, 0.7), ids=1))
    assert (found.severity, found.cause) == ("minor", "engine")
    assert "more first drafts than the target's own draws allow" in found.summary
    alarms = 0
    for seed in range(50):  # at the very bound: half of one plus the greedy share
        pair = answers(seed, (0.6,), prompts=10), answers(900 + seed, (0.8,), ids=1, prompts=10)
        alarms += any("more first drafts" in item.summary for item in judged(*pair))
    assert alarms <= 3


def test_no_fall_passes_and_too_few_prompts_cannot_tell() -> None:
    (same,) = judged(COLD, answers(3, (0.8, 0.7, 0.6), ids=1))
    assert same.outcome == "passed"
    few = answers(1, (0.8, 0.7, 0.6), prompts=4)
    (found,) = judged(few, answers(2, (0.1, 0.1, 0.1), ids=1, prompts=4))
    assert (found.outcome, found.needs) == ("cannot_tell", "5 prompts or more")


def test_equal_servers_are_seldom_told_apart() -> None:
    """200 pairs of loads that accept alike: at most 5 in 100 get a finding."""
    alarms = 0
    for seed in range(200):
        cold, hot = answers(seed, (0.7, 0.6), prompts=10), answers(1000 + seed, (0.7, 0.6), ids=1, prompts=10)
        alarms += any(item.outcome == "finding" for item in judged(cold, hot))
    assert alarms <= 10


@pytest.mark.parametrize(
    ("device", "severity", "words"),
    [
        ("cpu", "minor", "verification is greedy on cpu"),
        ("cuda", "note", "verification seems greedy, or the target is that sure"),
    ],
)
def test_a_server_that_verifies_greedily_draws_nothing(device: str, severity: str, words: str) -> None:
    (found,) = judged(COLD, answers(1, (0.8, 0.7, 0.6)), {"device": device})
    assert (found.severity, found.cause) == (severity, "engine")
    assert f"temperature 0.8 is not sampled while speculating: {words}; all 24 answers" in found.summary


def test_what_a_device_is_said_to_do_gives_way_to_what_it_did() -> None:
    (drawn,) = judged(COLD, answers(3, (0.8, 0.7, 0.6), ids=1), {"device": "cpu"})
    assert drawn.outcome == "passed"  # answers that begin alike differ: it does sample
    other = tuple(replace(item, output_ids=(999, *(item.output_ids or ())[1:])) for item in COLD)
    (unseen,) = judged(COLD, other, {"device": "cpu"})
    assert unseen.outcome == "cannot_tell"


def test_thresholds_below_one_are_another_expectation() -> None:
    """That such answers are not the target's own is K13's to say."""
    runs = {"speculative_accept_threshold_acc": 0.5, "speculative_accept_threshold_single": 1.0}
    (found,) = judged(COLD, answers(3, (0.8, 0.7, 0.6), ids=1), runs)
    assert "min(1, p / threshold_acc)" in found.evidence[-1].name


def test_failed_requests_are_no_measurement_and_nothing_asked_is_nothing_told() -> None:
    hot = answers(2, (0.5, 0.4))
    result = result_of(COLD, (replace(hot[0], error="HTTP 500"), *hot[1:]))
    (found,) = sampled_checks(result, served_figures(result, COLD), hot)
    assert found.outcome == "cannot_tell"
    plain = replace(result, sampled=None)
    assert not tuple(sampled_checks(plain, served_figures(plain, COLD), ()))


def test_it_stands_among_the_runs_own_findings_by_severity() -> None:
    hot = answers(1, (0.8, 0.7, 0.6))
    result = result_of(COLD, hot, {"device": "cpu"})
    figures = served_figures(result, COLD)
    before = diagnose_served(result, COLD, figures)
    after = with_sampled(before, result, figures, hot)
    assert len(after.results) == len(before.results) + 1
    assert [item.severity for item in after.findings] == sorted(
        (item.severity for item in after.findings), key=("fatal", "serious", "minor", "note").index
    )
