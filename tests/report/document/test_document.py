"""What the document says of runs whose figures are known: values, intervals, n, and what is not known."""

import dataclasses
from typing import get_args

import pytest

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_many
from orchestrator.compare.pooling import Operand
from orchestrator.diagnosis.served_verdict import ServedVerdict
from orchestrator.diagnosis.verdict import Verdict
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.report.document.acceptance import acceptance_section
from orchestrator.report.document.blocks import Block, Chart, Items, Section, Table, Text
from orchestrator.report.document.circumstances import environment_section
from orchestrator.report.document.economy import economies, economy_section
from orchestrator.report.document.figures import case_words, figure, rounded, title_of
from orchestrator.report.document.headline import TONES
from orchestrator.report.document.load import load_section
from orchestrator.report.document.outline import document
from orchestrator.report.document.subject import BaselineMove, Reported, Subject
from orchestrator.report.document.trend import trend_section
from orchestrator.report.series_figure import figure_of
from tests.support.made_measurements import facts, made_history, made_load, made_set


def runs(*unit: float) -> Series:
    keys = tuple(f"r/{number}" for number in range(len(unit)))
    return Series(metric="output_throughput_tok_s", unit="tok/s", definition="d", level="run", keys=keys, y=unit)


def prompts(y: tuple[float, ...], x: tuple[float, ...], clusters: tuple[str, ...] = ()) -> Series:
    keys = tuple(f"p{number}" for number in range(len(y)))
    return Series(
        metric="accept_length_pooled", unit="tokens", definition="d", level="prompt", keys=keys, y=y, x=x,
        clusters=clusters,
    )  # fmt: skip


def load(*series: Series, side: str = "spec", users: str | None = "1", **more: object) -> Measurement:
    return Measurement(case=facts(side=side, concurrency=users), series=series, **more)  # type: ignore[arg-type]


def one(*measurements: Measurement, run_id: str = "run-1", created: float | None = 1.7e9) -> MeasurementSet:
    return MeasurementSet(
        run_id=run_id, origin="own", tool="t", job_kind="bench", created_unix_s=created, measurements=measurements
    )


def reported(*sets: MeasurementSet, **more: object) -> Reported:
    return Reported(subjects=tuple(Subject(measured=item) for item in sets), **more)  # type: ignore[arg-type]


def tables(section: Section | None) -> list[Table]:
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Table)]


def charts(section: Section | None) -> list[Chart]:
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Chart)]


def words(blocks: tuple[Block, ...]) -> str:
    told = [block.text for block in blocks if isinstance(block, Text)]
    return "\n".join([*told, *(item for block in blocks if isinstance(block, Items) for item in block.items)])


def test_a_figure_says_value_interval_unit_and_n() -> None:
    # mean 90, sd 0.2915476, t(4) = 2.7764451: the interval of five runs
    series = runs(90.1, 89.6, 90.4, 90.0, 89.9)
    assert figure(series, load(series)).words == "90.00 [89.64, 90.36] tok/s, n=5 repeats"
    starts = dataclasses.replace(runs(80.0, 80.0, 90.0, 90.0, 100.0, 100.0), clusters=tuple("aabbcc"))
    told = figure(starts, load(starts))  # geometric, of three starts: 80 * 90 * 100 = 89.628^3; t(2) = 4.3027
    assert told.words == "89.63 [67.92, 118.3] tok/s, n=3 server starts"
    one = dataclasses.replace(series, clusters=("a",) * 5)
    assert figure(one, load(one)).words == "90.00 [89.64, 90.36] tok/s, n=5 repeats of one server start"
    single = dataclasses.replace(runs(90.0), clusters=("a",))
    assert figure(single, load(single)).words.endswith("n=1 repeat of one server start")
    equal = runs(90.0, 90.0, 90.0)  # a spread of nothing is no certainty
    assert figure(equal, load(equal)).words == "90.00 tok/s, n=3 repeats"
    few = runs(90.0, 91.0)
    assert figure(few, load(few)).words == "90.50 tok/s, n=2 repeats"
    bare = Series(metric="speedup", unit="ratio", definition="d", level="summary", y=(1.5,))
    assert figure(bare, load(bare)).words == "1.50 x, n unknown"


def test_prompts_of_one_conversation_count_once() -> None:
    y, x = (20.0, 22.0, 18.0, 25.0, 21.0, 24.0), (10.0,) * 6
    apart, together = prompts(y, x), prompts(y, x, ("a", "a", "b", "b", "c", "c"))
    assert figure_of(apart).value == figure_of(together).value == pytest.approx(130 / 60)
    assert figure_of(apart).low is not None
    assert figure_of(together).low is None  # three conversations are too few
    assert figure(together, load(together)).n == 3
    assert figure(together, load(together)).n_words == "n=3 distinct prompts or conversations"


