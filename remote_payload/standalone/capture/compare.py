"""How far stored states are from freshly computed ones: which layer each is nearest to, by what margin."""

from dataclasses import dataclass, field

import torch

from remote_payload.schema.standalone import CaptureSlot
from remote_payload.standalone.capture.fresh import Forward
from remote_payload.standalone.capture.likeness import Sums


@dataclass
class Distances:
    """Relative errors of one stored state against every fresh one, token by token."""

    by_index: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    sums: dict[int, Sums] = field(default_factory=dict)

    def add(self, stored: torch.Tensor, fresh: Forward) -> None:
        """Compare stored (T, Ht) with every state of the row's fresh forward."""
        stored = stored.to(device=fresh.states[0].device, dtype=torch.float32)
        last = len(fresh.states) - 1
        for index, state in enumerate(fresh.states):
            error, nearest = relative_error(stored, state), state
            if index == last and fresh.pre_norm is not None:
                # Some captures hold the last layer's output before the final norm: either of the two is that layer.
                unnormed = relative_error(stored, fresh.pre_norm)
                if float(unnormed.median()) < float(error.median()):
                    error, nearest = unnormed, fresh.pre_norm
            self.by_index.setdefault(index, []).append(error.cpu())
            self.sums.setdefault(index, Sums()).add(stored, nearest)

    def facts(self, slot: int | None, label: int | None) -> CaptureSlot:
        """The nearest layer and the next one, by the median over all tokens."""
        errors = {index: float(torch.cat(found).median()) for index, found in self.by_index.items()}
        ranked = sorted(errors, key=lambda index: errors[index])
        return CaptureSlot(
            slot=slot,
            nearest=ranked[0],
            error=errors[ranked[0]],
            next_error=errors[ranked[1]],
            labelled_error=None if label is None else errors.get(label),
            changes=tuple(self.sums[index].change() for index in sorted(self.sums)),
        )


def relative_error(stored: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
    """|stored - fresh| / |fresh| of each token, (T,), from (T, Ht); stored is float32."""
    wanted = fresh.float()
    sizes = torch.linalg.vector_norm(wanted, dim=-1).clamp_min(torch.finfo(torch.float32).tiny)
    error: torch.Tensor = torch.linalg.vector_norm(stored - wanted, dim=-1) / sizes
    return error
