"""The EAGLE-3 drafter, many readings of it at once, on one row.

Draft position j joins the captured states of token j (normed or not, through fc) with the embedding of token
j + offset. Step s >= 1 takes the drafter's own output of step s - 1 and the embedding of token j + offset + s, at
rotary position j + s. Its attention sees the step-0 keys of all positions <= j (the true prefix) and its own chain's
keys of steps 1..s: what a serving chain that starts at j sees. What may be read in more than one way is `Graph`.

Readings of one call may mix graphs. Those that share one are computed together; what they share, down to the
projection of one state through one slot, is computed once per row.

Shapes: R readings, T tokens, P judged positions, H hidden, D draft vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import Graph, Reading
from remote_payload.standalone.mapped import let_go
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.chains import Batch, Chains, Shared
from remote_payload.standalone.model.fuse import Fuse
from remote_payload.standalone.model.head import argmax_in_pieces, within_bounds
from remote_payload.standalone.model.inputs import RowInputs
from remote_payload.standalone.model.layer import Layer
from remote_payload.standalone.model.norm import rms_norm
from remote_payload.standalone.model.rope import Angles, rope_tables
from remote_payload.standalone.model.sizes import activation_numbers, prefix_numbers
from remote_payload.standalone.model.weights import Weights

SMALL_BLOCK = 256
"""Readings are put together only while each still gets blocks of about this many chains."""


class Drafter:
    """The drafter's weights on a device, in a dtype."""

    def __init__(
        self, checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, budget: Budget | None = None
    ) -> None:
        """`budget` bounds the pieces it computes in (see `memory.plan`); results do not depend on it."""
        config, self.config = checkpoint.config, checkpoint.config
        self.device, self.dtype, self.graph = device, dtype, checkpoint.graph
        self.budget = budget or Budget()
        load = Weights(checkpoint.weights, device, dtype)
        self.layers = [Layer(load, config, index) for index in range(config.layers)]
        self.norm = load("norm.weight")
        self.head = load("lm_head.weight")  # (D, H)
        self._fuse = Fuse(load, checkpoint.slots, config.rms_norm_eps, self.budget)
        self._embeddings = dict(checkpoint.embeddings)  # each (V, H) in its stored dtype: they are only looked up
        self._made_angles: dict[tuple[Rope, int | None], Angles] = {}
        self._vocabularies = {name: ids.clamp(min=0).to(device) for name, ids in checkpoint.vocabularies.items()}

    def missing(self, graph: Graph) -> str | None:
        """What the checkpoint lacks for computing a graph, in words; None = nothing, `draft` can be asked for it."""
        if graph.embedding not in self._embeddings:
            return f"the {graph.embedding}'s embed_tokens"
        if graph.input == "final_state" and self.config.target_hidden_size != self.config.hidden_size:
            return f"final states of the drafter's size, {self.config.hidden_size}"
        return self._fuse.missing(graph)

    def prepare(
        self, tokens: torch.Tensor, states: torch.Tensor, positions: torch.Tensor, final: torch.Tensor | None = None
    ) -> RowInputs:
        """Inputs that all readings of a row share; nothing is computed yet.

        `tokens` (T,), `states` (T, n, Ht), `positions` (P,) ascending, `final` (T, Ht): the target's final states after
        its norm, which only graphs of input `final_state` read.
        """
        stop = int(positions[-1]) + 1
        return RowInputs(
            tokens=tokens.to(self.device),
            states=states[:stop],
            final=None if final is None else final[:stop],
            positions=positions.to(self.device),
        )

    def draft(
        self, inputs: RowInputs, readings: Sequence[Reading], steps: int, *, self_fed: bool = False
    ) -> torch.Tensor:
        """Greedy draft tokens (draft-vocabulary ids), (R, P, steps).

        Teacher-forced: every step is fed the row's token. `self_fed`: from step 1 on it is fed the drafter's own
        proposal instead, as the reading's map leads to a target token (token 0 where it leads nowhere). Positions
        whose input token would lie outside the row get the nearest token of the row; the caller masks them.
        Raises JobFailure(checkpoint) where a graph needs what the checkpoint lacks, or where numbers overflow.
        """
        drafted = torch.empty(len(readings), len(inputs.positions), steps, dtype=torch.int64, device=self.device)
        for places, graph, batch, blocks in self._batches(inputs, readings, steps, by_map=self_fed):
            done = 0
            for at in blocks:
                greedy = self._drafts(Chains(batch, at), graph, steps, self_fed)  # (K, R, p)
                for index, own in enumerate(places):
                    drafted[own, done : done + len(at)] = greedy[:, index].T
                done += len(at)
        return drafted

    def outputs(self, inputs: RowInputs, readings: Sequence[Reading], steps: int) -> list[torch.Tensor]:
        """The last layer's un-normed output after each teacher-forced step, one (R, P, H) a step."""
        size = (len(readings), len(inputs.positions), self.config.hidden_size)
        told = [torch.empty(size, dtype=self.dtype, device=self.device) for _ in range(steps)]
        for places, graph, batch, blocks in self._batches(inputs, readings, steps, by_map=False):
            done = 0
            for at in blocks:
                for step, hidden in enumerate(self._steps(Chains(batch, at), graph, steps, None)):
                    for index, own in enumerate(places):
                        told[step][own, done : done + len(at)] = hidden[index]
                done += len(at)
        return told

    def normed_output(self, hidden: torch.Tensor) -> torch.Tensor:
        """What lm_head reads: the output after the final norm."""
        return rms_norm(hidden, self.norm, self.config.rms_norm_eps)

    def _drafts(self, chains: Chains, graph: Graph, steps: int, self_fed: bool) -> torch.Tensor:
        """Greedy draft tokens of a block of chains, (K, R, p)."""
        if not self_fed:
            return self._greedy(torch.stack(list(self._steps(chains, graph, steps, None))), graph)
        proposed: list[torch.Tensor] = []
        *_, last = self._steps(chains, graph, steps, proposed)
        return torch.stack([*proposed, self._greedy(last, graph)])

    def _steps(
        self, chains: Chains, graph: Graph, steps: int, proposed: list[torch.Tensor] | None
    ) -> Iterator[torch.Tensor]:
        """Output (R, p, H) of each step of a block of chains; with `proposed`, they are fed what they propose."""
        hidden = chains.first()
        yield hidden
        for step in range(1, steps):
            own = None
            if proposed is not None:
                proposed.append(self._greedy(hidden, graph))
                fed = self._vocabularies[graph.vocabulary][proposed[-1]]
                own = self.layers[0].token_part(self._embedded(graph.embedding, fed))
            hidden = chains.following(step, self.normed_output(hidden) if graph.feedback == "normed" else hidden, own)
            yield hidden

    def _greedy(self, hidden: torch.Tensor, graph: Graph) -> torch.Tensor:
        """Greedy draft tokens (...) of outputs (..., H)."""
        read = within_bounds(hidden)
        read = self.normed_output(read) if graph.final_norm == "applied" else read
        return argmax_in_pieces(read.flatten(0, -2), self.head, "drafter", self.budget.logit_bytes).view(
            hidden.shape[:-1]
        )

    def _batches(
        self, inputs: RowInputs, readings: Sequence[Reading], steps: int, *, by_map: bool
    ) -> Iterator[tuple[list[list[int]], Graph, Batch, tuple[torch.Tensor, ...]]]:
        """Readings by graph, as many together as the budget allows.

        Gives for each batch the places of its readings in `readings`, its graph, its prefix, and its blocks of
        positions. Readings that mean the same computation (unless `by_map`, the vocabulary's map is none of the
        drafter's business) are computed once and have several places.
        """
        groups: dict[Graph, dict[tuple[tuple[int, ...], int], list[int]]] = {}
        for place, reading in enumerate(readings):
            graph = self.graph if reading.graph is None else reading.graph
            graph = graph if by_map else replace(graph, vocabulary="offset")
            groups.setdefault(graph, {}).setdefault((reading.slots, reading.token_offset), []).append(place)
        for graph, members in groups.items():
            lacking = self.missing(graph)
            if lacking is not None:
                raise checkpoint_failure(f"the drafter cannot be computed as `{graph}`: it lacks {lacking}")
            together, block = self._sizes(inputs)
            wanted = list(members.items())
            for start in range(0, len(wanted), together):
                chosen = wanted[start : start + together]
                batch = self._batch(inputs, graph, [reading for reading, _ in chosen], (steps, block))
                yield [places for _, places in chosen], graph, batch, torch.split(inputs.positions, block)

    def _batch(
        self,
        inputs: RowInputs,
        graph: Graph,
        readings: Sequence[tuple[tuple[int, ...], int]],
        sizes: tuple[int, int],
    ) -> Batch:
        """The prefix of readings (slots, token offset) of one graph; `sizes` are the steps and the block."""
        steps, block = sizes
        size = (len(readings), inputs.length, self.config.hidden_size)
        hidden = torch.empty(size, device=self.device, dtype=self.dtype)  # (R, T', H)
        for (slots, _), out in zip(readings, hidden, strict=True):
            self._fuse.fuse(inputs, graph, slots, out)
        shared = Shared(
            layers=self.layers,
            graph=graph,
            token_part=self._token_part(inputs, graph.embedding),
            offsets=torch.tensor([offset for _, offset in readings], device=self.device)[:, None],
            angles=self._angles(inputs, graph, inputs.length + steps),
            budget=self.budget,
        )
        return Batch(shared, hidden, block)

    def _sizes(self, inputs: RowInputs) -> tuple[int, int]:
        """How many readings are computed together, and in blocks of how many positions."""
        half = self.budget.reading_bytes // 2
        prefix = inputs.length * prefix_numbers(self.config) * self.dtype.itemsize
        activations = activation_numbers(self.config) * self.dtype.itemsize
        count = len(inputs.positions)
        together = max(1, min(half // prefix, half // (activations * min(count, SMALL_BLOCK))))
        return together, max(1, half // (activations * together))

    def _token_part(self, inputs: RowInputs, embedding: str) -> torch.Tensor:
        """The first layer's embedding half for every token of the row, (T, W)."""
        if embedding not in inputs.token_parts:
            piece = max(1, self.budget.reading_bytes // 4 // (4 * 4 * self.config.hidden_size))
            parts = [
                self.layers[0].token_part(self._embedded(embedding, ids)) for ids in torch.split(inputs.tokens, piece)
            ]
            inputs.token_parts[embedding] = parts[0] if len(parts) == 1 else torch.cat(parts)
        return inputs.token_parts[embedding]

    def _embedded(self, embedding: str, ids: torch.Tensor) -> torch.Tensor:
        """Rows of embed_tokens, (..., H) in the model's dtype."""
        table = self._embeddings[embedding]
        if table.device != self.device:
            table = self._embeddings[embedding] = table.to(self.device)
        found = table[ids].to(self.dtype)
        let_go(table)
        return found

    def _angles(self, inputs: RowInputs, graph: Graph, positions: int) -> Angles:
        """Angles of draft positions 0 .. positions - 1, whose first stands at the graph's position_start."""
        start, rope = graph.position_start, graph.rope
        length = len(inputs.tokens) + start if rope.kind == "dynamic" else None  # others do not look at it
        found = self._made_angles.get((rope, length))
        if found is None or len(found.cos) < positions + start:
            dim = self.layers[0].attention.rope_dim
            tables = rope_tables(rope, dim, 2 * (positions + start), self.config.max_positions, length)
            cos, sin = (part.to(device=self.device, dtype=self.dtype) for part in tables)
            found = self._made_angles[rope, length] = Angles(cos=cos, sin=sin, interleaved=rope.interleaved)
        return replace(found, cos=found.cos[start:], sin=found.sin[start:])
