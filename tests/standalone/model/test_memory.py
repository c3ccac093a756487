"""The memory plan against what a process really took, and against the limit it was given."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.schema.standalone import MemoryPlan
from remote_payload.standalone.graph import LatentAttention
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.memory import Work, check_least, overrun, plan
from tests.standalone.model.made import Made, config, make, shapes

CPU = torch.device("cpu")
GIB = 2**30
KIMI = Made(
    attention=LatentAttention(
        heads=64, q_lora_rank=1536, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    ),
    captured=62,
    hidden=7168,
    target_hidden=7168,
    inner=18432,
    vocab=163840,
    draft_vocab=163840,
)


def measured(limit):
    """Plan and true peak of a process of its own."""
    command = [sys.executable, "-m", "tests.standalone.model.measured", str(limit)]
    root = Path(__file__).parents[3]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True)
    return json.loads(ended.stdout)


def test_the_true_peak_stays_below_the_plan_and_the_limit():
    limit = 700 << 20  # the usual pieces would take the process to more than this
    found = measured(limit)
    assert found["peak"] <= found["expected"] <= limit
    assert found["expected"] < 1.5 * found["peak"]


def outlined(made):
    """A drafter of any size without its numbers."""
    tensors = {name: torch.empty(shape, device="meta", dtype=torch.bfloat16) for name, shape in shapes(made).items()}
    table = torch.empty(made.vocab, made.hidden, device="meta", dtype=torch.bfloat16)
    small = make(replace(made, hidden=2, target_hidden=2, inner=2, vocab=2, draft_vocab=2, captured=1))
    return replace(small, config=config(made), weights=tensors, embeddings={"target": table}, teacher_head=table)


def test_a_limit_makes_the_pieces_smaller_until_it_is_kept():
    checkpoint, work = (
        outlined(Made(hidden=2048, target_hidden=2048, inner=4096)),
        Work(row_tokens=4000, captured=4, readings=24),
    )
    usual, budget = plan(checkpoint, work, dtype=torch.float32, device=CPU, limit_bytes=None)
    assert budget == Budget()
    limit = usual.expected_peak_bytes - 1
    told, smaller = plan(checkpoint, work, dtype=torch.float32, device=CPU, limit_bytes=limit)
    assert told.expected_peak_bytes <= told.limit_bytes == limit
    assert smaller == Budget().smaller()
    assert told.expected_peak_bytes == sum(part.size_bytes for part in told.parts)


def test_what_cannot_be_kept_is_refused_with_what_is_needed():
    checkpoint, work = outlined(KIMI), Work(row_tokens=32768, captured=62, readings=24)
    with pytest.raises(JobFailure) as caught:
        plan(checkpoint, work, dtype=torch.float32, device=CPU, limit_bytes=8 * GIB)
    assert caught.value.failure.kind == "machine"
    assert "32768 tokens with 62 captured states, found: 8.00 GiB" in caught.value.failure.message
    needed = float(caught.value.failure.message.split("at least ")[1].split(" GiB")[0])
    plan(checkpoint, work, dtype=torch.float32, device=CPU, limit_bytes=int((needed + 0.01) * GIB))


def test_of_mapped_rows_a_piece_is_held_however_long_they_are():
    def told(tokens, mapped):
        work = Work(row_tokens=tokens, captured=62, readings=24, mapped=mapped)
        found, _ = plan(outlined(KIMI), work, dtype=torch.bfloat16, device=CPU, limit_bytes=None)
        return {part.name: part for part in found.parts}["its captured and final states"]

    row = 63 * 7168 * 2  # bytes of a token's states
    assert told(32768, mapped=False).size_bytes == 32768 * row
    assert told(32768, mapped=True).size_bytes == told(8192, mapped=True).size_bytes < 32768 * row / 50
    assert told(32768, mapped=True).mapped


def test_a_drafter_of_the_largest_targets_fits_a_gpu_in_bfloat16():
    work = Work(row_tokens=32768, captured=62, readings=24)
    told, _ = plan(outlined(KIMI), work, dtype=torch.bfloat16, device=torch.device("cuda"), limit_bytes=24 * GIB)
    assert told.where == "gpu"
    assert told.expected_peak_bytes < 24 * GIB
    assert "its captured and final states" not in {part.name for part in told.parts}


def test_a_limit_below_what_python_and_torch_take_is_refused_before_anything_is_read():
    with pytest.raises(JobFailure, match="for Python and torch alone, found"):
        check_least(10 << 20, CPU)
    check_least(None, CPU)
    check_least(10 << 20, torch.device("cuda"))  # there it bounds the GPU's


def test_a_peak_above_the_limit_is_told():
    kept = MemoryPlan(expected_peak_bytes=GIB, limit_bytes=2 * GIB)
    assert overrun(kept, 2 * GIB, 0) is None
    assert "took 3.00 GiB" in overrun(kept, 3 * GIB, 3 * GIB)
    free = replace(kept, limit_bytes=None)
    assert "more than was expected: 1.00 GiB" in overrun(free, 2 * GIB, 0)
    assert overrun(free, 2 * GIB, 2 * GIB) is None  # it was so large before the test
    assert overrun(free, GIB + GIB // 20, 0) is None  # what is expected is an estimate
    assert overrun(kept, 2 * GIB + 1, 0) is not None  # a limit is none


def test_code_for_products_in_bfloat16_is_in_the_plan_of_a_cpu():
    work = Work(row_tokens=4000, captured=4, readings=24)

    def told(dtype, device):
        return plan(outlined(Made()), work, dtype=dtype, device=torch.device(device), limit_bytes=None)[0].parts

    name = "code for products in bfloat16"
    assert name in {part.name for part in told(torch.bfloat16, "cpu")}
    assert name not in {part.name for part in (*told(torch.float32, "cpu"), *told(torch.bfloat16, "cuda"))}
