"""`python -m tests.standalone.model.measured LIMIT`: load a middle-sized drafter, draft, print plan and true peak.

A process of its own, because the peak of a process never comes down again. LIMIT is in bytes, or `none`.
"""

import json
import sys

import torch

from remote_payload.standalone.graph import GroupedAttention, Reading
from remote_payload.standalone.machine import peak_memory_bytes, return_freed_memory
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.model.memory import Work, plan
from tests.standalone.model.made import Made, make, make_row

MIDDLE = Made(
    attention=GroupedAttention(heads=8, kv_heads=4, head_dim=64),
    captured=4,
    hidden=512,
    target_hidden=512,
    inner=1536,
    vocab=32000,
    draft_vocab=32000,
    max_positions=8192,
)
TOKENS = 4096


def main() -> None:
    """Measure."""
    torch.set_num_threads(1)
    return_freed_memory()
    limit = None if sys.argv[1] == "none" else int(sys.argv[1])
    checkpoint = make(MIDDLE)
    checkpoint.embeddings.pop("draft")
    work = Work(row_tokens=TOKENS, captured=MIDDLE.captured, readings=3)
    told, budget = plan(checkpoint, work, dtype=torch.float32, device=torch.device("cpu"), limit_bytes=limit)
    row = make_row(MIDDLE, TOKENS)
    states = row.states.bfloat16()
    drafter = Drafter(checkpoint, torch.device("cpu"), torch.float32, budget)
    checkpoint.weights.clear()
    del row.__dict__["states"], row.__dict__["final"]
    readings = [Reading(slots=slots, token_offset=1) for slots in ((0, 1, 2), (1, 2, 3), (3, 2, 1))]
    positions = torch.arange(15, TOKENS, 16)
    with torch.inference_mode():
        drafter.draft(drafter.prepare(row.tokens, states, positions), readings, 2)
    peak = peak_memory_bytes()
    print(json.dumps({"expected": told.expected_peak_bytes, "peak": peak, "parts": [p.name for p in told.parts]}))


if __name__ == "__main__":
    main()
