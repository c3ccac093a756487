"""What a drafter takes from its target: the embedding, and a head where it has none of its own."""

from dataclasses import dataclass, field
from typing import Literal

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import SharedTensorFacts
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.shared_tensors import identical, mean_cosine
from remote_payload.standalone.checkpoint.target_files import TargetFiles, read_finite
from remote_payload.standalone.checkpoint.weight_files import StoredTensor

EMBEDDING, HEAD, NORM = "embed_tokens.weight", "lm_head.weight", "norm.weight"
Embedding = Literal["absent", "unlike_size", "equal", "differs"]
Served = Literal["draft", "target", "random"]


@dataclass(frozen=True, kw_only=True)
class Borrowed:
    """The drafter's weights made complete."""

    weights: dict[str, torch.Tensor]
    """Canonical name -> tensor, without embed_tokens and d2t."""
    embeddings: dict[str, torch.Tensor]
    """`target` and `draft`, as in `Checkpoint`."""
    embedding: Embedding
    """The stored embed_tokens against the target's."""
    lent: dict[str, StoredTensor] = field(default_factory=dict)
    """The target's tensors that stand in for the drafter's."""
    shared: tuple[SharedTensorFacts, ...]
    warnings: tuple[str, ...]


def borrow(
    config: DrafterConfig, own: dict[str, torch.Tensor], target_ids: torch.Tensor, target: TargetFiles
) -> Borrowed:
    """Complete the drafter's `own` tensors; `target_ids` (D,) are the tokens its ids mean, -1 = none.

    Raises JobFailure(checkpoint) where the target's tensors do not fit.
    """
    lent: dict[str, StoredTensor] = {}
    weights = {name: tensor for name, tensor in own.items() if name not in (EMBEDDING, "d2t")}
    embeddings, kind = _embeddings(config, own.get(EMBEDDING), target, lent)
    warnings = []
    if kind == "differs":
        warnings.append(
            "the drafter's own embed_tokens differs from the target's, which SGLang uses in its place; both are tested"
        )
    if HEAD not in weights:
        warnings += _lend_head(config, weights, target_ids, embeddings, target, lent)
    if NORM not in weights:
        weights[NORM] = torch.ones(config.hidden_size)
        warnings.append(
            "the drafter has no final norm: the test computed with ones, at which engines leave it; what it was "
            "trained with is not known"
        )
    return Borrowed(
        weights=weights,
        embeddings=embeddings,
        embedding=kind,
        lent=lent,
        shared=(_embedding_facts(config, own, embeddings, kind), _head_facts(config, own, target_ids, target)),
        warnings=tuple(warnings),
    )


def _embeddings(
    config: DrafterConfig, own: torch.Tensor | None, target: TargetFiles, lent: dict[str, StoredTensor]
) -> tuple[dict[str, torch.Tensor], Embedding]:
    if config.target_hidden_size != config.hidden_size and own is not None:
        return {"draft": own}, "unlike_size"
    shared = _take(EMBEDDING, (config.vocab_size, config.hidden_size), target, lent)
    if own is None:
        return {"target": shared}, "absent"
    if identical(own, shared):
        return {"target": shared}, "equal"
    return {"target": shared, "draft": own}, "differs"


def _lend_head(
    config: DrafterConfig,
    weights: dict[str, torch.Tensor],
    target_ids: torch.Tensor,
    embeddings: dict[str, torch.Tensor],
    target: TargetFiles,
    lent: dict[str, StoredTensor],
) -> list[str]:
    if config.tie_word_embeddings:
        weights[HEAD] = next(iter(embeddings.values()))[target_ids.clamp(min=0)]
        return []
    head = _take(HEAD, (config.vocab_size, config.hidden_size), target, lent)
    weights[HEAD] = head[target_ids.clamp(min=0)]
    if config.flat.get("draft_vocab_size") is None:
        return []
    return [
        "the drafter has no lm_head; the test used the target's rows of its vocabulary, but SGLang would leave it at "
        "random values"
    ]


def _take(name: str, shape: tuple[int, ...], target: TargetFiles, lent: dict[str, StoredTensor]) -> torch.Tensor:
    stored = target.require(name)
    if stored.shape != shape:
        raise checkpoint_failure(
            f"the target's `{stored.name}` must have shape {list(shape)} to serve the drafter, found: "
            f"{list(stored.shape)}",
            hint="is this the target the drafter was trained for?",
        )
    lent[name] = stored
    return read_finite(stored)


def _embedding_facts(
    config: DrafterConfig, own: dict[str, torch.Tensor], embeddings: dict[str, torch.Tensor], kind: Embedding
) -> SharedTensorFacts:
    stored = own.get(EMBEDDING)
    apart = config.target_hidden_size != config.hidden_size
    served: Served = "target" if not apart else "draft" if stored is not None else "random"
    cosine = mean_cosine(stored, embeddings["target"]) if stored is not None and "target" in embeddings else None
    return SharedTensorFacts(
        name="embed_tokens",
        stored=stored is not None,
        used="target" if "target" in embeddings else "draft",
        identical={"equal": True, "differs": False}.get(kind),
        mean_cosine=cosine,
        served=served,
    )


def _head_facts(
    config: DrafterConfig, own: dict[str, torch.Tensor], target_ids: torch.Tensor, target: TargetFiles
) -> SharedTensorFacts:
    stored, theirs = own.get(HEAD), target.require(HEAD)
    served: Served = "draft" if stored is not None else "random"
    if config.tie_word_embeddings or config.flat.get("draft_vocab_size") is None:
        served = "target"
    same = cosine = None
    if stored is not None and theirs.shape[1] == config.hidden_size:
        head = theirs.read()
        cosine = mean_cosine(stored, head, target_ids)
        same = bool((target_ids >= 0).all()) and identical(stored, head, target_ids)
    return SharedTensorFacts(
        name="lm_head",
        stored=stored is not None,
        used="draft" if stored is not None else "target",
        identical=same,
        mean_cosine=cosine,
        served=served,
    )
