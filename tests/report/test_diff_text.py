"""Comparisons against golden files; `EAGLE3_WRITE_GOLDEN=1 pytest tests/report` writes them anew."""

import dataclasses
import json
import random

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_many, compare_sets
from orchestrator.compare.pivot import pivot
from orchestrator.compare.pooling import Operand
from orchestrator.records.measurement import Measurement, Series
from orchestrator.report.diff_json import diff_json
from orchestrator.report.diff_many import many_text
from orchestrator.report.diff_markdown import diff_markdown
from orchestrator.report.diff_text import diff_text
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import power_words
from orchestrator.report.markdown_table import escaped
from orchestrator.report.pivot_text import pivot_json, pivot_text
from tests.compare.test_diff import BASE, BETTER, WORSE, side
from tests.report.test_text import check
from tests.support.made_sets import CASE, lengths, measurement, measurement_set, throughputs

PLAIN = {"side": "plain", "concurrency": "1"}
SOFT = {"sglang_version": "0.5.22", "host": "gpu1"}


def load(speeds: tuple[float, ...], length: float, **more: object) -> Measurement:
    """A load of 40 prompts whose accept lengths are around `length`."""
    draws = random.Random(5)
    verifies = [float(draws.randint(40, 90)) for _ in range(40)]
    tokens = [round(steps * (length + draws.uniform(-0.3, 0.3)), 3) for steps in verifies]
    return measurement(throughputs(*speeds), lengths(tokens, verifies), **more)  # type: ignore[arg-type]


def old() -> Operand:
    made = load(BASE, 1.9, soft=SOFT, arguments={"page_size": "1"}, histogram=(900, 400, 20, 5))
    return side(made, label="bench-old")


def new(speeds: tuple[float, ...] = BETTER, **more: object) -> Operand:
    soft, arguments = {**SOFT, "sglang_version": "0.5.23"}, {"page_size": "64"}
    hard = {"draft": "/srv/draft-2"}
    made = load(speeds, 2.2, soft=soft, arguments=arguments, hard=hard, histogram=(500, 600, 200, 60), **more)
    return side(made, label="bench-new")


def test_an_improvement_with_everything_beside_it() -> None:
    asked = Asked(vary=("draft",))
    found = compare_sets(new(), old(), asked)
    check("diff_improved.txt", diff_text(found, asked))
    check("diff_improved.md", diff_markdown([found], asked))
    value = json.loads(json.dumps(diff_json([found], asked), allow_nan=False))
    (case,) = value["comparisons"][0]["cases"]
    assert (value["verdict"], case["varied"][0]["name"]) == ("improved", "draft")
    throughput = next(line for line in case["metrics"] if line["metric"]["name"] == "output_throughput_tok_s")
    assert throughput["definition"] == "output tokens / seconds from the first send to the last token"
    assert (throughput["n_this"], throughput["n_reference"], throughput["decides"]) == (5, 5, True)


def test_what_is_not_comparable_and_what_is_no_measurement() -> None:
    asked = Asked()
    check("diff_not_comparable.txt", diff_text(compare_sets(new(), old(), asked), asked))
    broken = new(invalid=("1 of 8 requests failed at 1 user (spec): this load is no measurement",))
    check("diff_invalid.txt", diff_text(compare_sets(broken, old(), asked), asked))


def test_a_sound_load_gives_no_reason_why_another_is_none() -> None:
    plain = [measurement(throughputs(*BASE), case={"side": "plain", "concurrency": "1"}) for _ in range(2)]
    both = Operand(label="new", sets=(measurement_set(*new().measurements, plain[0]),))
    text = diff_text(
        compare_sets(both, Operand(label="old", sets=(measurement_set(*old().measurements, plain[1]),)), Asked()),
        Asked(),
        400,
    )
    first = text.splitlines()[0]
    assert first.startswith("Not comparable: new against old: draft: ")
    assert first.endswith("(side=spec concurrency=1)")


def test_what_so_few_runs_cannot_show_is_told() -> None:
    asked = Asked(metrics=("output_throughput_tok_s",))
    shaky = side(measurement(throughputs(88.0, 93.0, 85.0, 96.0, 90.0)), label="bench-new")
    steady = side(measurement(throughputs(*BASE)), label="bench-old")
    check("diff_inconclusive.txt", diff_text(compare_sets(shaky, steady, asked), asked))


