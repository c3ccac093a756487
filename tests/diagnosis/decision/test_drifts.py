"""K18: acceptance by context length, output position and server age, on made drifts, on none, and on real answers."""

import random
from dataclasses import replace

import pytest

from orchestrator.compare.served import served_figures
from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.decision.drifts import beside_foretold, by_context, by_position, drift_checks
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.server_age import by_age
from tests.diagnosis.decision.scenes import served, sound
from tests.support.made_bench import chain_histogram, made_bench, made_point, made_request, made_server


def asked(prompt, accept, *, point=0, tokens=30, **more):
    histogram = chain_histogram(random.Random(f"{prompt} {point}"), 30, accept)
    return made_request(point, prompt, histogram=histogram, prompt_tokens=tokens, index=prompt, **more)


def test_acceptance_that_falls_with_the_context():
    some = [asked(n, (0.9, 0.9) if n < 12 else (0.3, 0.2), tokens=100 if n < 12 else 4000) for n in range(24)]
    found = by_context(some, None)
    assert (found.outcome, found.severity) == ("finding", "minor")
    assert found.effect is not None
    assert found.effect > 1
    steady = [asked(n, (0.8, 0.7), tokens=100 if n < 12 else 4000) for n in range(24)]
    assert by_context(steady, None).outcome in ("passed", "cannot_tell")
    assert by_context([asked(n, (0.8,)) for n in range(24)], None).outcome == "cannot_tell"
    assert by_context([], None).outcome == "cannot_tell"


@pytest.mark.parametrize(
    ("accept", "beside", "severity"),
    [
        ((0.05, 0.05), None, "minor"),  # longer text may be harder text
        ((0.9, 0.9), None, "minor"),
        ((0.05, 0.05), (-1.4, -0.8), "serious"),
        ((0.05, 0.05), (-0.05, 0.05), "note"),
        ((0.05, 0.05), (-0.6, 0.4), "minor"),
        ((0.9, 0.9), (-1.4, -0.8), "minor"),
    ],
)
def test_requests_beyond_the_drafters_context_weigh_only_where_offline_they_do_not_fall(accept, beside, severity):
    some = [asked(n, (0.9, 0.9) if n < 12 else accept, tokens=100 if n < 12 else 4000) for n in range(24)]
    told = None
    if beside is not None:
        told = Estimate(value=sum(beside) / 2, low=beside[0], high=beside[1], rows=24)
    found = by_context(some, 2048, beside=told)
    assert "12 of 24 requests are longer than the 2048 tokens" in found.summary
    assert found.severity == severity
    assert found.cause == ("engine" if severity == "serious" else "generalization")


def test_longer_text_that_is_harder_text_is_no_cause():
    """The hardest prompts of a real server's answers are called the longest: all of it was foretold."""

    def long(requests):
        share = {item.prompt: (item.correct_drafts or 0) / item.verify_steps for item in requests if item.histogram}
        hard = set(sorted(share, key=lambda prompt: share[prompt])[:10])
        return tuple(replace(item, prompt_tokens=3000) if item.prompt in hard else item for item in requests)

    def lossy(requests):
        return tuple(halved(item) if item.prompt_tokens == 3000 else item for item in long(requests))

    whole = sound(served=served(change=long))
    assert beside_foretold(whole, 2048).value == 0
    lost = beside_foretold(sound(served=served(change=lossy)), 2048)
    assert lost.high is not None
    assert lost.high < -0.1
    assert beside_foretold(Known(served=served(change=long)), 2048) is None


