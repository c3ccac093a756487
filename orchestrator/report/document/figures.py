"""One metric of one case of one run as a figure: value, interval, n, and how that reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.compare.metrics import metric_of
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Fact, Measurement, Series
from orchestrator.report.diff_words import Names
from orchestrator.report.document.subject import Subject
from orchestrator.report.series_figure import count_of, figure_of, what_n_counts
from orchestrator.report.words import UNKNOWN

TITLES = {
    "output_throughput_tok_s": "Output throughput",
    "accept_length_pooled": "Accept length (pooled)",
    "accept_length_per_verify": "Tokens per verify step",
    "accept_length_walk": "Accept length (walk)",
    "accept_length_mean": "Accept length (mean over positions)",
    "speedup": "Speed-up",
    "request_throughput_req_s": "Request throughput",
    "total_throughput_tok_s": "Total throughput",
    "user_tok_s": "Speed for one user",
    "tpot_s": "TPOT",
    "itl_s": "Inter-token latency",
    "ttft_s": "TTFT",
    "e2e_s": "End-to-end latency",
    "first_step_accuracy": "Step-1 accuracy",
    "accept_rate": "Accept rate",
    "cached_share": "Cached share of the prompts",
    "identical_outputs": "Identical outputs",
}
"""Unknown names stand as they are."""
LONGEST_NAME = 120
ACCEPT_LENGTHS = ("accept_length_pooled", "accept_length_walk", "accept_length_per_verify", "accept_length_mean")
"""What may be called the accept length, best first."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One metric of one case."""

    series: Series
    case: tuple[Fact, ...]
    estimate: Estimate
    n: int | None
    """Samples behind it; None = the source does not tell."""
    invalid: bool

    @property
    def words(self) -> str:
        """e.g. `56.80 [55.91, 57.70] tok/s, n=3 repeats`."""
        return f"{self.short}, {self.n_words}" if self.estimate.value is not None else UNKNOWN

    @property
    def short(self) -> str:
        """The same without n."""
        return estimate_words(self.estimate, self.series.unit)

    @property
    def n_words(self) -> str:
        """e.g. `n=3 repeats`."""
        if self.n is None:
            return "n unknown"
        is_told = self.series.level == "summary"
        return f"n={self.n}, told as one number" if is_told else f"n={what_n_counts(self.series, self.n)}"


def estimate_words(found: Estimate, unit: str) -> str:
    """e.g. `56.80 [55.91, 57.70] tok/s`; seconds in milliseconds, shares in percent."""
    scale, told = scale_of(unit)
    if found.value is None:
        return UNKNOWN
    tail = "" if told in ("", "tokens") else f" {told}"
    value = rounded(found.value * scale)
    if found.low is None or found.high is None:
        return f"{value}{tail}"
    return f"{value} [{rounded(found.low * scale)}, {rounded(found.high * scale)}]{tail}"


def figure(series: Series, measurement: Measurement) -> Figure:
    """The series' figure with its 95 % interval; none where samples are too few to have one."""
    return Figure(
        series=series,
        case=measurement.case,
        estimate=figure_of(series),
        n=count_of(series),
        invalid=bool(measurement.invalid),
    )


def figures(subject: Subject) -> Iterator[Figure]:
    """Every figure of a run."""
    for measurement in subject.measured.measurements:
        for series in measurement.series:
            yield figure(series, measurement)


def series_of(measurement: Measurement, names: Sequence[str]) -> Series | None:
    """The first of these metrics that the measurement has, whichever reading of a drafter it is of."""
    by_name = {series.metric: series for series in measurement.series}
    wanted = (f"{role}{name}" for name in names for role in ("", "declared.", "best."))
    return next((by_name[name] for name in wanted if name in by_name), None)


def title_of(metric: str) -> str:
    """A metric's name for people; one that nobody knows stands as it is."""
    role, dot, bare = metric.partition(".") if metric.startswith(("declared.", "best.")) else ("", "", metric)
    told = TITLES.get(bare)
    if told is None and metric_of(metric) is not None:
        told = bare.replace("_", " ")
        if bare.startswith("step"):
            told = f"Step {bare.removeprefix('step').removesuffix('_acceptance')} after hit"
    if told is None:
        return metric
    return f"{told}, {'as declared' if role == 'declared' else 'best reading'}" if dot else told


def case_words(case: tuple[Fact, ...]) -> str:
    """e.g. `spec, 4 users`."""
    words = []
    for fact in case:
        if fact.name == "concurrency" and fact.value is not None:
            words.append(f"{fact.value} user{'' if fact.value == '1' else 's'}")
        elif fact.name == "request_rate" and fact.value is not None:
            words.append(f"{fact.value} requests/s")
        elif fact.name == "side" and fact.value is not None:
            words.append(fact.value)
        elif fact.value is not None or fact.name not in ("concurrency", "request_rate"):
            words.append(f"{fact.name} {UNKNOWN if fact.value is None else fact.value}")
    return named(", ".join(words)) or "no load told"


READABLE = Names(metric=title_of, load=case_words)
"""How a document calls metrics and loads."""


def named(text: str) -> str:
    """A name that somebody else chose, as far as a sentence or a legend has room for it."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."


def fact_of(facts: tuple[Fact, ...], name: str) -> str | None:
    """A circumstance's value; None where it is unknown or not told."""
    return next((fact.value for fact in facts if fact.name == name), None)


def number_of(facts: tuple[Fact, ...], name: str) -> float | None:
    """The same where it is a finite number."""
    try:
        value = float(fact_of(facts, name) or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def scale_of(unit: str) -> tuple[float, str]:
    """What a unit is shown in: seconds as milliseconds, shares as percent, ratios as `x`."""
    return {"s": (1000.0, "ms"), "share": (100.0, "%"), "ratio": (1.0, "x")}.get(unit, (1.0, unit))


def rounded(value: float) -> str:
    """Enough digits to tell neighbours apart, no more."""
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 100 else f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:.3g}"
