"""Computations that this test does not follow, refused by name: numbers of another computation would be wrong."""

import re
from typing import Any

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import is_one, told
from remote_payload.standalone.checkpoint.flat_config import eagle_config

LLAMA_CLASS = "LlamaForCausalLMEagle3"
REFUSED_CLASSES = {
    "PEagleDraftModel": "P-EAGLE (parallel drafting)",
    "DFlashDraftModel": "DFlash",
    "DSparkDraftModel": "DSpark",
}
SPECULATORS_KINDS = {
    "eagle": "EAGLE-1",
    "peagle": "P-EAGLE (parallel drafting)",
    "dflash": "DFlash",
    "mtp": "multi-token prediction",
    "mlp_speculator": "an MLP speculator",
}
SCALES = ("scale_emb", "scale_depth", "embedding_multiplier", "residual_multiplier", "attention_multiplier")
"""Factors of MiniCPM's and Granite's layers; at 1 they change nothing."""
SWITCHED_OFF = (None, False, 0)

CHANGING_TENSORS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^mask_hidden"), "P-EAGLE (parallel drafting) learns what stands for states that are not there yet"),
    (re.compile(r"^parallel_draft_heads"), "ModelOpt's parallel draft heads"),
    (re.compile(r"^layers\.\d+\.(?:pre|post)_feedforward_layernorm"), "Gemma's four norms a layer"),
    (re.compile(r"^layers\.\d+\.self_attn\.sinks"), "attention sinks"),
    (re.compile(r"^layers\.\d+\.self_attn\..*gate"), "gated attention (Kimi-K3)"),
    (re.compile(r"^layers\.\d+\.mlp\.(?:experts|router|shared_expert)"), "a mixture of experts"),
    (re.compile(r"^layers\.\d+\.mlp\..*\.bias$"), "biases in the MLP"),
    (re.compile(r"^(?:layers\.|fc_norm\.|input_norm|fc\.|norm\.|lm_head\.|transformer\.|fusion_fc)"), "another layer"),
)
"""Stored tensors, by canonical name, that no layer of this test would use; the first pattern that fits names it."""


def refuse_by_config(value: dict[str, Any], architecture: str | None) -> None:
    """Raise JobFailure(checkpoint) naming everything in a flat config that asks for another computation."""
    asked = [*_kinds(value, architecture)]
    if architecture != LLAMA_CLASS:
        asked += _layer_kinds(value)
    if asked:
        raise checkpoint_failure(
            f"the drafter's config.json asks for a computation this test does not follow: {', '.join(asked)}",
            hint="its numbers would be wrong, so it is refused; EAGLE-3 drafters of Llama's and DeepSeek's (MLA) "
            "layers are tested",
        )


def refused_tensor(name: str) -> str | None:
    """Which computation an unused tensor, by canonical name, belongs to; None = nothing that is known."""
    return next((words for pattern, words in CHANGING_TENSORS if pattern.match(name)), None)


def _kinds(value: dict[str, Any], architecture: str | None) -> list[str]:
    asked = []
    if architecture in REFUSED_CLASSES:
        asked.append(f"{REFUSED_CLASSES[architecture]} (`architectures: {architecture}`)")
    kind = value.get("speculators_model_type")
    if kind is not None and kind != "eagle3":
        named = SPECULATORS_KINDS.get(kind, "not EAGLE-3") if isinstance(kind, str) else "not EAGLE-3"
        asked.append(f"{named} (`speculators_model_type: {told(kind)}`)")
    if value.get("hidden_act", "silu") not in ("silu", "swish"):
        asked.append(f"another activation (`hidden_act: {told(value['hidden_act'])}`)")
    if "dflash_config" in value:
        asked.append("DFlash (`dflash_config`)")
    if value.get("parallel_drafting") not in SWITCHED_OFF:
        asked.append("P-EAGLE (`parallel_drafting`)")
    steps = eagle_config(value).get("parallel_draft_step")
    if not (steps in SWITCHED_OFF or is_one(steps)):
        asked.append(f"parallel drafting (`parallel_draft_step: {told(steps)}`)")
    return asked


def _layer_kinds(value: dict[str, Any]) -> list[str]:
    """What the target's layers do differently, which a drafter of Llama's class leaves out whatever model_type says."""
    asked = []
    model = value.get("model_type")
    if isinstance(model, str) and model.startswith("gemma"):
        asked.append(f"Gemma's norms, 1 + weight (`model_type: {model}`)")
    asked += [f"`{key}: {told(value[key])}`" for key in SCALES if not is_one(value.get(key))]
    if value.get("attn_logit_softcapping") is not None:
        asked.append(f"`attn_logit_softcapping: {told(value['attn_logit_softcapping'])}`")
    return asked
