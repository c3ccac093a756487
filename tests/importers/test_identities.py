"""Results whose numbers contradict each other: no measurement where it is clear, a warning where it may be rounding."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InvalidRunError
from orchestrator.importers.identities import CLEAR, ROUNDED, Claim, contradictions
from orchestrator.importers.kinds import measured
from orchestrator.importers.source import Source
from orchestrator.records.measurement import Measurement
from tests.support.lasting import lasting

DATA = Path(__file__).parent / "data"
REAL = sorted(path for path in DATA.rglob("*.json*") if path.name != "summary.json")


def first_of(name: str) -> dict[str, Any]:
    text = (DATA / name).read_text()
    found: dict[str, Any] = json.loads(text.splitlines()[0] if name.endswith("jsonl") else text)
    return found


LINE, BATCH = first_of("sglang_serving_0.5.23.jsonl"), first_of("sglang_batch_0.5.23.jsonl")
VLLM, COMMAND, AIPERF = (
    first_of("vllm_serve_0.33.0.json"),
    first_of("specforge_command.json"),
    first_of("aiperf_0.13.0.json"),
)
GRID = json.loads((DATA / "sglang_grid_0.5.23.jsonl").read_text().splitlines()[1])
BENCH = json.loads((DATA / "specforge_bench_0.2.0.jsonl").read_text())
QUESTIONLESS = {
    **BENCH,
    "mtbench": [{**BENCH["mtbench"][0], "metrics": [{**BENCH["mtbench"][0]["metrics"][0], "num_questions": 0}]}],
}


def of(value: dict[str, Any]) -> Measurement:
    return measured(Source("file.json", json.dumps(value).encode())).measurements[0]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_no_real_file_contradicts_itself(path: Path) -> None:
    for one in measured(Source(path.name, path.read_bytes())).measurements:
        assert not any(" make " in text or "is 0" in text for text in (*one.invalid, *one.warnings))


@pytest.mark.parametrize(
    ("row", "change", "told"),
    [
        (LINE, {"output_throughput": 1e9}, "`output_throughput` says 1e+09, 144 output tokens / 1.19554 s make 120.4"),
        (LINE, {"request_throughput": 5.0}, "`request_throughput` says 5, 3 answers / 1.19554 s make 2.509"),
        (LINE, {"total_throughput": 80.0},
         "`total_throughput` says 80, 176 prompt and output tokens / 1.19554 s make 147.2"),
        (LINE, {"duration": 0}, "`duration` is 0, and yet it tells figures"),
        (LINE, {"total_output_tokens": 0}, "`total_output_tokens` is 0, and yet it tells figures"),
        (LINE, {"median_e2e_latency_ms": 10, "median_ttft_ms": 900},
         "`ttft_s` says 0.9, more than `e2e_s`, 0.01: a first token is not later than the last"),
        (LINE, {"p90_e2e_latency_ms": 9000}, "`e2e_s_p90` says 9, more than `e2e_s_p95`, 0.7915: percentiles rise"),
        (VLLM, {"output_throughput": 238.0}, "`output_throughput` says 238, 128 output tokens / 53.692 s make 2.384"),
        (VLLM, {"spec_decode_acceptance_length": 3.9},
         "`spec_decode_acceptance_length` says 3.9, 1 + 33 accepted / 92 drafts make 1.359"),
        (VLLM, {"spec_decode_acceptance_rate": 140},
         "`spec_decode_acceptance_rate` says 1.4, 33 accepted / 276 draft tokens make 0.1196"),
        (VLLM, {"spec_decode_accepted_tokens": 330},
         "`spec_decode_accepted_tokens` says 330, of 276 that were drafted"),
        (VLLM, {"spec_decode_per_position_acceptance_rates": [0.9, 0.8, 0.7]},
         "`spec_decode_per_position_acceptance_rates` says 2.4, in sum; 33 accepted / 92 drafts make 0.3587"),
        (COMMAND, {"throughput_tokens_per_second": 664.0},
         "`throughput_tokens_per_second` says 664, 192 output tokens / 2.89087 s make 66.42"),
        (COMMAND, {"samples": 0}, "`samples` is 0, and yet it tells figures"),
        (COMMAND, {"spec_verify_count": 0}, "`spec_verify_count` is 0, and yet it tells figures"),
        (BENCH, QUESTIONLESS, "`num_questions` is 0, and yet it tells figures"),
        (BATCH, {"overall_throughput": 300.0},
         "`overall_throughput` says 300, 64 prompt and output tokens / 0.4798 s make"),
        (GRID, {"speed": 200.0}, "`speed` says 200, 1.631 tokens a step / 0.02363 s make 69.02"),
        (AIPERF, {"benchmark_duration": {"unit": "sec", "avg": 0}},
         "`benchmark_duration` is 0, and yet it tells figures"),
    ],
)  # fmt: skip
def test_a_result_that_clearly_contradicts_itself_is_no_measurement(
    row: dict[str, Any], change: dict[str, Any], told: str
) -> None:
    assert [text for text in of({**row, **change}).invalid if text.startswith(told)], of({**row, **change}).invalid


def test_how_far_apart_two_numbers_may_be() -> None:
    def judged(off: float, *, sure: bool = True) -> tuple[int, int]:
        claim = Claim(name="speed", told=100 * (1 + off), made=100, words="this", is_sure=sure)
        found = contradictions({"speed": 1.0}, [claim], {}, "file")
        return len(found.invalid), len(found.warnings)

    assert judged(0.0) == judged(ROUNDED * 0.99) == judged(-ROUNDED * 0.99) == (0, 0)
    assert judged(ROUNDED * 1.01) == judged(-CLEAR * 0.99) == (0, 1)
    assert judged(CLEAR * 1.01) == judged(-0.9) == (1, 0)
    assert judged(9.0, sure=False) == (0, 1)  # two clocks, or two ways to count
    slightly = of({**LINE, "output_throughput": LINE["output_throughput"] * 1.05})
    assert slightly.invalid == ()
    assert [text for text in slightly.warnings if text.startswith("`output_throughput` says 126.5")]


def test_an_aiperf_whose_clocks_differ_is_only_told() -> None:
    one = of({**AIPERF, "output_token_throughput": {"unit": "tokens/sec", "avg": 49.0}})
    assert one.invalid == ()
    assert [text for text in one.warnings if text.startswith("`output_token_throughput` says 49, 120 output tokens /")]
    newer = of({**AIPERF, "schema_version": "9.0"}).warnings
    assert [text for text in newer if text.startswith("its schema is 9.0; what is known here is 1.x")]


def test_vllm_tells_how_many_of_its_prompts_were_sent() -> None:
    two = lasting({**VLLM, "completed": 2, "failed": 0, "request_throughput": 2 / VLLM["duration"]}, VLLM["duration"])
    assert of(two).invalid == ()
    assert "4 prompts were asked for, 2 were answered or failed by its own counts (file.json)" in of(two).warnings
    broken = of({**VLLM, "errors": ["boom", "", "", ""], "failed": 0})
    assert "1 of 4 requests were not answered (file.json)" in broken.invalid


@pytest.mark.parametrize("users", [0, True, "two"])
def test_users_at_once_are_a_number_above_0(users: object) -> None:
    for row in (LINE, VLLM):
        with pytest.raises(InvalidRunError, match="`max_concurrency`: expected a"):
            of({**row, "max_concurrency": users})
