"""A checkpoint's tensors on their way to the device."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

from remote_payload.standalone.mapped import let_go


class Linear(NamedTuple):
    """y = x W^T + b."""

    weight: torch.Tensor  # (out, in)
    bias: torch.Tensor | None  # (out,)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """(..., in) -> (..., out)."""
        return functional.linear(values, self.weight, self.bias)


@dataclass(frozen=True)
class Weights:
    """Tensors by canonical name, taken to a device in a dtype; `prefix` is put before every name."""

    stored: dict[str, torch.Tensor]
    device: torch.device
    dtype: torch.dtype
    prefix: str = ""

    def below(self, prefix: str) -> "Weights":
        """The same under a longer prefix."""
        return Weights(self.stored, self.device, self.dtype, self.prefix + prefix)

    def __call__(self, name: str) -> torch.Tensor:
        """The tensor; the loader has checked that it is there."""
        stored = self.stored[self.prefix + name]
        taken = stored.to(device=self.device, dtype=self.dtype)
        if taken is not stored:
            let_go(stored)
        return taken

    def optional(self, name: str) -> torch.Tensor | None:
        """The tensor, or None where there is none."""
        return self(name) if self.prefix + name in self.stored else None

    def linear(self, name: str) -> Linear:
        """`name.weight` with `name.bias` where there is one."""
        return Linear(self(f"{name}.weight"), self.optional(f"{name}.bias"))

    def joined(self, names: tuple[str, ...]) -> Linear:
        """Several projections of the same input as one: weights and biases one below the other."""
        parts = [self.linear(name) for name in names]
        weight = torch.cat([part.weight for part in parts])
        for part in parts:
            let_go(part.weight)
        if all(part.bias is None for part in parts):
            return Linear(weight, None)
        biases = [part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias for part in parts]
        return Linear(weight, torch.cat(biases))