def test_what_nothing_was_counted_of_is_unknown() -> None:
    series = prompts((0.0,) * 6, (0.0,) * 6)
    assert figure(series, load(series)).words == "unknown"


@pytest.mark.parametrize(
    ("value", "told"), [(0.0, "0.00"), (56.789, "56.79"), (123.456, "123.5"), (12345.6, "12346"), (0.00123, "0.00123")]
)
def test_digits(value: float, told: str) -> None:
    assert rounded(value) == told


def test_names() -> None:
    assert case_words(facts(side="spec", concurrency="4", request_rate=None)) == "spec, 4 users"
    assert case_words(facts(side="plain", concurrency="1")) == "plain, 1 user"
    assert case_words(facts(dataset=None)) == "dataset unknown"
    assert case_words(()) == "no load told"
    assert title_of("declared.accept_length_walk") == "Accept length (walk), as declared"
    assert title_of("best.step2_acceptance") == "Step 2 after hit, best reading"
    assert title_of("declared.nonsense") == "declared.nonsense"


def test_deep_drafts_are_hidden_below_thirty_steps() -> None:
    # the real sample: 43 steps, 32 accepted one, 18 two
    section = acceptance_section(reported(one(load(runs(1.0), histogram=(11, 14, 11, 4, 0, 3)))))
    table = tables(section)[0]
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4", "5"]
    assert table.rows[0][1].startswith("74.4 % [")
    assert table.rows[1][1:] == ("41.9 % [28.4, 56.7] n=43", "56.2 % [39.3, 71.8] n=32")
    assert table.rows[2][2] == "hidden: 18 steps, fewer than 30"
    joint, conditional, lengths = charts(section)
    assert len(joint.traces[0].x) == 5
    assert conditional.traces[0].x == (1.0, 2.0)
    assert lengths.traces[0].y[0] == pytest.approx(100 * 11 / 43)
    assert lengths.x_ticks[0] == "1"


def test_a_drafter_of_which_nothing_is_accepted_has_no_profile() -> None:
    section = acceptance_section(reported(one(load(runs(1.0), histogram=(43,)))))
    assert [chart.name for chart in charts(section)] == ["accept-lengths"]
    assert acceptance_section(reported(one(load(runs(1.0))))) is None


def test_speculation_breaks_even_at_r() -> None:
    """The case of 56.8 against 90 tok/s at accept length 1.9: r = 1.9 / 0.6311 = 3.01."""
    spec = load(runs(55.8, 56.8, 57.8), prompts((19.0,) * 8, (10.0,) * 8))
    plain = load(runs(90.0, 90.0, 90.0), side="plain")
    (found,) = economies(one(spec, plain))
    assert found.speedup.value == pytest.approx(56.8 / 90)
    assert found.step_cost == pytest.approx(3.0106, abs=1e-4)
    section = economy_section(reported(one(spec, plain)))
    row = tables(section)[0].rows[0]
    assert (row[1], row[4]) == ("does not pay", "3.01 [2.88, 3.15]")  # t(2) = 4.3027 times 0.010165
    (chart,) = charts(section)
    assert chart.guides[0].height == 1.0
    assert chart.guides[1].slope == pytest.approx(1 / 3.0106, abs=1e-4)  # crosses 1 at r


def test_the_plain_side_is_suspicious_only_where_a_step_surely_costs_less_than_a_plain_one() -> None:
    shaky, steady = (60.0, 100.0, 140.0), (119.0, 120.0, 121.0)
    told = []
    for spec_tok_s in (shaky, steady):
        spec = load(runs(*spec_tok_s), prompts((18.0, 19.0, 20.0) * 4, (10.0,) * 12))
        section = economy_section(reported(one(spec, load(runs(50.0, 50.0, 50.0), side="plain"))))
        told.append(tables(section)[0].rows[0][4])
    assert told[0].startswith("0.95 [")
    assert "suspicious" not in told[0]
    assert told[1].endswith("] (surely below 1: the plain side is suspicious)")


