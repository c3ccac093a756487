"""The target's folder: its config, and the only three of its tensors that the test reads."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from remote_payload.failure import JobFailure, checkpoint_failure
from remote_payload.standalone.checkpoint.config import LARGEST_EPS, DrafterConfig, architecture_of, located, read_json
from remote_payload.standalone.checkpoint.config_values import told
from remote_payload.standalone.checkpoint.pieces import count_not_finite
from remote_payload.standalone.checkpoint.rope_config import Rope, read_rope
from remote_payload.standalone.checkpoint.weight_files import FLOATS, StoredTensor, list_tensors

READ = ("embed_tokens.weight", "lm_head.weight", "norm.weight")
OTHER_PARTS = ("layers", "visual", "vision", "audio", "mtp", "mm_projector", "multi_modal")
"""Parts of a model whose embedding and norm are not the text model's; DeepSeek's MTP layer has its own copies."""


@dataclass(frozen=True, kw_only=True)
class TargetFiles:
    """What the target's folder says, before any tensor of it is read."""

    folder: Path
    architecture: str | None
    layers: int | None
    tied: bool
    rms_norm_eps: float
    tensors: dict[str, StoredTensor]
    rope: Rope | None = None
    """The target's own rotary embedding, labelled `target's`; None = of a kind that this test does not compute."""
    max_positions: int | None = None
    value: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """config.json, the text model's part of it."""
    has_class: bool = True
    """Whether `architectures` is absent, or names a class."""

    def find(self, name: str) -> StoredTensor | None:
        """The stored `embed_tokens.weight`, `lm_head.weight` or `norm.weight`, under whatever prefix; None = absent.

        A tied target has no lm_head of its own: its embedding stands for it.
        """
        found = sorted((stored for stored in self.tensors if _is_text(stored, name)), key=len)
        if found:
            return self.tensors[found[0]]
        return self.find("embed_tokens.weight") if name == "lm_head.weight" and self.tied else None

    def require(self, name: str) -> StoredTensor:
        """As `find`; raises JobFailure(checkpoint) where the tensor is absent or quantised."""
        stored = self.find(name)
        if stored is None:
            raise checkpoint_failure(
                f"the target has no `{name}` under any known prefix: {self.folder}",
                hint="the test reads embed_tokens, lm_head and the final norm of the target; is this its whole folder?",
            )
        _check_floats(stored)
        return stored

    def embedding(self, config: DrafterConfig) -> torch.Tensor | None:
        """The target's own embedding (V, Ht), whatever the drafter borrowed; None where it has none of that shape."""
        stored = self.find("embed_tokens.weight")
        wanted = (config.vocab_size, config.target_hidden_size)
        return stored.read() if stored and stored.shape == wanted and stored.dtype in FLOATS else None


def read_target(folder: Path) -> TargetFiles:
    """Look at a target's folder without reading its weights. Raises JobFailure(checkpoint)."""
    _, value = read_json(folder, "target")
    nested = value.get("text_config")
    text = nested if isinstance(nested, dict) else value
    try:
        eps = _eps(text)
    except JobFailure as error:
        raise located(error, folder / "config.json") from None
    return TargetFiles(
        folder=folder,
        architecture=architecture_of(value),
        layers=_count(text, "num_hidden_layers"),
        tied=bool(text.get("tie_word_embeddings", value.get("tie_word_embeddings", False))),
        rms_norm_eps=eps,
        rope=_rope(text),
        value=text,
        has_class=value.get("architectures") is None or architecture_of(value) is not None,
        max_positions=_count(text, "max_position_embeddings"),
        tensors=list_tensors(folder, "target", lambda stored: any(_is_text(stored, name) for name in READ)),
    )


def read_finite(stored: StoredTensor) -> torch.Tensor:
    """Read a target's tensor; raises JobFailure(checkpoint) when it is quantised or holds NaN or infinity."""
    _check_floats(stored)
    tensor = stored.read()
    if count_not_finite(tensor):
        raise checkpoint_failure(f"the target's `{stored.name}` holds NaN or infinity: {stored.path}")
    return tensor


def _check_floats(stored: StoredTensor) -> None:
    if stored.dtype not in FLOATS:
        raise checkpoint_failure(
            f"the target's `{stored.name}` must hold floats, found a quantised {stored.dtype}: {stored.path}",
            hint="give the folder of the unquantised target; only three of its tensors are read",
        )


def _rope(text: dict[str, Any]) -> Rope | None:
    try:
        rope = read_rope(text, whose="target", label="target's")
    except JobFailure:  # no reading of the drafter needs it
        return None
    original = "original_max_position_embeddings"
    length = _count(text, "max_position_embeddings")
    if rope.kind in ("yarn", "llama3") and original not in rope.scaling and length is not None:
        return replace(rope, scaling=rope.scaling | {original: float(length)})
    return rope if rope.kind != "dynamic" else None  # it depends on the target's own length


def _count(text: dict[str, Any], key: str) -> int | None:
    found = text.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _eps(text: dict[str, Any]) -> float:
    found = text.get("rms_norm_eps")
    if found is not None and not (isinstance(found, float) and 0 < found <= LARGEST_EPS):
        raise checkpoint_failure(
            f"the target's config.json needs a positive `rms_norm_eps` of at most {LARGEST_EPS:g}, found: {told(found)}"
        )
    return 1e-6 if found is None else found


def _is_text(stored: str, name: str) -> bool:
    """Whether a stored name is the text model's `name`, with a prefix such as `model.` or `language_model.model.`."""
    prefix = stored.removesuffix(name)
    if prefix == stored or (prefix and not prefix.endswith(".")):
        return False
    return not any(part.startswith(OTHER_PARTS) for part in prefix.split("."))
