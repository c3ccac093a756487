import dataclasses

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_sets
from orchestrator.compare.pooling import Operand
from orchestrator.records.measurement import Measurement, Series
from orchestrator.report.diff_verdict import verdict_lines
from tests.compare.test_diff import BASE, BETTER, side
from tests.support.made_sets import CASE, lengths, measurement, measurement_set, throughputs


def told(ours: Operand, theirs: Operand, **asked: bool) -> list[str]:
    how = Asked(**asked)  # type: ignore[arg-type]
    return verdict_lines(compare_sets(ours, theirs, how), how)


def test_a_verdict_says_what_it_takes_to_be_alike() -> None:
    ours = side(measurement(throughputs(*BETTER)), label="new")
    assert not any("alike" in line for line in told(ours, side(measurement(throughputs(*BASE)), label="old")))
    partly = told(ours, side(measurement(throughputs(*BASE), hard={"gpu": None, "tp": None}), label="old"))
    assert partly[0].startswith("Improved: ")
    assert "not told by a side, and taken to be alike: tp, gpu" in partly
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(90.0,))
    typed = side(Measurement(case=(), series=(number,)), label="baseline plain", origin="typed")
    bare = told(ours, typed)
    assert bare[0].startswith("Improved, if all else was alike: ")
    words = "baseline plain tells none of what must be alike (target, drafter, GPU, prompts, ...): taken to be alike"
    assert words in bare


def test_what_decides_as_well_and_cannot_be_told_stands_in_the_first_line() -> None:
    tokens, verifies = [20.0, 22.0, 19.0, 25.0, 21.0, 23.0], [10.0, 11.0, 10.0, 12.0, 10.0, 11.0]
    faster = [steps * (0.7 + 0.01 * place) for place, steps in enumerate(verifies)]
    slow = dataclasses.replace(throughputs(46.0, 47.0, 46.5), clusters=("start 0",) * 3)
    lines = told(
        side(measurement(slow, lengths(tokens, faster)), label="new"),
        side(measurement(throughputs(*BASE), lengths(tokens, verifies)), label="old"),
    )
    assert lines[0].startswith("Improved, but output_throughput_tok_s cannot be told: accept_length_pooled")
    assert lines[1].startswith("single run: output_throughput_tok_s at side=spec concurrency=1: 46.5 tok/s (new)")
    assert "-48.3 %, no interval; n = 1 v 5" in lines[1]


def test_two_bare_numbers_are_no_samples() -> None:
    number = Series(metric="output_throughput_tok_s", unit="tok/s", definition="", level="summary", y=(90.0,))
    sides = [side(Measurement(case=(), series=(number,)), label=name, origin="published") for name in "ab"]
    assert "n = number v number" in told(*sides)[0]


def test_a_forced_verdict_names_what_stands_against_it_and_no_notes_of_sound_loads() -> None:
    loads = [
        measurement(throughputs(*values), case={**CASE, "concurrency": users}, **more)
        for users, values, more in (("1", (80.0, 81.0, 82.0), {}), ("4", BETTER, {"hard": {"gpu": "H100"}}))
    ]
    base = [measurement(throughputs(*BASE[:3]), case={**CASE, "concurrency": users}) for users in ("1", "4")]
    ours = Operand(label="new", sets=(measurement_set(*loads, run_id="new"),))
    lines = told(ours, Operand(label="old", sets=(measurement_set(*base, run_id="old"),)), force=True)
    forced = next(line for line in lines if line.startswith("forced: "))
    assert forced == "forced: the sides are not comparable: gpu: H100 against NVIDIA H200 (side=spec concurrency=4)"
