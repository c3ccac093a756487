import dataclasses
from xml.etree import ElementTree

import pytest

from orchestrator.compare.condition import parse_condition
from orchestrator.compare.expect import Judgment, judge
from orchestrator.compare.pooling import Operand
from orchestrator.errors import JobFileError
from orchestrator.records.measurement import Fact, Measurement, Series
from orchestrator.report.junit import junit
from tests.compare.test_diff import BASE, BETTER, side
from tests.support.made_sets import CASE, lengths, measurement, throughputs

THROUGHPUT = "output_throughput_tok_s"


def judged(metric: str, text: str, measured: Operand, baseline: Operand | None = None) -> tuple[Judgment, ...]:
    return judge(parse_condition(metric, text, "job.toml"), measured, baseline)


def outcome(text: str, *values: float, **more: object) -> str:
    (found,) = judged(THROUGHPUT, text, side(measurement(throughputs(*values), **more)))
    return found.outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">= 89.5", "passed"),
        (">= 90 tok/s", "cannot tell"),  # the interval of a mean of 90.0 crosses it
        (">= 91", "failed"),
        ("> 89.5", "passed"),
        ("<= 90.5", "passed"),
        ("< 89", "failed"),
        ("<= 90", "cannot tell"),
        (" >=\t+8.95e1 ", "passed"),
    ],
)
def test_it_holds_where_the_whole_interval_says_so(text: str, expected: str) -> None:
    assert outcome(text, *BASE) == expected


def test_what_cannot_be_told_is_never_passed() -> None:
    assert outcome(">= 1", 90.0) == "cannot tell"  # a single run
    repeats = dataclasses.replace(throughputs(*BASE), clusters=("one start",) * len(BASE))
    (one_start,) = judged(THROUGHPUT, ">= 1", side(measurement(repeats)))
    assert (one_start.outcome, one_start.figure.low) == ("cannot tell", None)  # as a comparison has it
    assert one_start.reason.startswith(f"{len(BASE)} repeats of 1 run (server starts), 3 are the least")
    assert outcome(">= 1", *BASE, invalid=("1 of 8 requests failed",)) == "cannot tell"
    assert outcome("[concurrency=4] >= 1", *BASE) == "cannot tell"
    (missing,) = judged("accept_length_pooled", ">= 1", side(measurement(throughputs(*BASE))))
    assert missing.outcome == "cannot tell"
    assert missing.reason == f"the run has no accept_length_pooled; it has {THROUGHPUT}"
    lost = measurement(case={**CASE, "concurrency": "4"}, invalid=("8 of 8 requests failed",))
    beside = judged(THROUGHPUT, ">= 1", side(measurement(throughputs(*BASE)), lost))
    assert [(item.outcome, item.reason) for item in beside] == [("passed", ""), ("cannot tell", lost.invalid[0])]
    number = Series(metric=THROUGHPUT, unit="tok/s", definition="", level="summary", y=(90.0,))
    (bare,) = judged(THROUGHPUT, ">= 1", side(Measurement(case=(), series=(number,))))
    assert bare.outcome == "cannot tell"


def test_every_load_that_is_meant_is_judged_and_the_drafters_side_is_meant() -> None:
    loads = [
        measurement(throughputs(*values), case={"side": name, "concurrency": users})
        for name, users, values in (("plain", "1", BASE), ("spec", "1", BETTER), ("spec", "4", BASE))
    ]
    found = judged(THROUGHPUT, ">= 95", side(*loads))
    assert [(item.case[1].value, item.outcome) for item in found] == [("1", "passed"), ("4", "failed")]
    (one,) = judged(THROUGHPUT, "[concurrency=1] >= 95", side(*loads))
    assert one.outcome == "passed"
    (plain,) = judged(THROUGHPUT, "[side=plain, concurrency=1] >= 95", side(*loads))
    assert plain.outcome == "failed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">= baseline:b", "passed"),
        (">= 1.1 * baseline:b", "passed"),
        (">= 1.3 * baseline:b", "failed"),
        ("<= 1.05*baseline:b", "failed"),
        (">= 1.1111 * baseline:b", "cannot tell"),
    ],
)
def test_ratios_to_a_baseline(text: str, expected: str) -> None:
    ours, theirs = side(measurement(throughputs(*BETTER))), side(measurement(throughputs(*BASE)))
    (found,) = judged(THROUGHPUT, text, ours, theirs)
    assert found.outcome == expected
    assert found.comparison is not None
    number = Series(metric=THROUGHPUT, unit="tok/s", definition="", level="summary", y=(90.0,))
    typed = side(Measurement(case=(), series=(number,)), label="baseline:b", origin="typed")
    assert judged(THROUGHPUT, text, ours, typed)[0].outcome == expected


