"""Which captured states are the target's embedding output: the one label that the rows themselves can prove.

HF `hidden_states[0]` of a token is its row of embed_tokens; Gemma's times a constant, and rows captured in another
dtype are rounded. So a state is the embedding where it points the same way. The output of a layer never does: attention
and MLP have added to it.
"""

import torch

from remote_payload.failure import rows_failure
from remote_payload.standalone.mapped import picked

SAME_DIRECTION = 0.9995
"""Cosine from which a state counts as an embedding row: float8's rounding stays above, bfloat16's far above."""
ENOUGH_TOKENS = 0.5
"""Share of tokens from which a slot is the embedding output: image tokens have other embeddings than the table's."""
LOOKED_TOKENS = 256
"""Tokens that are held against their neighbours' embeddings, all over the row."""


def embedding_slots(states: torch.Tensor, tokens: torch.Tensor, table: torch.Tensor) -> tuple[int, ...]:
    """Slots of states (T, n, Ht) that mostly point along the tokens' (T,) rows of the table (V, Ht)."""
    rows = table[tokens].float()  # (T, Ht)
    return tuple(slot for slot, state in enumerate(states.unbind(dim=1)) if _point_along(state, rows))


def _point_along(state: torch.Tensor, rows: torch.Tensor) -> bool:
    """Whether most states of one slot (T, Ht) point along these rows of the table (T, Ht); one slot is small enough."""
    cosine = torch.nn.functional.cosine_similarity(state.float(), rows, dim=-1)  # (T,)
    return float((cosine > SAME_DIRECTION).float().mean()) >= ENOUGH_TOKENS


def embedding_shift(states: torch.Tensor, tokens: torch.Tensor, table: torch.Tensor) -> int:
    """Of states (T, n, Ht), whether one is the embedding output of a neighbouring token: -1, +1, or 0 for none."""
    at = torch.arange(1, len(tokens) - 1)
    at = at[:: max(1, len(at) // LOOKED_TOKENS)]
    shifts = (shift for shift in (-1, 1) if embedding_slots(picked(states, at), tokens[at + shift], table))
    return next(shifts, 0)


def dead_slots(states: torch.Tensor) -> tuple[int, ...]:
    """Slots of states (T, n, Ht) that hold one vector for all tokens: nothing was written there."""
    if len(states) < 2:
        return ()
    return tuple(slot for slot, state in enumerate(states.unbind(dim=1)) if bool((state == state[0]).all()))


def check_written(dead: tuple[int, ...], captured: int) -> None:
    """Raise JobFailure(rows) where none of the `captured` states holds anything."""
    if len(dead) == captured:
        raise rows_failure(
            f"all {captured} captured states hold one and the same vector for every token (zeros, say): the capture "
            "wrote nothing",
            hint="capture the rows again, and look at one row's states before all are made",
        )


def check_labels(slots: tuple[int, ...], states: tuple[int, ...], dead: tuple[int, ...] = ()) -> None:
    """Raise JobFailure(rows) where labels contradict the rows: the embedding stands at `slots`, nothing at `dead`."""
    labelled = states.index(0) if 0 in states else None
    if labelled is not None and labelled in dead:
        raise rows_failure(
            f"slot {labelled} is labelled `embed`, but holds one and the same vector for every token: the capture "
            "wrote nothing there",
            hint="capture the rows again; no label mends it",
        )
    if slots and (labelled is None or labelled not in slots):
        said = f"slot {labelled} is labelled `embed`" if labelled is not None else "no slot is labelled `embed`"
        raise rows_failure(
            f"`states` contradicts the rows: {said}, but the target's embedding output is in slot: {slots[0]}",
            hint="give `states` in the order the rows were captured in, slots counted from 0; "
            f"slot {slots[0]} is `embed`, which is 0",
        )
    if labelled is not None and not slots:
        raise rows_failure(
            f"`states` contradicts the rows: slot {labelled} is labelled `embed`, but no captured state is the "
            f"embedding output of the target, found: {', '.join(map(str, states))}",
            hint="is `target` the model these rows were captured from? if it is, the labels are wrong",
        )
