"""A speculators config.json as SGLang wants it: the nested transformer's numbers at the top, ids in `eagle_config`."""

import json
from collections.abc import Sequence
from typing import Any

from remote_payload.schema import CheckpointFacts

NESTED = "transformer_layer_config"
NESTED_OWN = ("architectures", "auto_map", "model_type", "transformers_version", "tie_word_embeddings")
"""Keys of the nested config that speak of the transformer it was cut from, not of the drafter."""
SPECULATORS = ("speculators", "auto_map", "architectures", "eagle_aux_hidden_state_layer_ids", "norm_before_residual",
               "embed_requires_grad", "transformers_version")  # fmt: skip
"""Beginnings of speculators' own keys that SGLang does not know."""


def eagle_block(ids: Sequence[int]) -> dict[str, Any]:
    """The object `eagle_config` that names `ids` in SGLang's numbering."""
    return {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": list(ids)}


def flat_config(checkpoint: CheckpointFacts, ids: Sequence[int] | None) -> dict[str, Any] | None:
    """The whole config.json that SGLang reads; None where config.json is not nested, or of another layer's kind.

    Without `ids` SGLang's defaults hold. It holds no value of None.
    """
    value = json.loads(checkpoint.config_json)
    inner = value.get(NESTED) if isinstance(value, dict) else None
    if not isinstance(inner, dict) or checkpoint.attention != "grouped":
        return None
    flat = {key: item for key, item in inner.items() if key not in NESTED_OWN}
    flat |= {key: item for key, item in value.items() if key != NESTED and not key.startswith(SPECULATORS)}
    flat |= {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": checkpoint.layers,
        "draft_vocab_size": checkpoint.draft_vocab_size,
        "target_hidden_size": checkpoint.target_hidden_size,
        "eagle_config": {} if ids is None else eagle_block(ids),
    }
    return {key: item for key, item in flat.items() if item is not None}


def whole_config(checkpoint: CheckpointFacts, ids: Sequence[int] | None) -> str | None:
    """A line with that config.json to copy; None where there is none."""
    known = flat_config(checkpoint, ids)
    return None if known is None else f"for SGLang, write as the drafter's config.json: {json.dumps(known)}"