def test_a_number_that_names_no_load_is_of_no_load_where_there_are_several() -> None:
    def spec(users: str) -> Measurement:
        return measurement(throughputs(*BETTER), case={"side": "spec", "concurrency": users})

    number = Series(metric=THROUGHPUT, unit="tok/s", definition="", level="summary", y=(90.0,))
    typed = side(Measurement(case=(), series=(number,)), origin="typed")
    several = side(spec("1"), spec("4"))
    found = judged(THROUGHPUT, ">= 1.05 * baseline:b", several, typed)
    assert [item.outcome for item in found] == ["cannot tell"] * 2
    assert found[1].reason == (
        "`baseline:b` names no load, and 2 loads of the run fit it: "
        "`[concurrency=4] >= 1.05 * baseline:b` chooses this one; `baseline set --load` would name the number's own"
    )
    (named,) = judged(THROUGHPUT, "[concurrency=4] >= 1.05 * baseline:b", several, typed)
    assert named.outcome == "passed"
    any_of_them = judged(THROUGHPUT, "[vary=concurrency] >= 1.05 * baseline:b", several, typed)
    assert [item.outcome for item in any_of_them] == ["passed"] * 2
    of_four = side(Measurement(case=(Fact(name="concurrency", value="4"),), series=(number,)), origin="typed")
    (its_own,) = judged(THROUGHPUT, ">= 1.05 * baseline:b", several, of_four)
    assert (its_own.outcome, its_own.case[1].value) == ("passed", "4")
    (nowhere,) = judged(THROUGHPUT, "[concurrency=1] >= 1.05 * baseline:b", several, of_four)
    assert (nowhere.outcome, nowhere.reason) == (
        "cannot tell",
        "`baseline:b` was measured at concurrency=4, and no load that is meant is that one; "
        "with [vary=concurrency] it is compared across",
    )
    across = judged(THROUGHPUT, "[vary=concurrency] >= 1.05 * baseline:b", several, of_four)
    assert [item.outcome for item in across] == ["passed"] * 2
    half = side(measurement(throughputs(*BASE), case={"side": "spec"}), label="half")
    assert "says no more than side=spec" in judged(THROUGHPUT, ">= 1.05 * baseline:b", several, half)[0].reason
    both = side(measurement(throughputs(*BASE), case={"side": "spec"}), spec("1"), label="both")
    assert [item.outcome for item in judged(THROUGHPUT, ">= 1.05 * baseline:b", several, both)] == ["failed", "passed"]


def test_a_baseline_that_is_not_comparable_tells_nothing_unless_that_may_differ() -> None:
    ours = side(measurement(throughputs(*BETTER), hard={"draft": "/srv/other"}))
    theirs = side(measurement(throughputs(*BASE)))
    (found,) = judged(THROUGHPUT, ">= 1.05 * baseline:b", ours, theirs)
    assert found.outcome == "cannot tell"
    assert "draft is /srv/other" in found.reason
    assert "[vary=draft]" in found.reason
    (varied,) = judged(THROUGHPUT, "[vary=draft] >= 1.05 * baseline:b", ours, theirs)
    assert varied.outcome == "passed"
    (gone,) = judged(THROUGHPUT, ">= baseline:b", ours)
    assert gone.outcome == "cannot tell"


def test_plain_decoding_is_a_baseline_where_the_side_may_differ() -> None:
    spec = side(measurement(throughputs(*BETTER), case={**CASE, "side": "spec"}))
    plain = side(measurement(throughputs(*BASE), case={**CASE, "side": "plain"}, hard={"draft": "none"}))
    assert judged(THROUGHPUT, ">= 1.05 * baseline:plain", spec, plain)[0].outcome == "cannot tell"
    assert judged(THROUGHPUT, "[vary=side] >= 1.05 * baseline:plain", spec, plain)[0].outcome == "passed"


