"""Lint of a drafter's config.json: keys that contradict each other or the tensors, and keys that engines ignore."""

from collections.abc import Iterator
from dataclasses import dataclass

from remote_payload.schema.standalone import ConfigNote
from remote_payload.standalone.checkpoint.config import IDS, DrafterConfig
from remote_payload.standalone.checkpoint.config_values import told
from remote_payload.standalone.checkpoint.dialect import SERVED_CLASSES, Dialect
from remote_payload.standalone.checkpoint.flat_config import eagle_config
from remote_payload.standalone.checkpoint.rope_config import rope_conflicts
from remote_payload.standalone.graph import GroupedAttention


@dataclass(frozen=True, kw_only=True)
class Linted:
    """What the lint looks at."""

    config: DrafterConfig
    """As the tensors corrected it; `flat` is config.json itself."""
    dialect: Dialect
    names: frozenset[str]
    """Canonical names of the stored tensors."""
    stored_names: frozenset[str]
    slots: int
    target_max_positions: int | None


def config_notes(linted: Linted) -> tuple[ConfigNote, ...]:
    """Everything odd about config.json, in a fixed order."""
    return tuple(
        note
        for check in (_architecture, _ids, _slots, _norms, _layers, _vocabulary, _rope, _biases)
        for note in check(linted)
    )


def _note(key: str, problem: str, remedy: str) -> ConfigNote:
    return ConfigNote(key=key, problem=problem, remedy=remedy)


def _architecture(linted: Linted) -> Iterator[ConfigNote]:
    config = linted.config
    latent = not isinstance(config.attention, GroupedAttention)
    wanted = SERVED_CLASSES[1] if latent else SERVED_CLASSES[0]
    if config.nested:
        yield _note(
            "transformer_layer_config",
            "SGLang does not read speculators' nested config.json",
            "vLLM serves it as it is; for SGLang write the nested keys at the top level, with "
            f'`"architectures": ["{wanted}"]` and the ids in `eagle_config`',
        )
    elif config.architecture != wanted:
        yield _note(
            "architectures",
            f"SGLang serves this drafter as {wanted}, config.json says: {config.architecture or 'nothing'}",
            f'`"architectures": ["{wanted}"]`',
        )


def _ids(linted: Linted) -> Iterator[ConfigNote]:
    config, key = linted.config, f"eagle_config.{IDS}"
    if config.top_level_ids is not None and config.config_ids is None:
        yield _note(
            IDS,
            "SGLang reads ids only from `eagle_config` and takes its defaults here; vLLM reads these, as the indices "
            "of hidden states",
            "write them into `eagle_config` as well, in SGLang's numbering",
        )
    elif config.top_level_ids is not None and config.top_level_ids != config.config_ids:
        yield _note(
            IDS,
            f"ids stand in two places and differ: {list(config.top_level_ids)} at the top, which vLLM reads, "
            f"{list(config.config_ids or ())} in `eagle_config`, which SGLang reads",
            "they may be right both, as the numberings differ by one; otherwise keep one",
        )
    ids = config.config_ids if config.config_ids is not None else config.top_level_ids
    where = key if config.config_ids is not None else IDS
    if ids is None:
        return
    if len(set(ids)) != len(ids):
        yield _note(where, f"ids are named twice: {list(ids)}", "engines capture each layer once; name each once")
    if list(ids) != sorted(ids):
        yield _note(
            where,
            f"ids are not in ascending order: {list(ids)}",
            "engines capture in layer order whatever the list says; a drafter trained with another order cannot be "
            "served",
        )
    if len(ids) != linted.slots and "fc.weight" in linted.names:
        yield _note(
            where,
            f"{len(ids)} ids are named, fc joins {linted.slots} states",
            "name one id for each state that fc was trained with",
        )


