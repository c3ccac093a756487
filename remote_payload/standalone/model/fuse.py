"""The drafter's hidden input: captured states, normed or not, through fc.

fc over n slots is a sum over slots, so each (state, slot) is projected once per row and readings share it. A joint norm
over all slots keeps that: it scales each token by one number, which is multiplied in after the sum, while its weights
are multiplied in before.
"""

import torch
from torch.nn.functional import linear

from remote_payload.standalone.graph import Graph
from remote_payload.standalone.mapped import let_go
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.inputs import RowInputs, states_order
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.model.weights import Weights


class Fuse:
    """fc and the norms before it, a slot at a time."""

    def __init__(self, load: Weights, slots: int, eps: float, budget: Budget) -> None:
        self._device, self._dtype, self._eps, self._budget = load.device, load.dtype, eps, budget
        fc = load.optional("fc.weight")
        self._slots: tuple[torch.Tensor, ...] = () if fc is None else fc.chunk(slots, dim=1)  # one (H, Ht) a slot
        self._bias = load.optional("fc.bias")
        joint = load.optional("input_norm.weight")
        each = [load.optional(f"fc_norm.{slot}.weight") for slot in range(slots)]
        self._norms: dict[str, tuple[torch.Tensor, ...]] = {}
        if joint is not None:
            self._norms["joint"] = joint.chunk(slots)
        stored = tuple(norm for norm in each if norm is not None)
        if len(stored) == slots:
            self._norms["per_slot"] = stored

    def missing(self, graph: Graph) -> str | None:
        """What the checkpoint lacks for this graph; None = nothing."""
        if graph.input == "final_state":
            return None
        if not self._slots:
            return "fc.weight"
        if graph.input_norm != "none" and graph.input_norm not in self._norms:
            return "input_norm.weight" if graph.input_norm == "joint" else "fc_norm.*.weight"
        return None

    def fuse(self, inputs: RowInputs, graph: Graph, slots: tuple[int, ...], out: torch.Tensor) -> None:
        """Write the hidden input of one wiring into `out` (T', H)."""
        if graph.input == "final_state":
            assert inputs.final is not None, "this graph reads final states"
            out.copy_(inputs.final)
            if graph.states == "zeroed":
                out.zero_()
        else:
            self._sum(inputs, graph, slots, out)
        order = states_order(graph.states, len(out))
        if order is not None:
            out.copy_(out[order.to(self._device)])

    def _sum(self, inputs: RowInputs, graph: Graph, slots: tuple[int, ...], total: torch.Tensor) -> None:
        assert len(slots) == len(self._slots), f"{len(self._slots)} slots have to be filled, found: {slots}"
        total.zero_()
        if graph.states != "zeroed":
            for slot, state in enumerate(slots):
                total += self._projection(inputs, state, slot, graph.input_norm)
            if graph.input_norm == "joint":
                squares = torch.stack([inputs.squares[state] for state in slots]).sum(dim=0)  # (T',)
                size = len(slots) * self._slots[0].shape[1]
                scale = torch.rsqrt(squares / size + self._eps)[:, None]
                for part, factor in zip(self._pieces(total), self._pieces(scale), strict=True):
                    part.copy_(part.float() * factor)
        if self._bias is not None:
            total += self._bias

    def _projection(self, inputs: RowInputs, state: int, slot: int, norm: str) -> torch.Tensor:
        """One state through one slot of fc, (T', H)."""
        key = (state, slot, norm)
        made = inputs.kept(key)
        if made is None:
            made = torch.empty(inputs.length, len(self._slots[slot]), device=self._device, dtype=self._dtype)
            squares = torch.empty(inputs.length, device=self._device)
            parts = zip(self._pieces(made), self._pieces(squares), self._pieces(inputs.states[:, state]), strict=True)
            for out, square, stored in parts:
                read = stored.to(device=self._device, dtype=self._dtype)  # (t, Ht)
                if norm == "joint":
                    square.copy_(read.float().square().sum(dim=-1))
                out.copy_(linear(self._before_fc(read, slot, norm), self._slots[slot]))
                let_go(stored)
            if norm == "joint":
                inputs.squares[state] = squares
            inputs.keep(key, made, self._budget.projection_bytes)
        return made

    def _before_fc(self, read: torch.Tensor, slot: int, norm: str) -> torch.Tensor:
        if norm == "joint":
            return read * self._norms[norm][slot]
        return read if norm == "none" else rms_norm(read, self._norms[norm][slot], self._eps)

    def _pieces(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cut along positions so that a few copies of a piece (t, Ht) in float32 stay within the readings' budget."""
        return torch.split(values, self._budget.projected_positions(self._slots[0].shape[1]))