def test_what_an_unsure_load_beside_a_sure_one_could_not_show_is_told() -> None:
    shaky = (88.0, 93.0, 85.0, 96.0, 90.0)
    both = [
        side(measurement(throughputs(*spec)), measurement(throughputs(*plain), case=PLAIN), label=name)
        for name, spec, plain in (("old", BASE, BASE), ("new", BETTER, shaky), ("newer", BETTER, BASE))
    ]
    told = (
        "5 runs a side can detect a change of {} or more (at most 78 % power, corrected over {}); "
        "to detect 2 %, take about {} runs a side"
    )
    of_two, of_four = told.format("9.8 %", 2, 55), told.format("12 %", 4, 65)
    found = compare_many(both[:2], Asked())
    assert f"\n  output_throughput_tok_s: {of_two}\n" in diff_text(found[0], Asked(), 300)
    assert "5 runs a side can detect a change of 9.8 % or more" in diff_markdown(found, Asked())
    many = many_text(compare_many(both, Asked()), Asked(), 300)
    assert f"\n  new: {of_four}\n" in many
    assert many.splitlines()[1].startswith(
        "  output_throughput_tok_s at side=spec concurrency=1: 100 tok/s (new) against "
    )
    assert f"\n  plain: new: {of_two}\n" in pivot_text(pivot(both[:2], "side", Asked()), 300)


def test_the_verdict_of_one_figure_says_which_other_could_not_be_compared() -> None:
    def served(tokens: float, label: str) -> Operand:
        made = Series(
            metric="output_tokens", unit="tokens", definition="d", level="run", keys=tuple("abc"), y=(tokens,) * 3
        )
        return side(dataclasses.replace(load(BASE, 1.9), series=(*load(BASE, 1.9).series, made)), label=label)

    found = compare_sets(served(100.0, "new"), served(200.0, "old"), Asked())
    first, *more = verdict_lines(found, Asked())
    assert "accept_length_pooled" in first
    told = "not compared: output_throughput_tok_s: "
    assert [line for line in more if line.startswith(told) and "tokens long" in line], more
    same = verdict_lines(compare_sets(old(), old(), Asked()), Asked())
    assert same[0].startswith("The same run: ")
    assert sum("it is the same run on both sides" in line for line in same) == 1


def test_what_no_load_is_told_of_is_said_once() -> None:
    def side_of(label: str, speeds: tuple[float, ...], *, gpu_of_plain: str | None) -> Operand:
        loads = ((CASE, None), (PLAIN, gpu_of_plain), ({**CASE, "concurrency": "4"}, None))
        made = [measurement(throughputs(*speeds), case=case, hard={"gpu": gpu}) for case, gpu in loads]
        return side(*made, label=label)

    for gpu, told in ((None, ("gpu",)), ("H200", ("gpu (side=spec concurrency=1, side=spec concurrency=4)",))):
        found = compare_sets(side_of("new", BETTER, gpu_of_plain=gpu), side_of("old", BASE, gpu_of_plain=gpu), Asked())
        text = diff_text(found, Asked(), 300)
        assert tuple(line.partition(": ")[2] for line in text.splitlines() if line.startswith("not told by a")) == told
        assert diff_markdown([found], Asked()).count("- not told by a side: gpu") == 1


def test_markdown_tells_of_a_load_what_the_text_tells() -> None:
    tail = dataclasses.replace(throughputs(*BASE), metric="ttft_s_p90", unit="s")
    theirs = measurement(throughputs(*BASE), tail, warnings=("the GPU was shared",))
    ours = measurement(throughputs(*BETTER), tail)
    other = dataclasses.replace(theirs, case=measurement(throughputs(1.0), case={"side": "plain"}).case)
    found = compare_sets(side(ours, label="new"), side(theirs, other, label="old"), Asked())
    text, lines = diff_text(found, Asked(), 1000), diff_markdown([found], Asked()).splitlines()
    told = [
        line.strip() for line in text.splitlines() if line.strip().startswith(("reference: ", "note: ", "only in "))
    ]
    assert {"reference: the GPU was shared", "only in old: side=plain"} <= set(told)
    assert any("percentiles: --json" in line for line in told)
    assert [line for line in told if f"- {escaped(line)}" not in lines] == []
    assert lines[-2] == ""  # else the legend is part of the list's last item
    assert lines[-3].startswith("- ")


