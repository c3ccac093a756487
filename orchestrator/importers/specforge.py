"""SpecForge: result files of `benchmarks/bench_eagle3.py`, and `specforge benchmark --output-json`.

The two call different numbers an accept length: the first pools completion tokens over verify steps, the second takes
the mean over requests; tokens over steps is made of its totals here. An accept length of exactly 1.0 of the first also
means that the server told none, so it is left out. How many tokens it asked for goes by data set and version (512 to
2048 in 0.2.0), so it is not known.
"""

import datetime
from collections.abc import Sequence

from orchestrator.compare import definitions as ours
from orchestrator.errors import InvalidRunError
from orchestrator.importers import definitions as words
from orchestrator.importers.identities import quotient
from orchestrator.importers.kind import Kind, stamp_in
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row

_CONFIG = {"batch_size", "metrics"}


def _fits_bench(row: Row) -> bool:
    lists = [value for value in row.value.values() if isinstance(value, list) and value]
    return "model" in row.value and any(isinstance(item[0], dict) and set(item[0]) >= _CONFIG for item in lists)


def _fits_command(row: Row) -> bool:
    return {"output_tokens", "latency_seconds", "throughput_tokens_per_second"} <= set(row.value)


def _named(row: Row) -> datetime.datetime | None:
    return stamp_in(row.file)


def _bench_points(row: Row) -> Sequence[Point]:
    model = row.word("model")
    datasets = [name for name in row.value if name != "model"]
    return [point for dataset in datasets for config in row.rows(dataset) for point in _repeats(config, dataset, model)]


def _repeats(config: Row, dataset: str, model: str | None) -> list[Point]:
    steps = config.count("steps")
    side = None if steps is None else "spec" if steps else "plain"
    case = {"side": side, "concurrency": config.word("batch_size"), "dataset": dataset}
    hard: dict[str, str | None] = {"prompts": config.word("num_samples"), "temperature": "0"}
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
    counts = {name: row.word(name) for name in ("accuracy", "num_questions", "num_valid_predictions")}
    asked = {"num_questions": row.count("num_questions"), "latency": row.number_of("latency")}
    return Point(
        place=row.place, case=case, figures=figures, hard=hard, counts=counts, warnings=warnings, counted=asked
    )


def _command_points(row: Row) -> tuple[Point]:
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
    seconds = row.number_of("latency_seconds")
    claims = quotient("throughput_tokens_per_second", row.positive("throughput_tokens_per_second"),
                      (row.number_of("output_tokens"), "output tokens"), (seconds, "s"))  # fmt: skip
    counted = {"samples": row.count("samples"), "latency_seconds": seconds, "output_tokens": row.count("output_tokens")}
    if macro is not None and macro != 1.0:
        counted["spec_verify_count"] = row.count("spec_verify_count")
    return (
        Point(place=row.place, case={"side": "spec" if steps else None, "dataset": row.word("dataset")},
              figures=figures, hard={"prompts": row.word("samples")}, soft={"backend": row.word("backend")},
              counts={"output_tokens": row.word("output_tokens")}, counted=counted, claims=claims),
    )  # fmt: skip


def _output(row: Row, key: str) -> list[Figure]:
    value = row.positive(key)
    if value is None:
        return []
    return [Figure(metric="output_throughput_tok_s", unit="tok/s", definition=words.SPECFORGE_OUTPUT, value=value)]


BENCH_KIND = Kind(
    name="specforge-bench",
    words="SpecForge bench_eagle3",
    fits=_fits_bench,
    points=_bench_points,
    unknown=("whether its first requests met a cold server: it makes no warm-up",),
    when=_named,
)
COMMAND_KIND = Kind(
    name="specforge",
    words="specforge benchmark",
    fits=_fits_command,
    points=_command_points,
    unknown=("how many users were there at once", "how often a prompt was asked again: it takes a data set in turns"),
    when=_named,
)