def test_the_load_that_really_varies_is_the_baseline_where_it_has_several() -> None:
    def both(values: tuple[float, ...], label: str) -> Operand:
        plain = measurement(throughputs(*BASE), case={**CASE, "side": "plain"}, hard={"draft": "none"})
        return side(measurement(throughputs(*values)), plain, label=label)

    text = "[vary=side] >= 1.05 * baseline:b"
    (found,) = judged(THROUGHPUT, text, both(BETTER, "new"), both(BETTER, "old"))
    assert (found.outcome, found.case[0].value) == ("passed", "spec")  # spec against plain
    (alike,) = judged(THROUGHPUT, ">= 1.05 * baseline:b", both(BETTER, "new"), both(BETTER, "old"))
    assert alike.outcome == "failed"


def test_several_runs_are_judged_together() -> None:
    def run(label: str, *values: float) -> Operand:
        return side(measurement(throughputs(*values, run_id=label)), label=label)

    sets = (*run("a", 90.1, 89.6).sets, *run("b", 90.4, 90.0, 89.9).sets, *run("c", 90.0).sets)
    (found,) = judged(THROUGHPUT, ">= 89.5", Operand(label="a,b", sets=sets))
    assert (found.outcome, found.figure.rows) == ("passed", 3)
    (ratio,) = judged(THROUGHPUT, "<= 0.995 * baseline:b", Operand(label="a,b", sets=sets), run("d", *BETTER))
    assert ratio.outcome == "passed"


def test_shares_are_compared_by_points() -> None:
    def accuracy(share: float, jitter: float = 0.0) -> Operand:
        n = 8
        series = Series(
            metric="declared.first_step_accuracy",
            unit="share",
            definition="d",
            level="prompt",
            keys=tuple(str(key) for key in range(n)),
            y=tuple(100 * share + (key % 3) + jitter * (-1) ** key for key in range(n)),
            x=(100.0,) * n,
        )
        return side(measurement(series))

    def told(text: str) -> str:
        return judged("declared.first_step_accuracy", text, accuracy(0.70), accuracy(0.705, 0.1))[0].outcome

    assert told(">= baseline:b - 1 point") == "passed"
    assert told(">= baseline:b - 0.01") == "passed"
    assert told(">= baseline:b") == "failed"
    assert judged("declared.first_step_accuracy", ">= 60 %", accuracy(0.70))[0].outcome == "passed"


@pytest.mark.parametrize(
    ("metric", "text", "words"),
    [
        ("accept_length", ">= 2", "no such metric"),
        (THROUGHPUT, "2", 'expected a condition like ">= 2.4"'),
        (THROUGHPUT, "== 2", "expected a condition"),
        (THROUGHPUT, "", "expected a condition"),
        (THROUGHPUT, 2.4, "expected a condition"),
        (THROUGHPUT, ">= " + "9" * 400, "expected a condition"),
        (THROUGHPUT, ">= nan", "expected a number or [NUMBER *] baseline:NAME"),
        (THROUGHPUT, ">= 1e999", "expected a finite number"),
        (THROUGHPUT, ">= __import__('os')", "expected a number or"),
        (THROUGHPUT, ">= 2 * 3", "expected a number or"),
        (THROUGHPUT, ">= 2 req/s", "is in tok/s"),
        (THROUGHPUT, ">= -1 * baseline:b", "expected a factor above 0"),
        (THROUGHPUT, ">= baseline:b - 2", "compared by ratio"),
        (THROUGHPUT, "[concurrency] >= 2", "expected KEY=VALUE in the brackets"),
        ("accept_rate", ">= 0.9 * baseline:b", "compared by difference"),
        (THROUGHPUT, ">= \u0669\u0660", "expected a number or"),
        ("ttft_s_p99", "<= 500", "as `ttft_s_p99` is in s: write `500 ms` or `500 s`"),
        ("tpot_s", "<= 20", "write `20 ms` or `20 s`"),
        ("cached_share", "<= 1", "write `100 %` or `1 %`"),
        ("accept_rate", ">= 60", "expected a share, 0 to 1, found: 60"),
        ("accept_rate", ">= 120 %", "expected a share, 0 to 1"),
        ("accept_rate", ">= baseline:b - 1", "`1 point` is written so"),
        ("declared.accept_length_walk", ">= 0.5", "expected an accept length, 1 to 17"),
        ("ttft_s", "<= 0", "expected a number of s above 0"),
    ],
)
def test_conditions_that_mean_nothing_are_refused_by_name(metric: str, text: object, words: str) -> None:
    with pytest.raises(JobFileError) as caught:
        parse_condition(metric, text, "job.toml")
    assert caught.value.message.startswith("job.toml: `expect.")
    assert words in caught.value.message