def test_pairs_of_one_ratio_are_told_as_the_runs_own_verdict_tells_them() -> None:
    """Both sides vary and the ratio does not: the headline says "slower", and the table may not say it cannot tell."""
    speeds = runs(90.0, 91.0, 92.0)
    third = dataclasses.replace(speeds, y=tuple(value / 3 for value in speeds.y))
    ratios = dataclasses.replace(speeds, metric="speedup", unit="ratio", y=(1 / 3,) * 3)
    length = prompts((19.0, 20.0, 21.0) * 4, (10.0,) * 12)
    (found,) = economies(one(load(third, ratios, length), load(speeds, side="plain")))
    assert found.pairing.pays is False
    row = tables(economy_section(reported(one(load(third, ratios, length), load(speeds, side="plain")))))[0].rows[0]
    assert (row[1], row[4]) == ("does not pay", "6.00 [5.84, 6.16]")
    (alone,) = economies(one(load(ratios, length)))
    assert (alone.pairing.pays, alone.step_cost) == (None, pytest.approx(6.0))


def test_no_speed_up_is_made_up() -> None:
    spec, plain = load(runs(56.8), prompts((19.0,) * 8, (10.0,) * 8)), load(runs(90.0), side="plain")
    single = economy_section(reported(one(spec, plain)))
    assert tables(single)[0].rows[0][1] == "cannot tell"
    assert economy_section(reported(one(spec))) is None
    bad = dataclasses.replace(plain, invalid=("2 requests failed",))
    assert economy_section(reported(one(spec, bad))) is None
    zero = load(runs(0.0), side="plain")
    assert economy_section(reported(one(spec, zero))) is None


def test_a_load_that_is_no_measurement_is_told_and_not_drawn() -> None:
    good = made_load("run-1", users=1)
    bad = made_load("run-1", users=4, invalid=("3 requests failed",))
    section = load_section(reported(one(good, bad)))
    (chart,) = charts(section)
    assert [trace.x for trace in chart.traces] == [(1.0,)]
    assert [row[-1] for row in tables(section)[0].rows] == ["", "3 requests failed"]
    assert chart.told.endswith(", n=5 server starts at 1 user.")
    assert "Unknown of every load here: " in words(section.blocks)  # type: ignore[union-attr]


def test_a_trend_shows_what_the_baseline_meant_at_the_time() -> None:
    sets = tuple(one(load(runs(value, value, value)), run_id=f"run-{at}", created=1000.0 * at)
                 for at, value in enumerate((10.0, 20.0, 30.0, 40.0)))  # fmt: skip
    moves = (
        BaselineMove(name="main", since_unix_s=500.0, run_id="run-0", measured=sets[0]),
        BaselineMove(name="main", since_unix_s=2500.0, run_id="run-2", measured=sets[2]),
        BaselineMove(name="typed", since_unix_s=0.0, numbers=(("output_throughput_tok_s", 90.0),)),
    )
    (chart,) = charts(trend_section(reported(*reversed(sets), moves=moves)))
    line, main, typed = chart.traces
    assert line.x == (1.0, 2.0, 3.0, 4.0)
    assert line.y == pytest.approx((10.0, 20.0, 30.0, 40.0))
    assert (main.x, main.y) == ((2.0, 3.0, 4.0), pytest.approx((10.0, 10.0, 30.0)))
    assert typed.y == (90.0,) * 4


def test_a_number_without_a_load_is_drawn_beside_no_load_of_several() -> None:
    numbers = (("output_throughput_tok_s", 90.0),)
    at_16 = BaselineMove(name="of-16", since_unix_s=0.0, numbers=numbers, load=facts(concurrency="16"))
    beside = trend_section(reported(*made_history(3), moves=(at_16,)))
    assert [chart.title for chart in charts(beside) if len(chart.traces) > 1] == ["Output throughput, spec, 16 users"]
    assert tables(beside)[0].rows[0][2] == "output_throughput_tok_s = 90 at 16 users"
    move = BaselineMove(name="typed", since_unix_s=0.0, numbers=numbers)
    section = trend_section(reported(*made_history(3), moves=(move,)))
    assert all(len(chart.traces) == 1 for chart in charts(section))
    assert "output_throughput_tok_s = 90" in tables(section)[0].rows[0]


def test_the_trend_of_speculation_is_drawn_before_that_of_plain_decoding() -> None:
    drawn = charts(trend_section(reported(*made_history(40))))  # the fortieth has no speculation that is a measurement
    assert ["plain" in chart.title for chart in drawn] == [False] * 4
    assert [chart.title for chart in drawn][:2] == [
        "Output throughput, spec, 1 user",
        "Accept length (pooled), spec, 1 user",
    ]


def test_two_runs_are_no_trend() -> None:
    assert trend_section(reported(*made_history(2))) is None


def test_runs_that_are_no_measurements_are_no_trend() -> None:
    sets = tuple(
        one(load(runs(10.0), invalid=("cold",) if at else ()), run_id=f"run-{at}", created=float(at)) for at in range(4)
    )
    assert charts(trend_section(reported(*sets))) == []


