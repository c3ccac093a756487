"""Which tokens of a row are a response: its loss mask, wherever it stands, and what is odd about it."""

from dataclasses import dataclass
from typing import Any, Literal

import torch

from remote_payload.standalone.rows.values import RowError, integers

NAME = "loss_mask"


@dataclass(frozen=True, kw_only=True)
class MaskSigns:
    """What is odd about a row's mask."""

    stored: bool = True
    """Whether there is one at all; where there is none, every token counts, as ModelOpt trains."""
    odd_values: bool = False
    """Whether it holds numbers other than 0 and 1."""
    contradicts: Literal["other", "inverse"] | None = None
    """How the row's own mask differs from that of its merged line, which is used."""


ORDINARY = MaskSigns()


def read_mask(value: dict[str, Any], line: dict[str, Any], tokens: int) -> tuple[torch.Tensor, MaskSigns]:
    """A row's mask (T,) bool: that of its merged `line` before its own. Raises RowError."""
    holder = line if NAME in line else value
    if NAME not in holder:
        return torch.ones(tokens, dtype=torch.bool), MaskSigns(stored=False)
    found = integers(holder, NAME)
    return found.ne(0), MaskSigns(odd_values=bool(((found != 0) & (found != 1)).any()))


def contradiction(
    value: dict[str, Any], line: dict[str, Any], used: torch.Tensor, part: slice
) -> Literal["other", "inverse"] | None:
    """How the row's own mask, its `part` where it is stored with padding, differs from the line's as `used` (T,)."""
    if NAME not in value or NAME not in line:
        return None
    try:
        own = integers(value, NAME).ne(0)
    except RowError:
        return None  # it is not used
    own = own if len(own) == len(used) else own[part]
    if len(own) != len(used) or torch.equal(own, used):
        return None
    return "inverse" if torch.equal(~own, used) else "other"