def test_a_metric_that_does_not_exist_offers_the_closest() -> None:
    for name, close in (("throughput", "output_throughput_tok_s"), ("acceptance_length", "accept_length_pooled")):
        with pytest.raises(JobFileError) as caught:
            parse_condition(name, ">= 2", "x")
        assert f"`{close}`" in (caught.value.hint or "")


def test_units_are_brought_to_the_metrics_own() -> None:
    assert parse_condition("ttft_s", "<= 500 ms", "x").value == 0.5
    assert parse_condition("accept_rate", ">= 60%", "x").value == pytest.approx(0.6)
    assert parse_condition("speedup", ">= 1.3x", "x").value == 1.3
    for metric, text in (
        ("ttft_s", "<= 0.5"),
        ("e2e_s", "<= 500 s"),
        ("cached_share", "<= 100%"),
        ("accept_rate", ">= 0"),
    ):
        assert parse_condition(metric, text, "x").value is not None


def test_equal_samples_decide_nothing_at_their_own_figure() -> None:
    """An interval of no width holds no more than the number of its samples: 59 near the figure, 6 away from it."""
    rate = Series(
        metric="accept_rate",
        unit="share",
        definition="d",
        level="prompt",
        keys=tuple("abcdefgh"),
        y=(5.0,) * 8,
        x=(10.0,) * 8,
    )
    for text in (">= 0.5", "<= 0.5", ">= 0.4"):
        (half,) = judged("accept_rate", text, side(measurement(rate)))
        assert half.outcome == "cannot tell"
    assert half.figure.low == pytest.approx(0.5 * 0.05**0.125)  # what unseen prompts leave of it
    assert judged("accept_rate", ">= 0.3", side(measurement(rate)))[0].outcome == "passed"

    def of(prompts: int, text: str) -> Judgment:
        (found,) = judged("accept_length_pooled", text, side(measurement(lengths([20.0] * prompts, [10.0] * prompts))))
        return found

    six = of(6, ">= 1.99")
    assert (six.outcome, six.figure.low) == ("cannot tell", None)
    assert six.reason == (
        "its samples are equal, or all but a few are, and the value is within 2 % of their figure: "
        "their spread tells nothing of others; 59 samples would tell, found 6"
    )
    assert [of(n, text).outcome for n, text in ((59, ">= 1.99"), (6, ">= 1.9"), (6, "<= 1.9"))] == [
        "passed",
        "passed",
        "failed",
    ]
    assert outcome(">= 90", *[90.0] * 6) == outcome(">= 90", *[90.0] * 5, 90.0001) == "cannot tell"
    old, new = (side(measurement(throughputs(*[speed] * 6)), label=str(speed)) for speed in (90.0, 99.0))
    (edge,) = judged(THROUGHPUT, ">= 1.1 * baseline:b", new, old)
    (clear,) = judged(THROUGHPUT, ">= 1.05 * baseline:b", new, old)
    assert (edge.outcome, clear.outcome) == ("cannot tell", "passed")


def test_junit_is_well_formed_whatever_a_name_holds() -> None:
    evil = "\"><![CDATA[]]>&<x>\x00\x1b\ud800\ufffe'\n"
    made = measurement(throughputs(*BASE), case={"side": "spec", "concurrency": evil}, invalid=(evil,))
    good = measurement(throughputs(*BASE))
    found = (
        *judged(THROUGHPUT, ">= 1", side(good, made)),
        *judged(THROUGHPUT, ">= 99", side(good)),
    )
    root = ElementTree.fromstring(junit(f"run {evil}", found).encode())
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    assert [child.tag for case in root for child in case] == ["system-out", "error", "failure"]
    assert "\\x00" in (root[1].get("name") or "")
