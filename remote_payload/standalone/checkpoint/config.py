"""config.json of a drafter or target: read, checked, and turned into the few numbers the test needs."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from remote_payload.failure import JobFailure, checkpoint_failure
from remote_payload.standalone.checkpoint.attention_config import is_latent, read_grouped, read_latent
from remote_payload.standalone.checkpoint.config_values import flag, layer_ids, number, positive
from remote_payload.standalone.checkpoint.flat_config import eagle_config, flatten, is_nested
from remote_payload.standalone.checkpoint.refused import refuse_by_config
from remote_payload.standalone.checkpoint.rope_config import Rope, read_rope
from remote_payload.standalone.file_kind import no_file, no_folder
from remote_payload.standalone.graph import GroupedAttention, LatentAttention

LARGEST_EPS = 0.1
"""Real ones are 1e-5 or 1e-6; a large one would quietly make every state zero."""
IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True, kw_only=True)
class DrafterConfig:
    """The numbers of an EAGLE-3 drafter: what config.json says, corrected by the tensors where these tell otherwise."""

    text: str
    """config.json as it stood."""
    architecture: str | None
    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    attention: GroupedAttention | LatentAttention
    layers: int = 1
    vocab_size: int
    draft_vocab_size: int
    rms_norm_eps: float
    max_positions: int
    rope: Rope
    fc_bias: bool
    tie_word_embeddings: bool
    config_ids: tuple[int, ...] | None
    """`eagle_config.eagle_aux_hidden_state_layer_ids`, the only place SGLang reads; None = absent."""
    top_level_ids: tuple[int, ...] | None
    """Ids at the top level, which SGLang never reads for capture."""
    norm_output: bool
    reads_final_state: bool = False
    """Whether it is fed the target's final state, without captured ones and fc: told by config and tensors together."""
    nested: bool = False
    """Whether it is a speculators config."""
    flat: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """config.json with a nested transformer's numbers at the top."""


def read_json(folder: Path, role: str) -> tuple[str, dict[str, Any]]:
    """Text and value of `folder/config.json`; raises JobFailure(checkpoint) naming `role`'s folder."""
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on names that are too long
        raise checkpoint_failure(
            f"the {role}'s folder {no_folder(folder)} on this machine: {folder}",
            hint=f"`{role}` must name a folder on the server that runs the job",
        )
    path = folder / "config.json"
    if (missing := no_file(path)) not in (None, "not there"):
        raise checkpoint_failure(f"the {role}'s config.json must be a file, it is {missing}: {path}")
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
    except FileNotFoundError:
        raise checkpoint_failure(
            f"the {role}'s folder has no config.json: {folder}",
            hint="point at the exported model folder, the one that holds config.json and *.safetensors",
        ) from None
    except RecursionError:
        raise checkpoint_failure(f"the {role}'s config.json is nested too deeply to be read: {path}") from None
    except (OSError, ValueError) as error:
        raise checkpoint_failure(f"the {role}'s config.json cannot be read: {path}: {error}") from None
    if not isinstance(value, dict):
        raise checkpoint_failure(f"the {role}'s config.json must hold an object, found: {type(value).__name__}: {path}")
    return text, value


def architecture_of(value: dict[str, Any]) -> str | None:
    """The first of `architectures`; None where there is none."""
    found = value.get("architectures")
    return found[0] if isinstance(found, list) and found and isinstance(found[0], str) else None


def read_drafter_config(folder: Path) -> DrafterConfig:
    """Read and check a drafter's config.json. Raises JobFailure(checkpoint), also for computations not followed."""
    text, value = read_json(folder, "draft")
    try:
        return _drafter_config(text, value)
    except JobFailure as error:
        raise located(error, folder / "config.json") from None


def located(error: JobFailure, path: Path) -> JobFailure:
    """A failure about a value of a config.json, with the file that holds it."""
    failure = error.failure
    if failure.hint is None:
        return JobFailure(replace(failure, hint=f"correct it in: {path}"))
    return JobFailure(replace(failure, details=(*failure.details, f"in: {path}")))


def _drafter_config(text: str, value: dict[str, Any]) -> DrafterConfig:
    flat = flatten(value)
    refuse_by_config(flat, architecture_of(value))
    hidden, vocab = positive(flat, "hidden_size"), positive(flat, "vocab_size")
    attention = read_latent(flat) if is_latent(flat) else read_grouped(flat, hidden)
    return DrafterConfig(
        text=text,
        architecture=architecture_of(value),
        hidden_size=hidden,
        target_hidden_size=positive(flat, "target_hidden_size", hidden),
        intermediate_size=positive(flat, "intermediate_size"),
        attention=attention,
        layers=positive(flat, "num_hidden_layers", 1),
        vocab_size=vocab,
        draft_vocab_size=positive(flat, "draft_vocab_size", vocab),
        rms_norm_eps=number(flat, "rms_norm_eps", 1e-6, LARGEST_EPS),
        max_positions=positive(flat, "max_position_embeddings", 2048),
        rope=_rope(flat, attention),
        fc_bias=flag(flat, "bias"),
        tie_word_embeddings=flag(flat, "tie_word_embeddings"),
        config_ids=layer_ids(eagle_config(flat).get(IDS)),
        top_level_ids=layer_ids(flat.get(IDS)),
        norm_output=flag(flat, "norm_output"),
        nested=is_nested(value),
        flat=flat,
    )


def _rope(flat: dict[str, Any], attention: GroupedAttention | LatentAttention) -> Rope:
    """MLA turns neighbours unless `rope_interleave: false` says otherwise, Llama's attention halves."""
    if isinstance(attention, LatentAttention):
        interleaved = flat.get("rope_interleave") is None or flag(flat, "rope_interleave")
        return read_rope(flat, head_dim=attention.rope_head_dim, interleaved=interleaved)
    halves = flat.get("rope_is_neox_style") is None or flag(flat, "rope_is_neox_style")
    return read_rope(flat, head_dim=attention.head_dim, interleaved=not halves)
