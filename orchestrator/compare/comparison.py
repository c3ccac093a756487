"""The words of a comparison: what two sets of measurements amount to, metric by metric; filled by its neighbours.

Verdicts, of the change oriented so that more is better, its 95 % interval [lo, hi] and a practical margin m:
lo > m is improved, hi < -m regressed, [lo, hi] within (-m, m) equivalent, 0 outside [lo, hi] a small change, anything
else inconclusive, with the change that could have been seen and the samples that would be needed. A metric of which
neither more nor less is better is `changed` where it would be improved or regressed. Without an interval it is a single
run (or, with too few prompts or runs, inconclusive). A run against itself is the same run. Never "no difference".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.metrics import Metric
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet

Verdict = Literal[
    "improved",
    "regressed",
    "equivalent",
    "small change",
    "changed",
    "inconclusive",
    "single run",
    "the same run",
    "not comparable",
    "invalid",
]
TWO_NUMBERS = "two numbers without samples"
"""The method where nobody's samples are there to be counted."""
SideName = Literal["ours", "theirs"]
EXIT_CODES: Mapping[Verdict, int] = {"regressed": 1, "not comparable": 4, "invalid": 5}
"""Every other verdict exits with 0; `inconclusive` and `single run` with 3 where `--strict` asks for certainty."""


@dataclass(frozen=True, kw_only=True)
class Test:
    """One significance test; p None = it could not be made, `note` says why."""

    name: str
    p: float | None
    statistic: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What is reckoned with where it is asked which change so many samples can detect; on the scale of the test."""

    standard_error: float
    freedom: float
    variance: float
    """Of one sample or pair; the sum over both sides where they are not paired."""
    sides: Literal[1, 2]
    least: int
    """Samples below which nothing is judged, whatever their spread."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One metric of one case, both sides. `change` is ours against theirs as it is, not turned."""

    metric: Metric
    ours: Estimate
    theirs: Estimate
    change: Estimate
    """Ratio - 1, or difference for shares, with its 95 % interval."""
    bootstrap: Estimate | None = None
    """The same change with a percentile interval of resampled prompts, where that was asked for."""
    verdict: Verdict
    margin: float
    level: Literal["prompt", "run", "summary"]
    n_ours: int
    n_theirs: int
    pairs: int | None = None
    """Prompts (or conversations) both sides answered; None = not paired."""
    method: str = ""
    """How the interval was made, e.g. `paired by prompt, log ratio, Student's t`."""
    tests: tuple[Test, ...] = ()
    """The first is the primary one."""
    p_adjusted: float | None = None
    """The primary test's p after the correction over what was compared at once."""
    correction: Literal["", "Holm", "Benjamini-Hochberg"] = ""
    equivalence_p: float | None = None
    """Two one-sided tests against the margin."""
    detectable: float | None = None
    """Smallest change that this many samples would show with 80 % power, at the strictest level of the correction."""
    needed: int | None = None
    """Samples a side (pairs, where paired) that would show a change of the margin with 80 % power."""
    spread: Spread | None = None
    """What `detectable` and `needed` are reckoned from."""
    corrected_over: int = 1
    """How many comparisons were corrected for each other, this one among them."""
    alike: bool = False
    """Whether all samples but a few are equal: then their spread tells nothing of others."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One circumstance that is not alike; None = unknown on that side."""

    name: str
    ours: str | None
    theirs: str | None


@dataclass(frozen=True, kw_only=True)
class CaseComparison:
    """One case on both sides."""

    case: tuple[Fact, ...]
    ours: Measurement
    theirs: Measurement
    hard: tuple[Difference, ...]
    """Reasons why it is not comparable."""
    soft: tuple[Difference, ...]
    arguments: tuple[Difference, ...]
    varied: tuple[Difference, ...]
    """The factors under test (`--vary`)."""
    unknown: tuple[str, ...]
    """Hard circumstances that a side does not tell: a verdict takes them to be alike."""
    silent: tuple[SideName, ...] = ()
    """Sides that tell no hard circumstance at all, but perhaps the tool: there everything is taken to be alike."""
    speeds: str = ""
    """Why its speeds are not compared although the load is: unlike work; empty = they are."""
    comparisons: tuple[Comparison, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class SetComparison:
    """Two sets of runs."""

    ours: tuple[MeasurementSet, ...]
    theirs: tuple[MeasurementSet, ...]
    ours_label: str
    theirs_label: str
    cases: tuple[CaseComparison, ...]
    only_ours: tuple[tuple[Fact, ...], ...]
    """Cases without a partner."""
    only_theirs: tuple[tuple[Fact, ...], ...]
    verdict: Verdict
    notes: tuple[str, ...] = ()
