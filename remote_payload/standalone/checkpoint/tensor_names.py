"""Names of an EAGLE-3 drafter's tensors: what the dialects write and what we call them; fused tensors are taken apart.

Canonical names are short (`fc.weight`, `layers.0.self_attn.q_proj.weight`, ...). SpecForge, TorchSpec and SafeAILab
write `midlayer.*`, speculators, vLLM and ModelOpt `layers.N.*`, Automodel puts `model.` in front; engines' own dumps
fuse q, k, v and others into one tensor.
"""

import re
from collections.abc import Iterable

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.weight_files import StoredTensor
from remote_payload.standalone.graph import GroupedAttention

LAYER = re.compile(r"^(?:model\.)?(midlayer|layers\.\d+)\.")
ALIASES = {
    "aux_norm_low.": "fc_norm.0.",
    "aux_norm_mid.": "fc_norm.1.",
    "aux_norm_high.": "fc_norm.2.",
}
MAP_ALIAS = "draft_id_to_target_id"
"""What vLLM calls d2t in its own dumps; SGLang does not know it."""
IGNORED = re.compile(r"^verifier_|^(?:model\.)?(?:.*\.)?rotary_emb\.")
"""speculators' copies of the target's tensors, and rotary tables that older exports carry."""
MOST_LAYERS = 200


def canonical_name(stored: str) -> str:
    """Our name of a stored tensor; unknown names come back without their `model.`."""
    name = stored.removeprefix("model.")
    if name == MAP_ALIAS:
        return "d2t"
    for alias, canonical in ALIASES.items():
        if name.startswith(alias):
            return canonical + name.removeprefix(alias)
    return "layers.0." + name.removeprefix("midlayer.") if name.startswith("midlayer.") else name


def by_canonical_name(stored: Iterable[StoredTensor]) -> dict[str, StoredTensor]:
    """The drafter's own tensors by canonical name. Raises JobFailure(checkpoint) where two dialects are mixed."""
    found: dict[str, StoredTensor] = {}
    for tensor in stored:
        if IGNORED.match(tensor.name):
            continue
        name = canonical_name(tensor.name)
        _add(found, name, tensor)
    _refuse_mixed(found)
    return _plain_later_layers(found)


def layer_count(found: Iterable[str]) -> int:
    """How many layers the canonical names count up to, at least 1. Raises JobFailure(checkpoint) beyond reason."""
    numbers = [int(match[1]) for match in (re.match(r"layers\.(\d{1,9})\.", name) for name in found) if match]
    count = max(numbers, default=0) + 1
    if count > MOST_LAYERS:
        raise checkpoint_failure(f"a drafter must have at most {MOST_LAYERS} layers, its tensors count up to: {count}")
    return count


def take_apart(config: DrafterConfig, found: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Fused tensors as their parts; a fused tensor of another height than its parts' stays as it is.

    Raises JobFailure(checkpoint) where a part is stored by itself as well.
    """
    apart: dict[str, StoredTensor] = {}
    for name, stored in found.items():
        for part, piece in (_parts_of(config, name, stored) or {name: stored}).items():
            _add(apart, part, piece)
    return apart


def _add(found: dict[str, StoredTensor], name: str, tensor: StoredTensor) -> None:
    if name in found:
        raise checkpoint_failure(
            f"two tensors of the drafter mean `{name}`: {found[name].name} and {tensor.name}",
            hint="engines would silently take one of them; export the drafter again",
        )
    found[name] = tensor


def _parts_of(config: DrafterConfig, name: str, stored: StoredTensor) -> dict[str, StoredTensor] | None:
    module, _, kind = name.rpartition(".")
    stem, _, fused = module.rpartition(".")
    parts = _fused_rows(config).get(fused)
    if parts is None or not stored.shape or sum(parts.values()) != stored.shape[0]:
        return None
    pieces, start = {}, 0
    for part, rows in parts.items():
        pieces[f"{stem}.{part}.{kind}"] = stored.part(start, start + rows)
        start += rows
    return pieces


def _fused_rows(config: DrafterConfig) -> dict[str, dict[str, int]]:
    """Fused name -> its parts' names and heights, in order."""
    inner, attention = config.intermediate_size, config.attention
    fused = {"gate_up_proj": {"gate_proj": inner, "up_proj": inner}}
    if isinstance(attention, GroupedAttention):
        query, key = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
        fused["qkv_proj"] = {"q_proj": query, "k_proj": key, "v_proj": key}
    elif attention.q_lora_rank is not None:
        latent = attention.kv_lora_rank + attention.rope_head_dim
        fused["fused_qkv_a_proj_with_mqa"] = {"q_a_proj": attention.q_lora_rank, "kv_a_proj_with_mqa": latent}
    return fused


def _refuse_mixed(found: dict[str, StoredTensor]) -> None:
    """One layer under two spellings: half of each would be taken, whoever reads it."""
    spellings: dict[str, str] = {}
    for name, tensor in found.items():
        match = LAYER.match(tensor.name)
        if match is None:
            continue
        layer, spelling = name.split(".")[1], match[0]
        other = spellings.setdefault(layer, tensor.name)
        if not other.startswith(spelling):
            raise checkpoint_failure(
                f"the tensors of two dialects are mixed in the drafter's layer {layer}: {other} and {tensor.name}",
                hint="engines would silently take some of each; export the drafter again into an empty folder",
            )


def _plain_later_layers(found: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Later layers as speculators writes them: SGLang calls the norm before their attention `hidden_norm`."""

    def plain(name: str) -> str:
        layer, _, rest = name.partition(".hidden_norm.")
        usual = f"{layer}.input_layernorm.{rest}"
        return usual if rest and layer != "layers.0" and usual not in found else name

    return {plain(name): tensor for name, tensor in found.items()}