def test_enough_samples_are_not_asked_for_again() -> None:
    found = compare_sets(side(measurement(throughputs(*BETTER))), side(measurement(throughputs(*BASE))), Asked())
    line = dataclasses.replace(found.cases[0].comparisons[0], verdict="inconclusive", detectable=0.012, needed=3)
    assert power_words(line) == "5 runs a side can detect a change of 1.2 % or more (78 % power)"
    few = dataclasses.replace(line, n_theirs=4, needed=9, detectable=0.031)
    assert power_words(few).startswith("5 against 4 runs can detect a change of 3.1 % or more")
    assert power_words(dataclasses.replace(line, pairs=24)).startswith("24 pairs of prompts can detect")
    against = dataclasses.replace(line, level="summary", n_theirs=1)
    assert power_words(against).startswith("5 samples against a number can detect")
    assert power_words(dataclasses.replace(line, detectable=None)) == ""


def test_a_typed_number_is_marked_as_one() -> None:
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(90.0,))
    made = Measurement(case=(), series=(number,))
    typed = side(made, label="baseline plain", origin="typed", source="me@laptop")
    asked = Asked()
    check("diff_typed.txt", diff_text(compare_sets(side(measurement(throughputs(*BETTER))), typed, asked), asked))


def test_many_against_the_first() -> None:
    asked = Asked(vary=("draft",))
    sides = [old(), new(), side(load(WORSE, 1.9, soft=SOFT, arguments={"page_size": "1"}), label="bench-slow")]
    check("diff_many.txt", many_text(compare_many(sides, asked), asked))


def test_a_table_by_a_circumstance() -> None:
    loads = [
        measurement(throughputs(*values), case={"side": "spec", "concurrency": users})
        for users, values in (("16", WORSE), ("4", BETTER), ("1", BASE))
    ]
    faster = [
        measurement(throughputs(*(value * 1.1 for value in values)), case={"side": "spec", "concurrency": users})
        for users, values in (("1", BASE), ("4", BETTER))
    ]
    tables = pivot([side(*loads, label="old"), side(*faster, label="new")], "concurrency", Asked())
    check("pivot.txt", pivot_text(tables))
    assert [value for value, _ in tables[0].rows] == ["1", "4", "16"]
    assert tables[0].rows[2][1][1] is None
    assert json.loads(json.dumps(pivot_json(tables), allow_nan=False))["tables"][0]["columns"] == ["old", "new"]
    other = measurement(throughputs(*BETTER), case={"side": "spec", "concurrency": "4"}, hard={"gpu": "H100"})
    barred = pivot_text(pivot([side(*loads, label="old"), side(other, label="new")], "concurrency", Asked()))
    assert "  4: new       100 [99.64, 100.4]  5 v 5  -       -  not comparable\n" in barred
    assert "\n  not compared, 4: new: gpu\n" in barred
    (alone,) = pivot([side(*loads, label="old")], "concurrency", Asked())
    first, second = alone.rows[0][1][0], alone.rows[1][1][0]
    assert first is not None
    assert first.comparison is None
    assert second is not None
    assert second.comparison is not None
    assert second.comparison.verdict == "improved"


def test_an_unsure_headline_tells_the_largest_change_and_every_other_one() -> None:
    """Acceptance that did not change hides no throughput that fell by two thirds and was measured on one start."""
    asked = Asked()

    def one_start(speed: float, label: str) -> Operand:
        y = tuple(speed + step / 10 for step in range(5))
        few = lengths([60.0, 61.0, 62.0], [30.0, 30.0, 30.0])
        starts = dataclasses.replace(throughputs(*y), clusters=("one start",) * 5)
        slow = dataclasses.replace(throughputs(100.0), keys=("alone",))
        loads = (measurement(slow, case=PLAIN), measurement(few, starts))
        return side(*loads, label=label)

    found = compare_sets(one_start(20.0, "new"), one_start(56.8, "old"), asked)
    first, second, *_ = verdict_lines(found, asked)
    assert found.verdict == "single run"
    assert first.startswith("Single run, not tested: output_throughput_tok_s at side=spec concurrency=1: 20.2 tok/s")
    assert "-64.6 %" in first
    assert second.startswith("inconclusive: accept_length_pooled at side=spec concurrency=1: ")
