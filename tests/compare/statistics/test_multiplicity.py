import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.statistics import adjust, benjamini_hochberg, compare_series, holm
from tests.support.made_series import LENGTH, THROUGHPUT, number, prompts, runs

A = (90.1, 89.6, 90.4, 90.0, 89.9)
SLIGHTLY = (91.5, 90.4, 91.9, 91.2, 90.3)  # Welch p = 0.013


@given(ps=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_agree_with_scipy_and_with_the_definition(ps: list[float]) -> None:
    assert benjamini_hochberg(ps) == pytest.approx(scipy.stats.false_discovery_control(ps).tolist())
    rejected = set()
    for rank, index in enumerate(np.argsort(ps, kind="stable")):  # Holm, step by step at 5 %
        if ps[index] > 0.05 / (len(ps) - rank):
            break
        rejected.add(int(index))
    adjusted = holm(ps)
    assert {index for index, p in enumerate(adjusted) if p < 0.05 * (1 - 1e-12)} <= rejected
    assert rejected <= {index for index, p in enumerate(adjusted) if p <= 0.05 * (1 + 1e-12)}
    assert all(p <= q for p, q in zip(ps, adjusted, strict=True))


def test_nothing_to_correct() -> None:
    assert (holm([]), benjamini_hochberg([]), adjust([], "Holm")) == ([], [], ())


def test_a_change_that_does_not_outlive_the_correction_becomes_inconclusive() -> None:
    slight = compare_series(THROUGHPUT, runs(*SLIGHTLY), runs(*A), margin=0.001)
    assert slight.verdict == "improved"
    nothing = compare_series(THROUGHPUT, runs(*A), runs(*A), margin=0.02)
    first, *others = adjust([slight, nothing, nothing, nothing, nothing], "Holm")
    assert slight.tests[0].p is not None
    assert first.p_adjusted == pytest.approx(5 * slight.tests[0].p)
    assert (first.verdict, first.correction) == ("inconclusive", "Holm")
    assert first.note == "improved by itself, not after Holm's correction over 5"
    assert first.change == slight.change
    assert [one.verdict for one in others] == ["equivalent"] * 4
    assert adjust([slight, nothing], "Holm")[0].verdict == "improved"


def test_what_could_be_detected_is_told_at_the_level_that_made_the_verdict() -> None:
    """+0.9 % that does not outlive the correction is not beside "0.7 % can be detected"."""
    slight = compare_series(THROUGHPUT, runs(*SLIGHTLY), runs(*A), margin=0.001)
    nothing = compare_series(THROUGHPUT, runs(*A), runs(*A), margin=0.02)
    first, *_ = adjust([slight, nothing, nothing, nothing, nothing], "Holm")
    assert slight.spread is not None
    assert slight.detectable is not None
    assert first.detectable is not None
    level = scipy.special.stdtrit(slight.spread.freedom, [1 - 0.05 / 5 / 2, 0.8]).sum()
    assert first.detectable == pytest.approx(math.expm1(level * slight.spread.standard_error))
    assert first.verdict == "inconclusive"
    assert slight.detectable < first.detectable
    assert (slight.corrected_over, first.corrected_over) == (1, 5)
    assert slight.needed is not None
    assert first.needed is not None
    assert first.needed > slight.needed
    assert first.change.value is not None
    assert first.change.value < first.detectable


def test_what_cannot_be_tested_does_not_count() -> None:
    slight = compare_series(THROUGHPUT, runs(*SLIGHTLY), runs(*A))
    single = compare_series(THROUGHPUT, runs(46.7), runs(*A))
    refused = compare_series(THROUGHPUT, runs(*A), replace(number(90), unit="req/s"))
    few = compare_series(LENGTH, prompts([5, 6], [2, 3]), prompts([5, 6], [3, 3]))
    equal = compare_series(THROUGHPUT, runs(*[94] * 5), runs(*[90] * 5))
    assert (equal.verdict, equal.tests[0].name) == ("inconclusive", "Mann-Whitney")
    adjusted = adjust([single, refused, slight, few, equal], "Benjamini-Hochberg")
    assert [one.p_adjusted for one in adjusted] == [None, None, slight.tests[0].p, None, None]
    assert [one.correction for one in adjusted] == ["", "", "Benjamini-Hochberg", "", ""]
    assert [one.verdict for one in adjusted] == [one.verdict for one in (single, refused, slight, few, equal)]
