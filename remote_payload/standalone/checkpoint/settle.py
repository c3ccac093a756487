"""config.json corrected by the tensors: how many layers there are, which norms and biases they have.

Where the two disagree the tensors win, as they are what was trained; each such case is told (`config_notes`).
"""

import re
from dataclasses import replace
from typing import Any

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.attention_config import read_windows
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.config_values import flag
from remote_payload.standalone.checkpoint.flat_config import eagle_config
from remote_payload.standalone.checkpoint.tensor_names import layer_count
from remote_payload.standalone.checkpoint.weight_files import StoredTensor
from remote_payload.standalone.graph import GroupedAttention

BIAS = re.compile(r"layers\.\d+\.self_attn\.(?:[qkv]_proj|qkv_proj|q_a_proj|kv_a_proj_with_mqa)\.bias$")
HEAD_NORM = re.compile(r"layers\.\d+\.self_attn\.[qk]_norm\.")
MATRIX = 2


def settle(config: DrafterConfig, found: dict[str, StoredTensor]) -> DrafterConfig:
    """The config as the tensors, by canonical name, have it. Raises JobFailure(checkpoint)."""
    _refuse_eagle1(config, found)
    layers = layer_count(found)
    attention = replace(config.attention, bias=any(BIAS.match(name) for name in found))
    if isinstance(attention, GroupedAttention):
        norms = any(HEAD_NORM.match(name) for name in found)
        # speculators' Qwen3 layer always has them, so that their absence is a loss, not a choice.
        qwen3 = config.nested and config.flat.get("model_type") == "qwen3"
        attention = replace(attention, qk_norm=norms or qwen3, windows=read_windows(config.flat, layers))
    final_state = "fc.weight" not in found and aux_states_denied(config.flat)
    return replace(config, layers=layers, attention=attention, reads_final_state=final_state)


def aux_states_denied(flat: dict[str, Any]) -> bool:
    """Whether config.json says that the drafter reads no captured states."""
    return any(place.get("use_aux_hidden_state") is False for place in (flat, eagle_config(flat)))


def wanted_norms(config: DrafterConfig, found: dict[str, StoredTensor], slots: int) -> tuple[str, ...]:
    """Norms before fc that must be there: those of the kind that is stored, else those config.json asks for."""
    per_slot = tuple(f"fc_norm.{slot}.weight" for slot in range(slots))
    if any(name in found for name in per_slot):
        return per_slot
    if "input_norm.weight" in found:
        return ()
    places = (config.flat, eagle_config(config.flat))
    asked_per_slot = any(flag(place, key) for place in places for key in ("fc_norm", "use_aux_norm"))
    asked_joint = any(flag(place, "norm_before_fc") for place in places)
    if asked_per_slot and asked_joint:
        return ()  # no trainer has both: config.json is wrong anyhow, and the tensors say that there is none
    return per_slot if asked_per_slot else ("input_norm.weight",) if asked_joint else ()


def _refuse_eagle1(config: DrafterConfig, found: dict[str, StoredTensor]) -> None:
    """EAGLE-1 and -2: fc joins the embedding and one state, the layer is an ordinary one."""
    fc, query = found.get("fc.weight"), found.get("layers.0.self_attn.q_proj.weight")
    hidden = config.hidden_size
    ordinary = query is not None and len(query.shape) == MATRIX and query.shape[1] == hidden
    if ordinary and (fc is None or fc.shape == (hidden, 2 * hidden)) and "layers.0.hidden_norm.weight" not in found:
        raise checkpoint_failure(
            f"this is an EAGLE-1 or EAGLE-2 drafter: its layer takes {hidden} numbers, not embedding and state side by "
            f"side ({2 * hidden})",
            hint="it is another computation, so it is refused; EAGLE-3 drafters are tested",
        )
