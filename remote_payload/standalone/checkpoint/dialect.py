"""Whose checkpoint this is: told by config keys and tensor names, with the evidence, and what else it could be.

The dialect decides how the same key is read (`norm_output`) and what holds where config.json is silent. Where files do
not tell two dialects apart, the second is named as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from remote_payload.schema.standalone import DialectFacts
from remote_payload.standalone.checkpoint.config import IDS, DrafterConfig
from remote_payload.standalone.checkpoint.config_values import told
from remote_payload.standalone.checkpoint.flat_config import eagle_config

Dialect = Literal[
    "specforge", "safeailab", "speculators", "speculators_old", "vllm", "modelopt", "torchspec", "automodel", "unknown"
]

SPECULATORS_KEYS = ("norm_before_fc", "fc_norm", "norm_output", IDS)
"""What speculators' eagle3 config gained after its first releases; save_pretrained writes all of them."""
MODELOPT_KEYS = (
    "use_mtp_layernorm",
    "use_input_layernorm_in_first_layer",
    "use_last_layernorm",
    "next_layer_regular",
    "parallel_draft_step",
    "parallel_draft_heads_num_layers",
)
"""Keys that Model-Optimizer's exporter writes into `eagle_config`."""
SERVED_CLASSES = ("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM")


@dataclass(frozen=True, kw_only=True)
class _Signs:
    """What may tell: the flat config, and how the tensors are spelled and stored."""

    value: dict[str, Any]
    architecture: str | None
    midlayer: bool
    prefixed: bool
    """All names begin with `model.`, but for the head and the map."""
    pickled: bool
    embedding: bool


def recognise(config: DrafterConfig, stored_names: Iterable[str], paths: Iterable[Path]) -> DialectFacts:
    """The dialect of a drafter by its config, its tensors' stored names and the files they came from."""
    names = list(stored_names)
    signs = _Signs(
        value=config.flat,
        architecture=config.architecture,
        midlayer=any(name.removeprefix("model.").startswith("midlayer.") for name in names),
        prefixed=any(name.startswith("model.layers.") for name in names),
        pickled=any(path.suffix != ".safetensors" for path in paths),
        embedding=any(name.endswith("embed_tokens.weight") for name in names),
    )
    if config.nested:
        return _speculators(signs.value)
    spelling = "midlayer.*" if signs.midlayer else "model.layers.*" if signs.prefixed else "layers.*"
    name, evidence, others = _by_midlayer(signs) if signs.midlayer else _by_layers(signs)
    return DialectFacts(name=name, evidence=(f"tensors are named `{spelling}`", *evidence), also_possible=others)


_Told = tuple[Dialect, tuple[str, ...], tuple[str, ...]]


def _speculators(value: dict[str, Any]) -> DialectFacts:
    kind = f"`speculators_model_type: {value.get('speculators_model_type')}`"
    version = f"`speculators_version: {told(value.get('speculators_version'))}`"
    newer = [key for key in SPECULATORS_KEYS if key in value]
    if newer:
        return DialectFacts(name="speculators", evidence=(kind, version, f"the keys {', '.join(newer)}"))
    absent = f"none of the keys {', '.join(SPECULATORS_KEYS)}"
    return DialectFacts(name="speculators_old", evidence=(kind, version, absent), also_possible=("speculators",))


def _by_midlayer(signs: _Signs) -> _Told:
    if signs.architecture == "Eagle3DeepseekV2ForCausalLM":
        return "torchspec", ("`architectures: Eagle3DeepseekV2ForCausalLM`, which SpecForge does not train",), ()
    if signs.architecture == "LlamaForCausalLM":
        return "safeailab", ("`architectures: LlamaForCausalLM`, as for an ordinary model",), ()
    if signs.pickled and "eagle_config" not in signs.value and not signs.embedding:
        evidence = ("weights in a torch file, no `eagle_config`, no embed_tokens",)
        return "safeailab", evidence, ("specforge", "torchspec")
    named = (f"`architectures: {signs.architecture}`", *_ids_evidence(signs.value))
    return "specforge", named, ("torchspec",) if "eagle_config" in signs.value else ("torchspec", "safeailab")


def _by_layers(signs: _Signs) -> _Told:
    nested = eagle_config(signs.value)
    modelopt = [key for key in MODELOPT_KEYS if key in nested]
    if modelopt:
        return "modelopt", (f"`eagle_config` holds {', '.join(modelopt)}",), ()
    if IDS in signs.value:
        return "vllm", (f"`{IDS}` stands at the top level of config.json",), ("torchspec",)
    if signs.prefixed:
        return "automodel", ("all of the model's tensors begin with `model.`",), ("vllm",)
    if IDS in nested:
        return "modelopt", _ids_evidence(signs.value), ("torchspec", "vllm")
    return "unknown", ("no key of config.json is one framework's alone",), ("modelopt", "torchspec", "vllm")


def _ids_evidence(value: dict[str, Any]) -> tuple[str, ...]:
    return (f"`{IDS}` stands in `eagle_config`",) if IDS in eagle_config(value) else ()
