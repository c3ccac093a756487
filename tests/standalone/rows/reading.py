"""Reading a folder of made rows in tests."""

from pathlib import Path

import torch

from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader
from tests.support.tiny import Tiny, row_tensors

TINY = Tiny()
HIDDEN = TINY.target_hidden


def reader(folder: Path, merged: Path | None = None, steps: int = 4) -> RowReader:
    return RowReader(
        folder=find_rows(folder, merged, None), target_hidden_size=HIDDEN, vocab_size=TINY.vocab, steps=steps
    )


def read(folder: Path, merged: Path | None = None, steps: int = 4) -> list:
    return list(reader(folder, merged, steps).rows())


def reasons(folder: Path, merged: Path | None = None) -> list[str]:
    return [row.reason for row in read(folder, merged) if not isinstance(row, Row)]


def made(tokens: int = 20, prompt: int = 6, salt: int = 0) -> dict[str, torch.Tensor]:
    """The parts of a row, without any dialect: ids (T,), mask (T,), states (T, 4, Ht), final (T, Ht)."""
    row = row_tensors(TINY, tokens, prompt, salt)
    return {
        "ids": row["input_ids"],
        "mask": row["loss_mask"],
        "states": row["aux_hidden_state"][0].view(tokens, TINY.captured, HIDDEN),
        "final": row["hidden_state"][0],
    }


def same(row: Row, parts: dict[str, torch.Tensor]) -> bool:
    """Whether a row is just what was made."""
    assert isinstance(row, Row), row
    return (
        torch.equal(row.tokens, parts["ids"])
        and row.tokens.dtype == torch.int64
        and torch.equal(row.loss_mask, parts["mask"].bool())
        and torch.equal(row.states, parts["states"])
        and row.final is not None
        and torch.equal(row.final, parts["final"])
    )
