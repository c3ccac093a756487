"""Rows as a capture writes them: `hs_i.safetensors` and a line of `merged.jsonl` each, which the row reader takes."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from remote_payload.standalone.rows.hidden_files import ANSWERS

MERGED = "merged.jsonl"


def as_tensor(states: Sequence[Sequence[float]], hidden_size: int) -> torch.Tensor:
    """States (T, n, Ht) from one vector a token; in bfloat16 or float16 where that loses nothing.

    Raises ValueError where the vectors are not whole states.
    """
    flat = torch.tensor(states, dtype=torch.float32)
    if flat.dim() != 2 or not flat.shape[1] or flat.shape[1] % hidden_size:
        raise ValueError(f"vectors of {flat.shape[-1]} numbers are no states of {hidden_size}")
    if not bool(torch.isfinite(flat).all()):
        raise ValueError("the served states hold NaN or infinity")
    for dtype in (torch.bfloat16, torch.float16):
        short = flat.to(dtype)
        if torch.equal(short.float(), flat):
            flat = short
            break
    return flat.reshape(len(flat), -1, hidden_size).contiguous()


class RowWriter:
    """Writes rows into one folder, numbered in the order they come."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.rows = self.tokens = 0

    def write(
        self, states: torch.Tensor, tokens: Sequence[int], answers: Sequence[int], prompt: int, source: str
    ) -> None:
        """One row: states (T, n, Ht), its tokens, the choice after each; the first `prompt` tokens are the prompt."""
        tensors = {
            "hidden_states": states,
            "token_ids": torch.tensor(tokens, dtype=torch.int64),
            ANSWERS: torch.tensor(answers, dtype=torch.int64),
        }
        save_file(tensors, self.folder / f"hs_{self.rows}.safetensors")
        responses = len(tokens) - prompt
        line = {
            "input_ids": list(tokens),
            "loss_mask": [0] * prompt + [1] * responses,
            "seq_len": len(tokens),
            "n_prompt_tokens": prompt,
            "n_response_tokens": responses,
            "source": source,
        }
        with (self.folder / MERGED).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
        self.rows += 1
        self.tokens += len(tokens)
