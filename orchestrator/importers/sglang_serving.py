"""SGLang's `bench_serving` (`sglang.benchmark.serving`): a line a run, appended; 35 to 49 keys by version.

Its accept length is the running average of the server, so only the last line of a configuration tells it. Its
throughput divides by a time that ends after one more question to the server. How many requests it sent stands in its
default file name and in the arrays of `--output-details` alone. Not covered: its steady-state lines.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import TypedDict

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.identities import Claim, quotient
from orchestrator.importers.kind import Kind
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row
from orchestrator.importers.served_by import arguments_of, hard_of, start_of


class Identities(TypedDict):
    """What `Point` takes of them."""

    claims: tuple[Claim, ...]
    counted: Mapping[str, float | None]


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
_DEFAULT_NAME = re.compile(r"[a-z][a-z0-9-]*_(?:0[1-9]|1[0-2])[0-3]\d_(\d{1,7})_[\w.-]+\.jsonl")
_RETOKENISED = 0.02
"""From this share on, two counts of the same output are told to differ."""


def _fits(row: Row) -> bool:
    is_result = {"backend", "request_throughput", "median_ttft_ms"} <= set(row.value) and "model_id" not in row.value
    return is_result or "window_start" in row.value


def _passed_over(row: Row) -> str | None:
    is_window = _STEADY in row.value or "window_start" in row.value
    return "lines of its steady-state window were left out: they count other requests" if is_window else None


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


def identities(row: Row, table: Sequence[tuple[str, str, str, Sequence[str]]]) -> Identities:
    """That its throughputs are what it counted over its duration, both of them more than nothing."""
    names = ("duration", "completed", "total_output_tokens", "total_input_tokens")
    seconds, answered, output, prompt = (row.number_of(name) for name in names)
    both = None if output is None or prompt is None else output + prompt
    counts = {"output_throughput_tok_s": (output, "output tokens"), "request_throughput_req_s": (answered, "answers"),
              "total_throughput_tok_s": (both, "prompt and output tokens")}  # fmt: skip
    claims = [
        claim
        for metric, _, _, keys in table
        for key in keys
        for claim in quotient(key, row.positive(key), counts[metric], (seconds, "s"))
    ]
    return {"claims": tuple(claims), "counted": {"duration": seconds, "total_output_tokens": output}}


def load_of(row: Row) -> dict[str, str | None]:
    """The load: users at once, or the rate of requests."""
    if row.count("max_concurrency") == 0:
        row.fail("max_concurrency", "a whole number above 0")
    users = row.word("max_concurrency")
    return {"request_rate": row.word("request_rate")} if users is None else {"concurrency": users}


def paced(row: Row) -> dict[str, str | None]:
    """The rate of requests, where users at once are told as well and they did not all come at once."""
    rate = row.word("request_rate")
    return {"request_rate": rate} if row.word("max_concurrency") is not None and rate not in (None, "inf") else {}


def points(row: Row) -> tuple[Point]:
    """The one measurement of a line. Raises InvalidRunError naming file, line and key."""
    server = row.inner("server_info").value
    arguments = arguments_of(server)
    accept = row.positive("accept_length")
    side = None
    if accept is not None or arguments.get("speculative_algorithm") is not None:
        side = "spec"
    elif arguments:
        side = "plain"
    told = [*rates(row, _RATES), *summaries(row, _LATENCIES)]
    figures = [*told, *_of_requests(row, {item.metric for item in told}), *_cached(row)]
    if accept is not None:
        figures.append(
            Figure(metric="accept_length_pooled", unit="tokens", definition=words.SERVER_AVERAGE, value=accept,
                   is_last=True)
        )  # fmt: skip
    hard = hard_of(arguments) | paced(row) | {"dataset": row.word("dataset_name")}
    hard |= {name: row.word(name) for name in _WORKLOAD if row.word(name) is not None}
    if arguments.get("disable_radix_cache") == "true":
        hard["cache_policy"] = "prefix cache off"
    asked = _asked(row)
    return (
        Point(place=row.place, case={"side": side, **load_of(row)}, figures=figures,
              hard={**hard, "prompts": None if asked is None else str(asked)},
              soft={"sglang_version": arguments.get("version"), "backend": row.word("backend")},
              counts={name: row.word(f"total_{name}") for name in ("input_tokens", "output_tokens")},
              arguments=arguments, start=start_of(server), asked=asked, **identities(row, _RATES),
              answered=_answered(row), warnings=_counted_twice(row)),
    )  # fmt: skip


def _asked(row: Row) -> int | None:
    """How many requests were sent: an array has one entry each, or the name that the tool gives its file tells it."""
    lengths = row.numbers("output_lens")
    if lengths is not None:
        return len(lengths)
    named = _DEFAULT_NAME.fullmatch(row.file)
    return None if named is None else int(named[1])


def _answered(row: Row) -> int | None:
    """How many requests were answered: what it counts, and no more than have a first token and no error.

    An error in the stream of an answer is none to it: that request counts, with the length that was asked for.
    """
    completed, times = row.count("completed"), _first_tokens(row)
    if times is None:
        return completed
    return len(times) if completed is None else min(completed, len(times))


def _first_tokens(row: Row) -> list[float] | None:
    """Seconds to the first token of the requests that were answered; None where it does not tell request by request."""
    times, errors = row.numbers("ttfts"), row.value.get("errors")
    if times is None or not isinstance(errors, list) or len(errors) != len(times):
        return None
    return [time for time, error in zip(times, errors, strict=True) if not error and time > 0]


def _of_requests(row: Row, told: set[str]) -> list[Figure]:
    """Summaries of the time to the first token that this version does not tell, from the times of its requests."""
    answered = _first_tokens(row)
    if answered is None or len(answered) < 2:
        return []
    cuts = statistics.quantiles(answered, n=100, method="inclusive")  # as numpy's percentiles, which the tool takes
    return [
        Figure(metric=f"ttft_s_{name}", unit="s", definition=ours.TTFT.format(summary=words.SUMMARIES[name]),
               value=cuts[int(name[1:]) - 1])
        for name in ("p90", "p95") if f"ttft_s_{name}" not in told
    ]  # fmt: skip


def _cached(row: Row) -> list[Figure]:
    report = row.inner("cache_report")
    prompt, cached = report.positive("total_prompt_tokens"), report.number_of("total_cached_tokens")
    if prompt is None or cached is None:
        return []
    if not 0 <= cached <= prompt:
        report.fail("total_cached_tokens", f"0 to {prompt:g}")
    return [Figure(metric="cached_share", unit="share", definition=ours.CACHED_SHARE, value=cached / prompt)]


def _counted_twice(row: Row) -> tuple[str, ...]:
    """Where its output tokens are not those of its requests, or not those of its texts."""
    total, again = row.positive("total_output_tokens"), row.positive("total_output_tokens_retokenized")
    lengths = row.numbers("output_lens")
    found: tuple[str, ...] = ()
    if total is not None and lengths is not None and sum(lengths) != total:
        found += (f"its requests have {sum(lengths):g} output tokens, its total says {total:g} ({row.where})",)
    if total is not None and again is not None and abs(again / total - 1) > _RETOKENISED:
        found += (
            f"its texts retokenised have {again:g} tokens, its throughput counts {total:g}; requests "
            f"whose answer was an error would be among them ({row.where})",
        )
    return found


KIND = Kind(
    name="sglang-serving",
    words="sglang bench_serving",
    fits=_fits,
    points=points,
    unknown=("which requests were warm-up, and which seed was used",),
    passed_over=_passed_over,
)
