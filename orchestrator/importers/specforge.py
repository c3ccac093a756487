"""SpecForge: result files of `benchmarks/bench_eagle3.py`, and `specforge benchmark --output-json`.

The two call different numbers an accept length: the first pools completion tokens over verify steps, the second takes
the mean over requests; tokens over steps is made of its totals here. An accept length of exactly 1.0 of the first also
means that the server told none, so it is left out.
"""

from orchestrator.compare import definitions as ours
from orchestrator.errors import InvalidRunError
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Figure, Origin, Point, assembled
from orchestrator.importers.source import Row, Source, without_copies
from orchestrator.records.measurement import MeasurementSet

BENCH_KIND, COMMAND_KIND = "specforge-bench", "specforge"
_CONFIG = {"batch_size", "metrics"}


def fits_bench(row: Row) -> bool:
    """Whether it is a result file of bench_eagle3."""
    lists = [value for value in row.value.values() if isinstance(value, list) and value]
    return "model" in row.value and any(isinstance(item[0], dict) and set(item[0]) >= _CONFIG for item in lists)


def fits_command(row: Row) -> bool:
    """Whether it is what `specforge benchmark` writes."""
    return {"output_tokens", "latency_seconds", "throughput_tokens_per_second"} <= set(row.value)


def measured_bench(source: Source) -> MeasurementSet:
    """The measurements of a bench_eagle3 file. Raises InvalidRunError naming file and key."""
    points = []
    for row in source.rows:
        for dataset in (name for name in row.value if name != "model"):
            for config in row.rows(dataset):
                points += _repeats(config, dataset, row.word("model"))
    unknown = ("whether its first requests met a cold server: it makes no warm-up",)
    return assembled(source, Origin(kind=BENCH_KIND, tool="SpecForge bench_eagle3", unknown=unknown), points)


def _repeats(config: Row, dataset: str, model: str | None) -> list[Point]:
    steps = config.number_of("steps")
    side = None if steps is None else "spec" if steps else "plain"
    case = {"side": side, "concurrency": config.word("batch_size"), "dataset": dataset}
    hard: dict[str, str | None] = {"prompts": config.word("num_samples"), "temperature": "0", "max_new_tokens": "2048"}
    if side == "plain":
        hard |= dict.fromkeys(("draft", "algorithm", "num_steps", "eagle_topk", "num_draft_tokens"), "none")
    else:
        hard |= {"draft": model, "num_steps": config.word("steps"), "eagle_topk": config.word("topk"),
                 "num_draft_tokens": config.word("num_draft_tokens")}  # fmt: skip
    return [_bench_point(row, case, hard, is_plain=side == "plain") for row in config.rows("metrics")]


def _bench_point(row: Row, case: dict[str, str | None], hard: dict[str, str | None], *, is_plain: bool) -> Point:
    figures = _output(row, "output_throughput")
    warnings: tuple[str, ...] = ()
    accept = row.positive("accept_length")
    if accept == 1.0 and not is_plain:
        warnings = (f"{row.where}: an accept length of 1.0 also stands there where the server told none: left out",)
    elif accept is not None and not is_plain:
        figures.append(Figure(metric="accept_length_per_verify", unit="tokens",
                              definition=ours.ACCEPT_LENGTH_PER_VERIFY, value=accept))  # fmt: skip
    soft = {"accuracy": row.word("accuracy")}
    return Point(row=row, case=case, figures=figures, hard=hard, soft=soft, warnings=warnings)


def measured_command(source: Source) -> MeasurementSet:
    """The measurements of `specforge benchmark`. Raises InvalidRunError naming file and key."""
    rows, _ = without_copies(source.rows)
    return assembled(source, Origin(kind=COMMAND_KIND, tool="specforge benchmark"), [_command_point(r) for r in rows])


def _command_point(row: Row) -> Point:
    figures = _output(row, "throughput_tokens_per_second")
    macro, steps, tokens = (
        row.positive(key) for key in ("average_acceptance_length", "spec_verify_count", "output_tokens")
    )
    if macro is not None:
        figures.append(Figure(metric="accept_length_mean", unit="tokens", definition=words.MACRO, value=macro))
    if steps is not None and tokens is not None:
        if tokens < steps:
            raise InvalidRunError(f"{row.where}: expected a token a verify step at least, found: {tokens:g}/{steps:g}")
        figures.append(Figure(metric="accept_length_per_verify", unit="tokens",
                              definition=ours.ACCEPT_LENGTH_PER_VERIFY, value=tokens / steps))  # fmt: skip
    hard = {"prompts": row.word("samples")}
    return Point(row=row, case={"side": "spec" if steps else None, "dataset": row.word("dataset")}, figures=figures,
                 hard=hard, soft={"backend": row.word("backend")})  # fmt: skip


def _output(row: Row, key: str) -> list[Figure]:
    value = row.positive(key)
    if value is None:
        return []
    return [Figure(metric="output_throughput_tok_s", unit="tok/s", definition=words.SPECFORGE_OUTPUT, value=value)]