def test_acceptance_by_position_needs_a_chunk_a_step():
    falling = []
    for n in range(8):
        item = asked(n, (0.8,))
        steps = item.verify_steps
        assert steps is not None
        falling.append(replace(item, chunk_tokens=(1, *([3] * (steps // 2)), *([1] * (steps - steps // 2)))))
    found = by_position(falling)
    assert (found.outcome, found.severity) == ("finding", "note")
    assert by_position([replace(item, chunk_tokens=(64,)) for item in falling]).outcome == "cannot_tell"
    assert by_position(falling[:3]).outcome == "cannot_tell"


def load_of(*repeats, start=0):
    """One load whose repeats were measured on one start of the server."""
    points = [made_point(n, some, repeat=n, start=start) for n, some in enumerate(repeats)]
    requests = tuple(item for some in repeats for item in some)
    return served_figures(made_bench([made_server()], points), requests).loads[0]


def test_a_server_that_ages_is_the_engines_fault():
    young = [asked(n, (0.9, 0.9), point=0) for n in range(12)]
    old = [replace(asked(n, (0.4, 0.3), point=1), point=1) for n in range(12)]
    found = by_age(load_of(young, old), greedy=True)
    assert (found.outcome, found.severity, found.cause) == ("finding", "serious", "engine")
    same = [replace(item, point=1) for item in young]
    assert by_age(load_of(young, same), greedy=True).outcome == "passed"
    assert by_age(load_of(young, same), greedy=False).outcome == "cannot_tell"
    assert by_age(load_of(young), greedy=True).outcome == "cannot_tell"
    others = [replace(item, point=1, prompt=item.prompt + 50) for item in young]
    assert by_age(load_of(young, others), greedy=True).outcome == "cannot_tell"


def test_a_prompt_that_is_asked_again_is_no_further_sample():
    """Three equal answers a prompt: what five prompts cannot tell, fifteen copies of them cannot either."""
    some = [asked(n, (0.9, 0.9) if n < 3 else (0.3, 0.2), tokens=100 if n < 3 else 4000) for n in range(6)]
    repeated = [replace(item, point=repeat) for repeat in range(3) for item in some]
    assert by_context(repeated, None).outcome == "cannot_tell"
    steps = [stepped(n, early=(0.8,), late=(0.5,)) for n in range(6)]
    once, thrice = by_position(steps), by_position([replace(item, point=at) for at in range(3) for item in steps])
    assert thrice.evidence == once.evidence
    assert once.evidence[0].n == 6
    turns = ("one talk",) * 6  # of which all prompts are turns
    assert by_position(steps, turns).outcome == "cannot_tell"


def stepped(prompt, *, early, late, salt=0, steps=30):
    """An answer that tells what each of its verify steps yielded."""
    draws = random.Random(f"{prompt} {salt}")
    yields = []
    for half in (early, late):
        for _ in range(steps // 2):
            depth = 0
            while depth < len(half) and draws.random() < half[depth]:
                depth += 1
            yields.append(1 + depth)
    histogram = [yields.count(1 + depth) for depth in range(1 + max(len(early), len(late)))]
    item = made_request(0, prompt, histogram=histogram, prompt_tokens=100 + 40 * prompt, index=prompt)
    return replace(item, chunk_tokens=(1, *yields))


def drawn(seed, fall):
    """Fifteen prompts of different acceptance; it falls from the middle of the answers, the prompts and the run on."""
    draws = random.Random(seed)
    own = [min(0.95, max(0.2, draws.gauss(0.65, 0.12))) for _ in range(15)]
    position = by_position([stepped(n, early=(a, a), late=(a * fall, a * fall), salt=seed) for n, a in enumerate(own)])
    lengths = [a * (fall if n > 7 else 1) for n, a in enumerate(own)]
    context = by_context([stepped(n, early=(a, a), late=(a, a), salt=seed) for n, a in enumerate(lengths)], None)
    young = [stepped(n, early=(a, a), late=(a, a), salt=seed) for n, a in enumerate(own)]
    aged = [replace(stepped(n, early=(a * fall,) * 2, late=(a * fall,) * 2, salt=-1 - seed), point=1)
            for n, a in enumerate(own)]  # fmt: skip
    return context, position, by_age(load_of(young, aged), greedy=True)


def test_no_drift_is_seldom_called_one_and_a_large_one_mostly_is():
    """200 seeds without a drift: 5 alarms in 100 at most. 20 with one that halves acceptance: most are named."""

    def named(seeds, fall):
        found = [drawn(seed, fall) for seed in range(seeds)]
        return [sum(one[check].outcome == "finding" for one in found) for check in range(3)]

    assert max(named(200, 1.0)) <= 10
    assert min(named(20, 0.5)) >= 15


def test_where_each_start_was_asked_once_age_is_told_by_what_was_foretold():
    """A real server's own answers, as foretold; then the later half of each run loses half of its drafts."""
    whole = sound()
    (steady,) = [item for item in drift_checks(whole) if item.title == "acceptance by server age"]
    assert steady.outcome == "passed"
    assert "each beside what was foretold of it" in steady.summary
    assert steady.evidence[1].value == 12

    def ageing(requests):
        return tuple(halved(item) if item.index % 12 >= 6 else item for item in requests)

    (falling,) = [
        item for item in drift_checks(sound(served=served(change=ageing))) if item.title == "acceptance by server age"
    ]
    assert (falling.outcome, falling.severity, falling.cause) == ("finding", "serious", "engine")
    (untold,) = [item for item in drift_checks(Known(served=served())) if item.title == "acceptance by server age"]
    assert untold.outcome == "cannot_tell"
    assert "without --with-baseline" in (untold.needs or "")


def halved(item):
    """The same answer in the same steps, of which those that accepted all drafts accepted none."""
    if item.histogram is None:
        return item
    first, *middle, last = item.histogram
    histogram = (first + last, *middle, 0)
    return replace(item, histogram=histogram, correct_drafts=sum(i * n for i, n in enumerate(histogram)))
