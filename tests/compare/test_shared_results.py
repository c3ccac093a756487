"""Results that several imported runs hold: each counts once, with the run that holds most."""

import dataclasses

from orchestrator.compare.pooling import Operand, pooled
from orchestrator.compare.shared_results import each_result_once, on_both_sides, shared_within
from orchestrator.records.measurement import MeasurementSet, Result
from tests.support.made_sets import measurement, measurement_set, throughputs


def holding(run_id: str, **values: float) -> MeasurementSet:
    """A run whose repeats were read from results of these names."""
    series = throughputs(*values.values(), run_id=run_id)
    results = tuple(Result(key=key, sha256=name) for key, name in zip(series.keys, values, strict=True))
    return measurement_set(dataclasses.replace(measurement(series), results=results), run_id=run_id)


A, AB, BC = holding("run-a", a=1.0), holding("run-ab", a=1.0, b=2.0), holding("run-bc", b=2.0, c=3.0)


def test_a_run_whose_results_all_stand_in_a_longer_one_is_none() -> None:
    kept = each_result_once((A, AB))
    assert [len(one.measurements) for one in kept] == [0, 1]
    assert kept[1] == AB
    (one,) = pooled(Operand(label="set", sets=(A, AB)), lambda _: True).values()
    assert one.series[0].y == (1.0, 2.0)  # still one run, not the mean of two
    assert shared_within((A, AB)) == ("1 result of run-a stands in run-ab as well: counted once",)


def test_what_two_runs_share_in_part_counts_with_the_first() -> None:
    first, second = each_result_once((AB, BC))
    assert first == AB
    (left,) = second.measurements
    assert (left.series[0].y, [result.sha256 for result in left.results]) == ((3.0,), ["c"])
    assert left.series[0].keys == (BC.measurements[0].series[0].keys[1],)


def test_runs_without_a_common_result_stay_as_they_are() -> None:
    untold = measurement_set(measurement(throughputs(1.0, run_id="x")), run_id="x")
    sets = (A, BC, untold, dataclasses.replace(untold, run_id="y"))
    assert each_result_once(sets) == sets
    assert shared_within(sets) == on_both_sides((A,), (BC, untold)) == ()
    assert on_both_sides((A,), (A,)) == ()  # that is the same run, and said elsewhere
    (told,) = on_both_sides((A,), (AB,))
    assert told.startswith(
        "1 result of run-ab stands in run-a, on the other side, as well: the sides are not independent"
    )
