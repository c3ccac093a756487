"""Whose row a dict of tensors is, told by its names, and which of its values are what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from remote_payload.schema.standalone import DataDialectFacts
from remote_payload.standalone.rows.values import RowError, first_of

AUX_NAMES = ("aux_hidden_state", "aux_hidden_states")
HIDDEN_NAMES = ("hidden_state", "hidden_states")
TEACHER_NAMES: dict[str, Literal["speculators_old_v0", "baldeagle", "angelslim", "specforge"]] = {
    "target": "speculators_old_v0",
    "target_hidden_states": "baldeagle",
    "target_hiddens": "angelslim",
    "target_last_hidden_states": "specforge",
}
"""Names of the final state that say at once whose row it is; `hidden_state` is what the drafter is fed there."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The states of a row as they are stored, not looked at yet."""

    dialect: DataDialectFacts
    states: object
    final: object | None
    """None = `states` holds the final state as well, as its last one."""


def parts(value: dict[str, Any], suffix: str) -> Parts:
    """Tell a row dict's dialect; `suffix` is its file's, `.ckpt` or `.pt`. Raises RowError."""
    aux = _one(value, AUX_NAMES)
    teachers = [name for name in TEACHER_NAMES if isinstance(value.get(name), torch.Tensor)]
    if len(teachers) > 1:
        raise RowError(f"it holds two final states; only one can be the teacher's: {', '.join(teachers)}")
    if teachers:
        fed = aux or _one(value, HIDDEN_NAMES)
        return Parts(
            dialect=DataDialectFacts(name=TEACHER_NAMES[teachers[0]], evidence=_names(fed or "", teachers[0])),
            states=first_of(value, HIDDEN_NAMES if fed is None else (fed,)),
            final=value[teachers[0]],
        )
    hidden = _one(value, HIDDEN_NAMES)
    if aux is None and hidden is not None and _is_all(value[hidden]):
        return _all_in_one(value[hidden], hidden)
    states, final = first_of(value, AUX_NAMES), first_of(value, HIDDEN_NAMES)
    return Parts(dialect=_pair(value, str(aux), str(hidden), suffix), states=states, final=final)


def _one(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    found = [name for name in names if name in value]
    if len(found) > 1:
        raise RowError(f"it holds the same thing under two names: {', '.join(found)}")
    return found[0] if found else None


def _is_all(found: object) -> bool:
    """Whether a value is several states: a list of layers, or stacked ones."""
    if isinstance(found, torch.Tensor):
        return found.dim() == 4 or (found.dim() == 3 and found.shape[0] != 1)
    return isinstance(found, Sequence) and not isinstance(found, str | bytes)


def _all_in_one(found: object, name: str) -> Parts:
    shape = "stacked states" if isinstance(found, torch.Tensor) else "a list of states"
    evidence = (f"`{name}` is {shape}, the final one last", "there is no `aux_hidden_states`")
    dialect = DataDialectFacts(name="speculators_old_v1", evidence=evidence)
    if isinstance(found, Sequence) and len(found) > 1:
        return Parts(dialect=dialect, states=found[:-1], final=found[-1])
    return Parts(dialect=dialect, states=found, final=None)


def _pair(value: dict[str, Any], aux: str, hidden: str, suffix: str) -> DataDialectFacts:
    names = _names(aux, hidden)
    if "input_ids" not in value:
        return DataDialectFacts(name="jsonl_states", evidence=(*names, "tokens come from the merged JSONL"))
    if hidden == "hidden_state":
        return DataDialectFacts(name="specforge", evidence=names)
    for told, holds in (
        ("`conversation_id` is stored", "conversation_id" in value),
        (f"`base_hidden_prenorm` is {value.get('base_hidden_prenorm') is True}", "base_hidden_prenorm" in value),
        ("there is no `loss_mask`", "loss_mask" not in value),
        ("files end in .pt", suffix == ".pt"),
    ):
        if holds:
            return DataDialectFacts(name="modelopt", evidence=(*names, told))
    return DataDialectFacts(name="torchspec", evidence=(*names, "files end in .ckpt"))


def _names(states: str, final: str) -> tuple[str, ...]:
    return (f"captured states are called `{states}`", f"the final state is called `{final}`")
