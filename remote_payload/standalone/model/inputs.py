"""What every reading of one row shares: its tokens, its captured states, and what was made of them so far."""

from collections import OrderedDict
from dataclasses import dataclass, field

import torch

SHUFFLE_SEED = 20


@dataclass(frozen=True, kw_only=True)
class RowInputs:
    """A row, cut behind its last draft position: T tokens, of which states and prefix cover the first T'.

    States stay where they are (on the CPU, in their stored dtype, perhaps a memory map) and are read one at a time.
    """

    tokens: torch.Tensor  # (T,) on the device
    states: torch.Tensor  # (T', n, Ht)
    final: torch.Tensor | None  # (T', Ht), the target's final state after its norm
    positions: torch.Tensor  # (P,) ascending draft positions, on the device
    token_parts: dict[str, torch.Tensor] = field(default_factory=dict)
    """By whose embedding: (T, W), the first layer's projections of the embedding half."""
    projections: "OrderedDict[tuple[int, int, str], torch.Tensor]" = field(default_factory=OrderedDict)
    """(state, slot, norm) -> (T', H), the ones used last at the end."""
    squares: dict[int, torch.Tensor] = field(default_factory=dict)
    """By state: sum of its squares, (T',) float32; filled by projections under the joint norm."""

    @property
    def length(self) -> int:
        """T', how many positions the prefix covers."""
        return len(self.states)

    def kept(self, key: tuple[int, int, str]) -> torch.Tensor | None:
        """A projection made before; it counts as the latest used."""
        if key in self.projections:
            self.projections.move_to_end(key)
        return self.projections.get(key)

    def keep(self, key: tuple[int, int, str], made: torch.Tensor, limit_bytes: int) -> None:
        """Remember a projection, at the cost of those used longest ago; not at all if it alone is over the limit."""
        room = limit_bytes // (made.numel() * made.element_size())
        while self.projections and len(self.projections) >= room:
            self.projections.popitem(last=False)
        if room:
            self.projections[key] = made


def states_order(states: str, length: int) -> torch.Tensor | None:
    """Whose hidden input each of a row's positions reads under `Graph.states`, (length,); None = its own."""
    if states == "shuffled":
        return torch.randperm(length, generator=torch.Generator().manual_seed(SHUFFLE_SEED))
    if states in ("earlier", "later"):
        return (torch.arange(length) + (1 if states == "later" else -1)).clamp(0, length - 1)
    return None
