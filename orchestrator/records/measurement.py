"""What can be compared of a run, whoever made it: raw numbers by metric, and under which circumstances.

Own runs, other tools' result files, promoted baselines and published numbers are all brought into this one form, so
that one set of statistics serves them all. Raw numbers are kept at the level at which they are independent: a prompt
for acceptance (both sides may answer the same prompts), a run or repeat for throughput and latency (requests of a run
share batches). Method: `orchestrator/compare/statistics`.
"""

from typing import Literal

from remote_payload.schema import SCHEMA_VERSION
from remote_payload.schema.record import Record, require, require_finite

Level = Literal["prompt", "run", "summary"]
Origin = Literal["own", "imported", "typed", "published"]


class Fact(Record):
    """One circumstance, in words."""

    name: str
    """E.g. `target`, `concurrency`, `sglang_version`; one vocabulary, in `orchestrator/compare/fingerprint.py`."""
    value: str | None
    """None = the source does not tell."""


class Series(Record):
    """One metric's raw numbers."""

    metric: str
    """As the catalogue names it (`orchestrator/compare/metrics.py`), e.g. `output_throughput_tok_s`."""
    unit: str
    """`tok/s`, `req/s`, `s`, `share`, `tokens`, `ratio`."""
    definition: str
    """What was counted, in words; series of other definitions are never compared."""
    level: Level
    """`prompt`: y (over x) a prompt; `run`: y a run or repeat; `summary`: one number without its samples."""
    keys: tuple[str, ...] = ()
    """Prompt level: what makes two prompts the same; run level: the run and repeat. One for each y; each once."""
    clusters: tuple[str, ...] = ()
    """Prompt level: what each key belongs to where several prompts do together (a conversation, the same text asked
    again); empty = each its own. Run level: the server's start of each key; empty = it is not told, and then all
    repeats of one run count as one start."""
    y: tuple[float, ...]
    x: tuple[float, ...] = ()
    """Prompt level: the figure is sum(y) / sum(x), e.g. tokens over verify steps; empty = y are scalars."""
    n: int | None = None
    """Summary level: how many samples stood behind it; None = the source does not tell."""

    def __post_init__(self) -> None:
        for value in (*self.y, *self.x):
            require_finite(**{self.metric or "value": value})
        require(bool(self.y), f"`{self.metric}`: a series must hold a number")
        require(not self.x or len(self.x) == len(self.y), f"`{self.metric}`: x and y must be as many")
        require(not self.clusters or len(self.clusters) == len(self.y), f"`{self.metric}`: a cluster for each y")
        if self.level == "summary":
            require(len(self.y) == 1 and not self.x, f"`{self.metric}`: a summary is one number")
        else:
            require(len(self.keys) == len(self.y), f"`{self.metric}`: a key for each y")
            require(len(set(self.keys)) == len(self.keys), f"`{self.metric}`: each key once")


class Result(Record):
    """One result of another tool's file, by its content: a file that has grown holds its earlier results again."""

    key: str
    """As the series of its measurement name it: the run and the repeat."""
    sha256: str
    """Of its content, however it was written: keys in order, without white space."""


class Measurement(Record):
    """One case of a run: a load on one side of a served benchmark, or a drafter test."""

    case: tuple[Fact, ...]
    """What tells it from the other cases of its run: `side`, `concurrency`, `request_rate`, `dataset`."""
    series: tuple[Series, ...]
    hard: tuple[Fact, ...] = ()
    """Circumstances that must be alike for a comparison to mean anything."""
    soft: tuple[Fact, ...] = ()
    """Circumstances that should be alike; differences are told."""
    arguments: tuple[Fact, ...] = ()
    """What the server really ran with."""
    invalid: tuple[str, ...] = ()
    """Why this is no measurement: failed requests, a warm prefix cache, ...; a sentence each."""
    warnings: tuple[str, ...] = ()
    histogram: tuple[int, ...] = ()
    """Verify steps by how many drafts they accepted, pooled; empty = unknown."""
    results: tuple[Result, ...] = ()
    """Imported: what each repeat was read from, so that what two runs share counts once; empty = not told."""

    def __post_init__(self) -> None:
        names = [series.metric for series in self.series]
        require(len(set(names)) == len(names), "each metric once in a measurement")


class MeasurementSet(Record):
    """`measurements.json`: everything of one run, or of one result file, that can be compared."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    origin: Origin
    tool: str
    """Who measured, with its version where that is known: `eagle3-remote 0.4.0`, `sglang bench_serving`, ..."""
    job_kind: str
    """`standalone`, `bench`, or `imported`."""
    label: str = ""
    host: str | None = None
    created_unix_s: float | None = None
    """When it was measured; None = the source does not tell."""
    source: str = ""
    """Where it came from: a file's name, a model card's address."""
    source_sha256: str | None = None
    measurements: tuple[Measurement, ...]
    unknown: tuple[str, ...] = ()
    """What the source does not tell and a comparison would need; a sentence each."""

    def __post_init__(self) -> None:
        require_finite(created_unix_s=self.created_unix_s)
        cases = [tuple((fact.name, fact.value) for fact in one.case) for one in self.measurements]
        require(len(set(cases)) == len(cases), "each case once in a measurement set")
