"""Whether one state is another one in other numbers: by a factor, through a norm, or a norm with another weight.

A target that is served with a scaling, or a norm too many, hands on states of the right layer that are equal to none
of the captured ones. Everything here is exact where the numbers are, and large for any other state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from remote_payload.schema.state_change import StateChange

TINY = torch.finfo(torch.float32).tiny


@dataclass
class Sums:
    """Inner products of one state with a known one, token by token; rows are added one by one."""

    cross: list[torch.Tensor] = field(default_factory=list)
    mine: list[torch.Tensor] = field(default_factory=list)
    known: list[torch.Tensor] = field(default_factory=list)

    def add(self, state: torch.Tensor, known: torch.Tensor) -> None:
        """States (T, Ht) of the same tokens. In float64: what is left of two nearly equal numbers is the answer."""
        mine, other = state.double(), known.to(state.device).double()
        self.cross.append((mine * other).sum(dim=-1).cpu())
        self.mine.append(mine.square().sum(dim=-1).cpu())
        self.known.append(other.square().sum(dim=-1).cpu())

    def change(self) -> StateChange:
        """What a factor takes back. Tokens of zeros count as those that nothing takes back."""
        cross, mine, known = (torch.cat(parts) for parts in (self.cross, self.mine, self.known))
        factor = float((cross / known.clamp_min(TINY)).median())
        left = (mine - 2 * factor * cross + factor**2 * known).clamp_min(0)
        sine = (1 - (cross / (mine * known).sqrt().clamp_min(TINY)).square()).clamp_min(0).sqrt()
        return StateChange(
            factor=factor,
            scaled_error=float((left / (factor**2 * known).clamp_min(TINY)).sqrt().median()),
            turned_error=float(sine.median()),
        )


def through_norms(state: Sequence[torch.Tensor], known: Sequence[torch.Tensor]) -> tuple[float, float, float]:
    """Errors of `state` as the norm's output of `known`, as its input, and with other channels; row by row (T, Ht)."""
    mine, other = torch.cat(list(state)).double(), torch.cat(list(known)).double()
    normed = _channels(_unit(other), mine)
    unnormed = _channels(_unit(mine), other)
    return normed, unnormed, _channels(other, mine)


def _channels(given: torch.Tensor, wanted: torch.Tensor) -> float:
    """Median over tokens of |wanted - w * given| / |wanted|, `w` (Ht,) by least squares, each token weighing alike."""
    sizes = torch.linalg.vector_norm(wanted, dim=-1, keepdim=True).clamp_min(TINY)
    given, wanted = given / sizes, wanted / sizes
    weight = (given * wanted).sum(dim=0) / given.square().sum(dim=0).clamp_min(TINY)
    return float(torch.linalg.vector_norm(wanted - weight * given, dim=-1).median())


def _unit(states: torch.Tensor) -> torch.Tensor:
    """Every token at a root mean square of 1."""
    return states / states.square().mean(dim=-1, keepdim=True).sqrt().clamp_min(TINY)
