"""AIPerf, one_batch_server and bench_speculative: what each means by its figures, and what it does not tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compare import definitions as ours
from orchestrator.errors import InvalidRunError
from orchestrator.importers import definitions as words
from orchestrator.importers.kinds import measured
from orchestrator.importers.source import Source
from orchestrator.records.measurement import Measurement, MeasurementSet, Series

DATA = Path(__file__).parent / "data"
AIPERF = json.loads((DATA / "aiperf_0.13.0.json").read_text())
BATCH = {"run_name": "default", "batch_size": 2, "input_len": 32, "output_len": 32, "latency": 1.5,
         "input_throughput": 320.0, "output_throughput": 64.0, "overall_throughput": 85.33, "last_ttft": 0.5,
         "last_gen_throughput": 60.0, "acc_length": -1, "total_output_tokens": 64, "num_early_stopped": 0,
         "steady_state_output_throughput": None, "steady_state_window_s": None, "cache_hit_rate": 0.25}  # fmt: skip
GRID = {"batch_size": 1, "steps": 3, "topk": 1, "num_draft_tokens": 4, "acc_length": 2.1, "step_time": 0.012,
        "speed": 175.0, "completion_tokens": 512.0}  # fmt: skip


def of(*values: dict[str, Any]) -> MeasurementSet:
    return measured(Source("file.json", "\n".join(json.dumps(value) for value in values).encode()))


def read(name: str) -> MeasurementSet:
    return measured(Source(name, (DATA / name).read_bytes()))


def one_of(*values: dict[str, Any]) -> Measurement:
    (one,) = of(*values).measurements
    return one


def series(one: Measurement) -> dict[str, Series]:
    return {item.metric: item for item in one.series}


def test_aiperf_in_seconds_with_its_date_and_its_own_count_of_tokens() -> None:
    found = of(AIPERF)
    told = series(found.measurements[0])
    assert found.run_id.startswith("aiperf-20261130-")
    assert told["ttft_s"].y == pytest.approx((AIPERF["time_to_first_token"]["p50"] / 1000,))
    assert told["itl_s"].definition == words.AIPERF_ITL.format(summary="median")
    assert told["output_throughput_tok_s"].y == (AIPERF["output_token_throughput"]["avg"],)
    assert found.measurements[0].warnings == (
        "its throughput counts 120 output tokens, the server tells 128 (file.json)",
    )
    with pytest.raises(InvalidRunError, match="`unit`: expected one of"):
        of({**AIPERF, "time_to_first_token": {"unit": "fortnights", "p50": 1.0}})


def test_aiperf_tells_acceptance_pooled_and_by_request() -> None:
    spec = {"total_spec_decode_steps": {"unit": "count", "avg": 10}, "spec_decode_acceptance_length": {"avg": 2.2},
            "spec_decode_token_weighted_acceptance_length": {"avg": 2.0},
            "pooled_spec_decode_acceptance_histogram": {"0": 4, "1": 3, "2": 2, "3": 1}}  # fmt: skip
    one = one_of({**AIPERF, **spec})
    told = series(one)
    assert one.case[0].value == "spec"
    assert told["accept_length_pooled"].definition == ours.ACCEPT_LENGTH_POOLED  # the very same ratio of sums
    assert told["accept_length_mean"].definition == words.AIPERF_MACRO
    assert [told[f"step{depth}_acceptance"].y[0] for depth in (1, 2, 3)] == pytest.approx([0.6, 0.5, 1 / 3])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"was_cancelled": True}, "the benchmark was cancelled (file.json)"),
        ({"is_complete": False, "incomplete_reason": "stalled"}, "the benchmark is not complete: stalled (file.json)"),
        ({"error_request_count": {"avg": 1.0}}, "1 of 5 requests were not answered (file.json)"),
    ],
)
def test_aiperf_that_did_not_end_well_is_no_measurement(change: dict[str, Any], told: str) -> None:
    assert one_of({**AIPERF, **change}).invalid == (told,)


def test_a_batch_says_what_it_divides_by_and_minus_one_is_unknown() -> None:
    one = one_of(BATCH, {**BATCH, "latency": 1.6, "output_throughput": 58.18})
    told = series(one)
    assert told["output_throughput_tok_s"].definition == words.BATCH_OUTPUT
    assert told["e2e_s"].y == (1.5, 1.6)
    assert told["cached_share"].y == (0.25, 0.25)
    assert "accept_length_pooled" not in told
    assert [fact.name for fact in one.case] == ["concurrency", "input_len", "output_len"]
    lengths = series(one_of({**BATCH, "acc_length": 2.31}))["accept_length_pooled"]
    assert (lengths.level, lengths.y) == ("summary", (2.31,))
    assert one_of({**BATCH, "total_output_tokens": 50, "output_throughput": 50.0}).warnings == (
        "50 output tokens came where 64 were asked for (file.json)",
    )


def test_a_real_batch_of_two_versions() -> None:
    found = read("sglang_batch_0.5.23.jsonl")
    assert found.tool == "sglang one_batch_server"
    one, two = found.measurements
    assert [fact.value for fact in one.case] == ["spec", "1", "32", "32"]
    told = series(one)
    assert told["output_throughput_tok_s"].y == (100.59, 100.08)
    assert told["output_throughput_tok_s"].definition == words.BATCH_OUTPUT  # random tokens to the full length
    assert told["total_throughput_tok_s"].y == (133.4, 169.33)
    assert told["ttft_s"].y == (0.1616, 0.0582)
    assert told["accept_length_pooled"].y == (2.1,)
    assert series(two)["output_throughput_tok_s"].y == (107.66, 123.79)
    assert series(two)["e2e_s"].y == (0.6394, 0.562)
    older = series(read("sglang_batch_0.5.18.jsonl").measurements[1])  # tells neither its tokens nor early ends
    assert older["output_throughput_tok_s"].y == (151.42,)
    assert older["output_throughput_tok_s"].definition == words.BATCH_OUTPUT
    assert not any(item.invalid for item in found.measurements)


def test_a_real_grid() -> None:
    plain, spec = read("sglang_grid_0.5.23.jsonl").measurements
    assert series(plain)["user_tok_s"].y == (74.892,)
    assert series(spec)["user_tok_s"].y == (69.003,)
    assert series(spec)["accept_length_pooled"].y == (1.631,)
    told = {fact.name: fact.value for fact in spec.soft}
    assert series(spec)["user_tok_s"].y[0] == pytest.approx(1.631 / float(told["step_time_s"] or 0), rel=1e-3)


def test_a_batch_whose_answers_may_end_early_counts_other_tokens_and_is_no_repeat() -> None:
    window = {**BATCH, "output_throughput": 62.0, "num_early_stopped": 1}
    (all_of_it, part) = of(BATCH, window).measurements
    assert series(all_of_it)["output_throughput_tok_s"].y == (64.0,)
    assert series(part)["output_throughput_tok_s"].definition == words.BATCH_WINDOW
    assert series(part)["output_throughput_tok_s"].y == (62.0,)
    assert one_of({**BATCH, "output_throughput": 63.995}).series[0].definition == words.BATCH_OUTPUT  # it rounds


def test_a_batch_faster_than_its_tokens_is_no_measurement_and_one_without_time_tells_none() -> None:
    assert one_of({**BATCH, "output_throughput": 80.0}).invalid == (
        "80 tok/s over 1 s are more than the 64 tokens of the batch (file.json)",
    )
    one = one_of({**BATCH, "last_ttft": 1.5})
    assert "output_throughput_tok_s" not in series(one)
    assert one.warnings == ("its output throughput has no time to divide by: left out (file.json)",)


def test_a_point_of_a_grid_has_no_throughput() -> None:
    found = of(GRID, {**GRID, "steps": 0, "topk": 0, "num_draft_tokens": 0, "acc_length": 1.0, "speed": 90.0})
    spec, plain = found.measurements
    assert series(spec)["user_tok_s"].definition == words.GRID_SPEED
    assert "output_throughput_tok_s" not in series(spec)
    assert [fact.value for fact in plain.case if fact.name == "side"] == ["plain"]
    assert set(series(plain)) == {"user_tok_s"}
    dead = of(GRID, {**GRID, "num_draft_tokens": 3, "acc_length": 1.0})
    assert any("1 of 2 results tell no figure" in text for text in dead.unknown)