def test_circumstances_are_told_once_where_alike_and_by_value_where_not() -> None:
    made = [load(runs(1.0), hard=facts(target="a", gpu="H200" if at else "H100", dtype=None)) for at in range(3)]
    sets = [one(measurement, run_id=f"run-{at}") for at, measurement in enumerate(made)]
    alike, unlike = tables(environment_section(reported(*sets)))[:2]
    assert alike.rows == (("target", "a"), ("dtype", "unknown"))
    assert unlike.rows == (
        ("gpu", "H200", "run-1: spec, 1 user; run-2: spec, 1 user"),
        ("gpu", "H100", "run-0: spec, 1 user"),
    )


def test_of_many_runs_the_oldest_and_the_newest_are_drawn() -> None:
    found = reported(*made_history(41))  # the fortieth is no measurement
    assert [run.run_id for run in found.drawn] == ["bench-0000", "bench-0038", "bench-0040"]
    assert "of 41 runs" in found.drawn_words
    assert reported(*made_history(4)).drawn_words == ""


def test_the_verdict_of_many_comparisons_is_the_worst() -> None:
    sets = [made_set("a", users=(1,), seed=1), made_set("b", users=(1,), gain=1.8, seed=1)]
    sets.append(made_set("c", users=(1,), gain=0.9, seed=1))
    compared = compare_many([Operand(label=item.run_id, sets=(item,)) for item in sets], Asked())
    made = document(reported(*sets, comparisons=compared), made_unix_s=None, tool="t")
    assert made.verdict.startswith("2 comparisons: 1 regressed, 1 improved. Regressed")
    assert ": Output throughput at spec, 1 user: " in made.verdict  # no keys of ours
    assert made.tone == "bad"
    found = next(section for section in made.sections if section.name == "compared")
    opening, *_ = made.verdict.partition("1 improved. ")[2].split(";")
    assert opening not in words(found.blocks)  # nobody reads it twice
    assert "c against a: regressed." in words(found.blocks)
    assert made.file_stem == "report-3-runs-to-c"
    assert len({section.name for section in made.sections}) == len(made.sections)


def test_of_many_comparisons_the_weightiest_stands_in_full() -> None:
    sets = [made_set(f"run-{at}", users=(1,), gain=0.8 if at == 5 else 1.35, seed=1) for at in range(9)]
    compared = compare_many([Operand(label=item.run_id, sets=(item,)) for item in sets], Asked())
    made = document(reported(*sets, comparisons=compared), made_unix_s=None, tool="t")
    found = next(section for section in made.sections if section.name == "compared")
    overview, *full = tables(found)
    assert len(overview.rows) == 8
    assert [row[2] for row in overview.rows].count("regressed") == 1
    assert all("run-5 (ours)" in table.caption for table in full[:2])
    assert "One of 8 comparisons stands here in full" in words(found.blocks)


def test_numbers_of_others_are_never_told_as_measured_here() -> None:
    bare = Series(metric="accept_length_pooled", unit="tokens", definition="card", level="summary", y=(3.2,))
    published = MeasurementSet(
        run_id="published:kimi", origin="published", tool="model card", job_kind="imported",
        measurements=(Measurement(case=(), series=(bare,)),),
    )  # fmt: skip
    made = document(reported(published), made_unix_s=None, tool="t")
    assert "published: no measurement of ours" in made.verdict
    assert made.about.startswith("Published: no measurement of ours (unknown), unknown. Report made unknown")
    assert made.values["runs"][0]["cases"][0]["series"][0]["low"] is None
    typed = dataclasses.replace(published, origin="typed", tool="typed")
    (runs_table,) = tables(
        next(one for one in document(reported(typed), made_unix_s=None, tool="t").sections if one.name == "runs")
    )
    assert ("by", "typed in: no measurement of ours") in runs_table.rows


def test_only_verdicts_of_a_fault_look_bad() -> None:
    verdicts = {*get_args(ServedVerdict), *get_args(Verdict), "generalization_gap", "loading_fault", "data_fault"}
    assert verdicts - set(TONES) == {
        "invalid", "simulated", "not_working", "suspicious_baseline", "slower", "mis_wired", "mis_read", "poor_fit",
        "nothing_fits", "declared_not_captured", "cannot_serve", "generalization_gap", "loading_fault", "data_fault",
    }  # fmt: skip


def test_a_run_without_anything_is_a_report_all_the_same() -> None:
    made = document(reported(one()), made_unix_s=0.0, tool="t")
    assert made.verdict == "no figure."
    assert "No run here has a figure." in words(tuple(block for section in made.sections for block in section.blocks))
