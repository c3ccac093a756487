"""NVIDIA's AIPerf: `profile_export_aiperf.json`, an object for each metric with its unit and its percentiles.

Its output tokens are those that its own tokenizer counts, unless it was told to take the server's. Acceptance is there
where the server tells it of each request. Not covered: its aggregates over several runs, time slices, and telemetry.
"""

import datetime
from collections.abc import Mapping
from typing import Any

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.depths import DEEPEST, by_depth
from orchestrator.importers.identities import Claim, quotient
from orchestrator.importers.kind import Kind
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row, in_words

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_RATES = (
    ("output_throughput_tok_s", "tok/s", words.AIPERF_OUTPUT, "output_token_throughput"),
    ("total_throughput_tok_s", "tok/s", words.AIPERF_TOTAL, "total_token_throughput"),
    ("request_throughput_req_s", "req/s", words.AIPERF_REQUESTS, "request_throughput"),
)
_SUMMARISED = (
    ("ttft_s", ours.TTFT, "time_to_first_token"),
    ("tpot_s", words.AIPERF_TPOT, "inter_token_latency"),
    ("itl_s", words.AIPERF_ITL, "inter_chunk_latency"),
    ("e2e_s", ours.E2E, "request_latency"),
    ("user_tok_s", words.AIPERF_USER, "output_token_throughput_per_user"),
)
_KEYS = {"mean": "avg", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_COUNTED = ("total_osl", "benchmark_duration")
_RETOKENISED = 0.02
"""From this share on, two counts of the same output are told to differ."""


def _fits(row: Row) -> bool:
    return "aiperf_version" in row.value and "input_config" in row.value


def _when(row: Row) -> datetime.datetime | None:
    text = row.word("start_time")
    try:
        return None if text is None else datetime.datetime.fromisoformat(text)
    except ValueError:
        row.fail("start_time", "a moment such as 2026-01-31T23:59:59")


def _points(row: Row) -> tuple[Point]:
    config = row.inner("input_config")
    steps = row.inner("total_spec_decode_steps").positive("avg")
    asked, answered = _requests(row)
    found = [*_rates(row), *_summaries(row), *_acceptance(row)]
    case = {"side": "spec" if steps else None, **_load(config)}
    return (
        Point(place=row.place, case=case, figures=found, hard=_hard(config),
              soft={"aiperf_version": row.word("aiperf_version"), "endpoint": config.inner("endpoint").word("type")},
              counts={f"{name}_tokens": row.inner(key).word("avg")
                      for name, key in (("input", "total_isl"), ("output", "total_osl"))},
              asked=asked, answered=answered, invalid=_invalid(row), warnings=(*_schema(row), *_counted_twice(row)),
              claims=_claims(row), counted={name: row.inner(name).number_of("avg") for name in _COUNTED}),
    )  # fmt: skip


def _requests(row: Row) -> tuple[int | None, int | None]:
    """How many were sent, and how many answered; a count of errors is only there where there is one."""
    answered = row.inner("request_count").count("avg")
    failed = row.inner("error_request_count").count("avg") or 0
    return (None if answered is None else answered + failed), answered


def _invalid(row: Row) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if row.value.get("was_cancelled") is True:
        found += (f"the benchmark was cancelled ({row.where})",)
    if row.value.get("is_complete") is False:
        reason = row.word("incomplete_reason") or "it does not tell why"
        found += (f"the benchmark is not complete: {reason} ({row.where})",)
    return found


def _rates(row: Row) -> list[Figure]:
    return [
        Figure(metric=metric, unit=unit, definition=definition, value=value)
        for metric, unit, definition, key in _RATES
        if (value := row.inner(key).positive("avg")) is not None
    ]


def _summaries(row: Row) -> list[Figure]:
    found = []
    for metric, definition, key in _SUMMARISED:
        told = row.inner(key)
        scale = 1.0 if metric == "user_tok_s" else _SECONDS.get(told.word("unit") or "")
        if told.value and scale is None:
            told.fail("unit", f"one of {', '.join(_SECONDS)}")
        for suffix, summary in words.SUFFIXES.items():
            value = told.positive(_KEYS[summary])
            if value is not None and scale is not None:
                text = definition.format(summary=words.SUMMARIES[summary])
                unit = "tok/s" if metric == "user_tok_s" else "s"
                found.append(Figure(metric=f"{metric}{suffix}", unit=unit, definition=text, value=value * scale))
    return found


def _acceptance(row: Row) -> list[Figure]:
    found = [
        Figure(metric=metric, unit="tokens", definition=definition, value=value)
        for metric, definition, key in (
            ("accept_length_pooled", ours.ACCEPT_LENGTH_POOLED, "spec_decode_token_weighted_acceptance_length"),
            ("accept_length_mean", words.AIPERF_MACRO, "spec_decode_acceptance_length"),
        )
        if (value := row.inner(key).positive("avg")) is not None
    ]
    histogram = row.inner("pooled_spec_decode_acceptance_histogram")
    counts = {int(name): histogram.count(name) or 0 for name in histogram.value if name.isascii() and name.isdigit()}
    if total := sum(counts.values()):
        joint = [sum(n for j, n in counts.items() if j >= depth) / total for depth in range(1, DEEPEST + 1)]
        found += by_depth(joint)
    return found


def _counted_twice(row: Row) -> tuple[str, ...]:
    own, told = (row.inner(key).positive("avg") for key in ("total_osl", "total_usage_completion_tokens"))
    if own is None or told is None or abs(own / told - 1) <= _RETOKENISED:
        return ()
    return (f"its throughput counts {own:g} output tokens, the server tells {told:g} ({row.where})",)


def _claims(row: Row) -> tuple[Claim, ...]:
    """That its rates are its counts over its duration, whose clock ends a little later."""
    seconds = row.inner("benchmark_duration").number_of("avg")
    by = (seconds if row.inner("benchmark_duration").word("unit") in ("sec", "s", "seconds") else None, "s")
    tokens, requests = (row.inner(name).number_of("avg") for name in ("total_osl", "request_count"))
    output, rate = (row.inner(name).positive("avg") for name in ("output_token_throughput", "request_throughput"))
    return (
        *quotient("output_token_throughput", output, (tokens, "output tokens"), by, sure=False),
        *quotient("request_throughput", rate, (requests, "answers"), by, sure=False),
    )


def _schema(row: Row) -> tuple[str, ...]:
    version = row.word("schema_version")
    if version is None or version.partition(".")[0] == "1":
        return ()
    return (f"its schema is {version}; what is known here is 1.x, its figures may mean something else ({row.where})",)


def _load(config: Row) -> dict[str, str | None]:
    """The load of the phase that is measured; older versions tell it under `loadgen`."""
    phases = config.value.get("phases")
    told = [one for one in phases if isinstance(one, dict)] if isinstance(phases, list) else []
    measured = [one for one in told if one.get("kind", "profiling") == "profiling"]
    load: Mapping[str, Any] = measured[0] if len(measured) == 1 else config.inner("loadgen").value
    users = in_words(load.get("concurrency"))
    rate = in_words(load.get("rate", load.get("request_rate")))
    return {name: value for name, value in (("concurrency", users), ("request_rate", rate)) if value is not None}


def _hard(config: Row) -> dict[str, str | None]:
    extra = config.inner("endpoint").inner("extra")
    items = config.inner("models").value.get("items")
    named = [item.get("name") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    sets = config.value.get("datasets")
    data = Row(sets[0], config.where, 1) if isinstance(sets, list) and sets and isinstance(sets[0], dict) else None
    found = {"target": in_words(named[0]) if len(named) == 1 else None}
    found |= {name: extra.word(name) for name in ("ignore_eos", "temperature", "top_p", "top_k")}
    if data is not None:
        lengths = {name: data.inner("prompts").inner(name).word("mean") for name in ("isl", "osl")}
        found |= {"dataset": data.word("type"), "prompts": data.word("entries"), "input_len": lengths["isl"]}
        found["max_new_tokens"] = lengths["osl"]
    return found


KIND = Kind(
    name="aiperf",
    words="aiperf profile",
    fits=_fits,
    points=_points,
    unknown=("which server answered: a served model's name need not be its path",),
    when=_when,
)
