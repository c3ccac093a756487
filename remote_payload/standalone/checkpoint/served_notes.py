"""What SGLang 0.5.23 makes of a drafter's files beyond the graph: tensors it skips, layers it computes otherwise.

Source: `load_weights` and the layers of its `llama_eagle3.py` and `kimi_k25_eagle3.py`. It skips names it does not know
without a word and leaves what is missing at its first value.
"""

import re
from collections.abc import Iterator

from remote_payload.schema.standalone import ConfigNote
from remote_payload.standalone.checkpoint.config_notes import Linted
from remote_payload.standalone.checkpoint.tensor_names import MAP_ALIAS
from remote_payload.standalone.graph import GroupedAttention

QKV_BIAS = re.compile(r"layers\.\d+\.self_attn\.(?:[qkv]_proj|qkv_proj)\.bias$")
SHOWN = 3


def served_notes(linted: Linted) -> tuple[ConfigNote, ...]:
    """Everything that SGLang computes otherwise and no flag of the graph can say."""
    attention = linted.config.attention
    layer = _llama(linted) if isinstance(attention, GroupedAttention) else _latent(linted)
    return (*_names(linted), *layer)


def _note(key: str, problem: str, remedy: str) -> ConfigNote:
    return ConfigNote(key=key, problem=problem, remedy=remedy)


def _names(linted: Linted) -> Iterator[ConfigNote]:
    if "model.lm_head.weight" in linted.stored_names:
        yield _note(
            "model.lm_head.weight",
            "SGLang knows the head only as `lm_head.weight`: it would stay random",
            "rename the tensor to lm_head.weight",
        )
    if linted.stored_names & {MAP_ALIAS, f"model.{MAP_ALIAS}"}:
        yield _note(
            MAP_ALIAS,
            "SGLang knows the map only as `d2t`: it would take draft ids for the target's",
            "rename the tensor to d2t",
        )


def _llama(linted: Linted) -> Iterator[ConfigNote]:
    config, attention = linted.config, linted.config.attention
    assert isinstance(attention, GroupedAttention)
    biases = sorted(name for name in linted.names if QKV_BIAS.match(name))
    if biases:
        yield _note(
            biases[0],
            "SGLang's EAGLE-3 layer has no biases in q, k and v and skips them",
            "serve it with another engine, or train without `attention_bias`",
        )
    if attention.qk_norm:
        yield _note(
            "layers.0.self_attn.q_norm.weight",
            "SGLang's EAGLE-3 layer has no norms over q and k and skips them: another computation",
            "serve it with vLLM, or train with Llama's layer",
        )
    if any(window is not None for window in attention.windows):
        yield _note(
            "sliding_window",
            "SGLang ignores the drafter's window and attends to everything",
            "`--speculative-draft-window-size` sets one for all layers",
        )
    if config.layers > 1 and "layers.1.hidden_norm.weight" not in linted.stored_names:
        yield _note(
            "num_hidden_layers",
            "in later layers SGLang uses `hidden_norm` where these files, as speculators and vLLM, hold "
            "`input_layernorm`: their norm would stay untrained",
            "serve it with vLLM",
        )


def _latent(linted: Linted) -> Iterator[ConfigNote]:
    config = linted.config
    prefixed = sorted(
        name for name in linted.stored_names if name.startswith("model.") and not name.endswith((".d2t", ".t2d"))
    )
    if prefixed:
        yield _note(
            prefixed[0],
            "SGLang's MLA drafter puts `model.` in front of every name itself and skips names that have it: "
            f"{len(prefixed)} tensors would stay random",
            "rename the tensors without `model.`",
        )
    aliased = sorted(name for name in linted.stored_names if "aux_norm_" in name)
    if aliased:
        yield _note(
            aliased[0],
            f"SGLang's MLA drafter does not know the names {', '.join(aliased[:SHOWN])} and skips them",
            "rename them to fc_norm.0, fc_norm.1, fc_norm.2",
        )
    if not isinstance(config.attention, GroupedAttention) and config.attention.q_lora_rank is None:
        yield _note("q_lora_rank", "SGLang's MLA drafter cannot be built without it", "serve it with another engine")
    if config.layers > 1:
        yield _note("num_hidden_layers", "SGLang's MLA drafter has one layer only", "serve it with another engine")
