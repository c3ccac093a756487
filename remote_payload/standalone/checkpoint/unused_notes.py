"""Keys of a drafter's config.json that ask for what its plain tensors are not, or that its layer class never reads."""

from collections.abc import Iterator

from remote_payload.schema.standalone import ConfigNote
from remote_payload.standalone.checkpoint.config_notes import Linted
from remote_payload.standalone.checkpoint.config_values import is_one, told
from remote_payload.standalone.checkpoint.refused import LLAMA_CLASS, SCALES

DTYPES = ("float32", "float16", "bfloat16", "float64", "auto")
"""Of plain weights, with or without `torch.` in front."""
DTYPE_KEYS = ("torch_dtype", "dtype")


def unused_notes(linted: Linted) -> tuple[ConfigNote, ...]:
    """What of config.json the test did not follow, as the tensors or the class say otherwise."""
    return (*_quantised(linted), *_layer(linted))


def _quantised(linted: Linted) -> Iterator[ConfigNote]:
    flat = linted.config.flat
    for key in ("quantization_config", "compression_config"):
        if flat.get(key):
            yield ConfigNote(
                key=key,
                problem="the weights are plain floats, yet it says they are quantised: engines would look for scales "
                "that are not there, or quantise the drafter while loading",
                remedy="delete the key",
            )
    for key in DTYPE_KEYS:
        found = flat.get(key)
        if found is not None and not (isinstance(found, str) and found.removeprefix("torch.") in DTYPES):
            yield ConfigNote(
                key=key,
                problem=f"the weights are plain floats, yet it is {told(found)}",
                remedy=f'`"{key}": "bfloat16"`, or the dtype of training',
            )


def _layer(linted: Linted) -> Iterator[ConfigNote]:
    """What the target's family does and Llama's class never does, whatever else config.json says."""
    config = linted.config
    if config.architecture != LLAMA_CLASS:
        return  # refused
    model = config.flat.get("model_type")
    if isinstance(model, str) and model.startswith("gemma"):
        yield ConfigNote(
            key="model_type",
            problem=f"it is {model}, whose norms are 1 + weight; {LLAMA_CLASS} computes Llama's, and so did the test",
            remedy='`"model_type": "llama"`; where training used the other norms, no engine serves this drafter',
        )
    scales = [key for key in (*SCALES, "attn_logit_softcapping") if _scales(key, config.flat.get(key))]
    for key in scales:
        yield ConfigNote(
            key=key,
            problem=f"it is {told(config.flat[key])}; {LLAMA_CLASS} never reads it, and the test left it out as well",
            remedy="delete the key, unless training used it: then no engine serves this drafter",
        )


def _scales(key: str, found: object) -> bool:
    return found is not None and not (key in SCALES and is_one(found))