def _slots(linted: Linted) -> Iterator[ConfigNote]:
    flat, stored = linted.config.flat, "fc.weight" in linted.names
    key = "use_aux_hidden_state"
    found = eagle_config(flat).get(key, flat.get(key))
    if found is False and stored:
        yield _note(key, "it is false, yet fc.weight is stored; the test took the tensors' word", f'`"{key}": true`')
    count = flat.get("num_aux_hidden_states")
    if count is not None and stored and count != linted.slots:
        yield _note(
            "num_aux_hidden_states",
            f"it is {told(count)}, fc joins {linted.slots} states; SGLang fails to load fc",
            f'`"num_aux_hidden_states": {linted.slots}`',
        )
    if "target_hidden_size" in flat and flat["target_hidden_size"] is None:
        yield _note("target_hidden_size", "it is null, with which SGLang cannot compute", "delete the key")
    if stored and linted.slots == 1 and linted.config.target_hidden_size == linted.config.hidden_size:
        yield _note(
            IDS,
            "fc reads one state as wide as the drafter; SGLang takes such a state for the drafter's own and skips fc",
            "serve it with another engine, or train with two states or more",
        )


def _norms(linted: Linted) -> Iterator[ConfigNote]:
    flat, nested = linted.config.flat, eagle_config(linted.config.flat)
    per_slot = any(place.get(name) is True for place in (flat, nested) for name in ("fc_norm", "use_aux_norm"))
    if per_slot and any(place.get("norm_before_fc") is True for place in (flat, nested)):
        yield _note(
            "norm_before_fc",
            "both norms before fc are asked for, at most one can be meant; SGLang applies both, one of them untrained",
            "keep the flag whose tensors are stored: `norm_before_fc` with input_norm, `fc_norm` with fc_norm.*",
        )
    for name in ("fc_norm", "use_aux_norm", "norm_output", "norm_before_residual"):
        if nested.get(name) is True and flat.get(name) is not True:
            yield _note(
                f"eagle_config.{name}", "engines read this flag only at the top level", f'`"{name}": true` at the top'
            )
    if "norm_output" in flat and linted.dialect == "specforge":
        yield _note(
            "norm_output",
            "SpecForge 0.2 means the final norm by it; SGLang, vLLM and newer SpecForge feed back normed outputs then",
            "delete the key for a drafter that SpecForge 0.2 trained",
        )


def _layers(linted: Linted) -> Iterator[ConfigNote]:
    config = linted.config
    said = config.flat.get("num_hidden_layers")
    if said is not None and said != config.layers:
        effect = "would leave the others at random values" if said > config.layers else "would leave the others out"
        yield _note(
            "num_hidden_layers",
            f"it says {said}, {config.layers} layer(s) are stored; the test took the tensors' word, SGLang {effect}",
            f'`"num_hidden_layers": {config.layers}`',
        )


def _vocabulary(linted: Linted) -> Iterator[ConfigNote]:
    config, flat = linted.config, linted.config.flat
    if config.tie_word_embeddings and "lm_head.weight" in linted.names:
        yield _note(
            "tie_word_embeddings",
            "it is true, yet lm_head.weight is stored; the test used the stored one, SGLang takes the embedding",
            '`"tie_word_embeddings": false`',
        )
    if flat.get("draft_vocab_size") is None and "d2t" in linted.names:
        yield _note(
            "draft_vocab_size",
            "it is absent, yet d2t is stored; SGLang would take the target's whole lm_head",
            f'`"draft_vocab_size": {config.draft_vocab_size}`',
        )


def _rope(linted: Linted) -> Iterator[ConfigNote]:
    config = linted.config
    for conflict in rope_conflicts(config.flat):
        yield _note(
            "rope_parameters",
            f"two spellings contradict each other: {conflict}; the test took transformers 5's choice, as SGLang does",
            "keep one spelling, that of training",
        )
    most = linted.target_max_positions
    if most is not None and "max_position_embeddings" in config.flat and config.max_positions < most:
        yield _note(
            "max_position_embeddings",
            f"it is {config.max_positions}, the target's {most}; SGLang refuses a longer --context-length for the "
            "drafter, and beyond its training length acceptance falls",
            f'`"max_position_embeddings": {most}`, if the drafter was trained on long rows',
        )


def _biases(linted: Linted) -> Iterator[ConfigNote]:
    config = linted.config
    said = config.flat.get("attention_bias") is True
    if said != config.attention.bias:
        yield _note(
            "attention_bias",
            f"it is {str(said).lower()}, yet attention biases are {'not ' if said else ''}stored; the test took the "
            "tensors' word",
            f'`"attention_bias": {str(config.attention.bias).lower()}`',
        )
    if "fc.bias" in linted.names and config.flat.get("bias") is not True:
        yield _note("bias", "fc.bias is stored, SGLang skips it unless `bias` is true", '`"bias": true`')
