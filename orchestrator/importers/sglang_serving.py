"""SGLang's `bench_serving` (`sglang.benchmark.serving`): a line a run, appended; 35 to 49 keys by version.

Its accept length is the running average of the server, so only the last line of a configuration tells it. Its
throughput divides by a time that ends after one more question to the server. Not covered: its steady-state lines.
"""

from collections.abc import Sequence

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Figure, Origin, Point, arguments_of, assembled, hard_of
from orchestrator.importers.source import Row, Source, without_copies
from orchestrator.records.measurement import MeasurementSet

KIND = "sglang-serving"
_STEADY = "concurrency_threshold"
_RATES = (
    ("output_throughput_tok_s", "tok/s", words.SGLANG_OUTPUT, ("output_throughput",)),
    ("total_throughput_tok_s", "tok/s", words.SGLANG_TOTAL, ("total_throughput", "total_token_throughput")),
    ("request_throughput_req_s", "req/s", words.SGLANG_REQUESTS, ("request_throughput",)),
)
_LATENCIES = (
    ("ttft_s", ours.TTFT, "ttft_ms"),
    ("tpot_s", words.SGLANG_TPOT, "tpot_ms"),
    ("itl_s", words.SGLANG_ITL, "itl_ms"),
    ("e2e_s", ours.E2E, "e2e_latency_ms"),
)
_WORKLOAD = ("random_input_len", "random_output_len", "random_range_ratio", "sharegpt_output_len", "tag")


def fits(row: Row) -> bool:
    """Whether a row is one of its results."""
    return {"backend", "request_throughput", "median_ttft_ms"} <= set(row.value) and "model_id" not in row.value


def measured(source: Source) -> MeasurementSet:
    """The measurements of a file. Raises InvalidRunError naming file, line and key."""
    rows, copies = without_copies([row for row in source.rows if _STEADY not in row.value])
    unknown: tuple[str, ...] = ("which requests were warm-up, and which seed was used",)
    if copies:
        unknown += (f"{copies} lines stand there twice; a copy is no repeat and was left out",)
    if len(rows) + copies < len(source.rows):
        unknown += ("lines of its steady-state window were left out: they count other requests",)
    return assembled(source, Origin(kind=KIND, tool="sglang bench_serving", unknown=unknown), [_point(r) for r in rows])


def summaries(row: Row, latencies: Sequence[tuple[str, str, str]]) -> list[Figure]:
    """Latencies in seconds from keys such as `median_ttft_ms`."""
    found = []
    for metric, definition, key in latencies:
        for suffix, summary in words.SUFFIXES.items():
            value = row.positive(f"{summary}_{key}")
            if value is not None:
                told = definition.format(summary=words.SUMMARIES[summary])
                found.append(Figure(metric=f"{metric}{suffix}", unit="s", definition=told, value=value / 1000))
    return found


def rates(row: Row, table: Sequence[tuple[str, str, str, Sequence[str]]]) -> list[Figure]:
    """Throughputs, each under the first of its keys that the row has."""
    found = []
    for metric, unit, definition, keys in table:
        value = next((number for key in keys if (number := row.positive(key)) is not None), None)
        if value is not None:
            found.append(Figure(metric=metric, unit=unit, definition=definition, value=value))
    return found


def load_of(row: Row) -> dict[str, str | None]:
    """The load: users at once, or the rate of requests."""
    users = row.word("max_concurrency")
    if users is not None:
        return {"concurrency": users}
    rate = row.word("request_rate")
    return {"request_rate": rate}


def failures(row: Row) -> tuple[str, ...]:
    """Why a row is no measurement: failed requests, or none that was answered."""
    completed, errors = row.number_of("completed"), row.value.get("errors")
    failed = sum(1 for item in errors if item) if isinstance(errors, list) else (row.number_of("failed") or 0)
    found: tuple[str, ...] = ()
    if failed:
        found += (f"{int(failed)} requests failed ({row.where})",)
    if completed == 0:
        found += (f"no request was answered ({row.where})",)
    return found


def _point(row: Row) -> Point:
    arguments = arguments_of(row.inner("server_info").value)
    accept = row.positive("accept_length")
    side = None
    if accept is not None or arguments.get("speculative_algorithm") is not None:
        side = "spec"
    elif arguments:
        side = "plain"
    figures = [*rates(row, _RATES), *summaries(row, _LATENCIES)]
    if accept is not None:
        figures.append(
            Figure(metric="accept_length_pooled", unit="tokens", definition=words.SERVER_AVERAGE, value=accept,
                   is_last=True)
        )  # fmt: skip
    hard = hard_of(arguments) | {"dataset": row.word("dataset_name")}
    hard |= {name: row.word(name) for name in _WORKLOAD if row.word(name) is not None}
    if arguments.get("disable_radix_cache") == "true":
        hard["cache_policy"] = "prefix cache off"
    if "concurrency" in (load := load_of(row)) and row.word("request_rate") not in (None, "inf"):
        hard["request_rate"] = row.word("request_rate")
    soft = {"sglang_version": arguments.get("version"), "backend": row.word("backend"),
            "answered_requests": row.word("completed"), "prompt_tokens": row.word("total_input_tokens"),
            "output_tokens": row.word("total_output_tokens")}  # fmt: skip
    return Point(row=row, case={"side": side, **load}, figures=figures, hard=hard, soft=soft, arguments=arguments,
                 invalid=failures(row))  # fmt: skip
