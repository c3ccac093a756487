"""One flat view of the dialects' config.json: speculators nest the transformer's numbers, others write them at the top.

speculators: `transformer_layer_config` holds a whole transformers config of the drafter's layers, the drafter's own
keys stand beside it. Source: speculators 0.9.0 `Eagle3SpeculatorConfig`. Old and new files have the same form.
"""

from typing import Any

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import told

NESTED = "transformer_layer_config"
OWN_KEYS = ("architectures", "auto_map", "transformers_version", "dtype", "torch_dtype", "tie_word_embeddings")
"""Keys that describe the nested transformer where they stand in it, not the drafter."""


def is_nested(value: dict[str, Any]) -> bool:
    """Whether this is a speculators config."""
    return NESTED in value or "speculators_model_type" in value


def flatten(value: dict[str, Any]) -> dict[str, Any]:
    """The config with a nested transformer's numbers at the top; a config without one comes back as it is.

    Raises JobFailure(checkpoint).
    """
    if not is_nested(value):
        return value
    inner = value.get(NESTED)
    if not isinstance(inner, dict):
        raise checkpoint_failure(
            f"a speculators config.json needs an object `{NESTED}`, found: {told(inner)}",
            hint="old EAGLE-1 checkpoints of speculators are not tested here; export an `eagle3` one",
        )
    own = {key: found for key, found in value.items() if key != NESTED and found is not None}
    return {key: found for key, found in inner.items() if key not in OWN_KEYS} | own


def eagle_config(value: dict[str, Any]) -> dict[str, Any]:
    """The object `eagle_config`; empty where there is none. Raises JobFailure(checkpoint) where it is no object."""
    found = value.get("eagle_config")
    if found is not None and not isinstance(found, dict):
        raise checkpoint_failure(f"the drafter's config.json needs an object `eagle_config`, found: {told(found)}")
    return found or {}
