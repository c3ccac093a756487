"""A drafter ready to compute: its own tensors under canonical names, and the few it borrows from the target."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import CheckpointFacts, TensorFact, TensorProblem
from remote_payload.standalone.checkpoint.config import DrafterConfig, read_drafter_config
from remote_payload.standalone.checkpoint.draft_vocabulary import agrees, target_ids
from remote_payload.standalone.checkpoint.target_files import TargetFiles, read_finite, read_target
from remote_payload.standalone.checkpoint.tensor_check import (
    kind_problem,
    name_problems,
    raise_on,
    stored_slots,
    value_problem,
)
from remote_payload.standalone.checkpoint.tensor_names import canonical_name
from remote_payload.standalone.checkpoint.weight_files import StoredTensor, files_sha256, list_tensors, weight_paths
from remote_payload.standalone.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A drafter, with what it borrows from the target."""

    config: DrafterConfig
    target: TargetFiles
    slots: int
    """How many captured states fc joins."""
    graph: Graph
    """The computation that config.json and tensors mean by the dialect's own rules."""
    served: Graph
    """What SGLang computes from the same files."""
    weights: dict[str, torch.Tensor]
    """Canonical name -> tensor in its stored dtype, on the CPU; without embed_tokens, d2t and t2d."""
    embeddings: dict[str, torch.Tensor]
    """`target`, `draft`: embed_tokens (V, H) by whose it is, where there is one of the drafter's hidden size."""
    vocabularies: dict[str, torch.Tensor]
    """`offset`, `absolute`, `identity`: target token of each draft token (D,) int64, -1 where it leads nowhere. The one
    of `graph` is always there; others where d2t can be read so and means something else."""
    teacher_head: torch.Tensor
    """The target's lm_head, (V, Ht)."""
    target_norm: torch.Tensor | None
    """The target's final norm, (Ht,); None where it was not found."""
    facts: CheckpointFacts
    warnings: tuple[str, ...]

    @property
    def target_ids(self) -> torch.Tensor:
        """Target token of each draft token, (D,) int64, by the checkpoint's own reading of d2t."""
        return self.vocabularies[self.graph.vocabulary]


def load_checkpoint(draft: Path, target: Path | None) -> Checkpoint:
    """Read the drafter and the three tensors of the target it needs. Raises JobFailure(checkpoint).

    The embedding is the target's wherever it fits, as in SGLang, which replaces the drafter's own (`set_embed`).
    """
    config = read_drafter_config(draft)
    found = _by_canonical_name(list_tensors(draft, "draft"))
    if target is None:
        raise checkpoint_failure(
            "the test needs the target model as well, give its folder with --target: its lm_head says what the target "
            "would answer",
            hint="in a job file the key is `target`; only embed_tokens, lm_head and norm are read",
        )
    return _Loader(draft, config, found, read_target(target)).load()


def _by_canonical_name(stored: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for tensor in stored.values():
        name = canonical_name(tensor.name)
        if name in found:
            raise checkpoint_failure(
                f"two tensors of the drafter mean `{name}`: {found[name].name} and {tensor.name}",
                hint="engines would silently take one of them; export the drafter again",
            )
        found[name] = tensor
    return found


class _Loader:
    """One load; collects facts, problems and warnings on the way."""

    def __init__(self, draft: Path, config: DrafterConfig, found: dict[str, StoredTensor], target: TargetFiles) -> None:
        self.draft, self.config, self.found, self.target = draft, config, found, target
        self.slots = stored_slots(config, found)
        self.facts: dict[str, TensorFact] = {}
        self.problems: list[TensorProblem] = []
        self.warnings: list[str] = []

    def load(self) -> Checkpoint:
        self.problems = name_problems(self.config, self.found)
        weights = self._read_draft()
        raise_on(self.problems, self.draft)
        self._check_target_sizes()
        target_ids = self._target_ids(weights)
        self._borrow(weights, target_ids)
        noted = self.facts.get("embed_tokens.weight")
        own: Literal["draft", "target"] = noted.source if noted else "draft"
        graph = Graph(rope=self.config.rope, embedding=own)
        return Checkpoint(
            graph=graph,
            served=graph,
            embeddings={own: weights.pop("embed_tokens.weight")},
            vocabularies={"offset": target_ids},
            config=self.config,
            target=self.target,
            slots=self.slots or 1,
            weights=weights,
            teacher_head=read_finite(self.target.require("lm_head.weight")),
            target_norm=self._target_norm(),
            facts=self._checkpoint_facts(),
            warnings=tuple(self.warnings),
        )

    def _target_norm(self) -> torch.Tensor | None:
        norm = self.target.find("norm.weight")
        if norm is not None and norm.shape == (self.config.target_hidden_size,):
            return read_finite(norm)
        self.warnings.append(
            "the target's final norm was not found or has another size; the rows' final states were taken as normed"
        )
        return None

    def _read_draft(self) -> dict[str, torch.Tensor]:
        """Read what is expected and well shaped."""
        weights: dict[str, torch.Tensor] = {}
        unusable = {problem.name for problem in self.problems} | {"t2d"}
        for name, stored in self.found.items():
            if name in unusable:
                continue
            problem = kind_problem(name, stored)
            if problem is None:
                weights[name] = stored.read()
                problem = value_problem(name, weights[name])
            if problem:
                self.problems.append(problem)
            self._note(name, stored, "draft")
        return weights

    def _check_target_sizes(self) -> None:
        config = self.config
        head = self.target.require("lm_head.weight")
        if head.shape != (config.vocab_size, config.target_hidden_size):
            raise checkpoint_failure(
                f"the target's `{head.name}` must have shape [{config.vocab_size}, {config.target_hidden_size}] by the "
                f"drafter's config.json (vocabulary, target hidden size), found: {list(head.shape)}",
                hint="is this the target the drafter was trained for?",
            )

    def _target_ids(self, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        ids = target_ids(weights.pop("d2t", None), self.config)
        mask = self.found.get("t2d")
        if mask is not None and not agrees(mask, ids):
            self.warnings.append(
                "t2d names other target tokens than d2t leads to; the test used d2t, as engines do, but a trainer that "
                "masked by t2d trained on other tokens"
            )
        return ids

    def _borrow(self, weights: dict[str, torch.Tensor], target_ids: torch.Tensor) -> None:
        config = self.config
        self._borrow_embedding(weights)
        if config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["embed_tokens.weight"][target_ids]
        elif "lm_head.weight" not in weights:
            head = self._take("lm_head.weight", (config.vocab_size, config.hidden_size))
            weights["lm_head.weight"] = head[target_ids]
            if config.draft_vocab_size != config.vocab_size:
                self.warnings.append(
                    "the drafter has no lm_head; the test used the target's rows of its vocabulary, but SGLang would "
                    "leave it at random values"
                )
        if "norm.weight" not in weights:
            weights["norm.weight"] = self._take("norm.weight", (config.hidden_size,))
            self.warnings.append(
                "the drafter has no final norm; the test used the target's; SGLang would leave it at its first value"
            )

    def _borrow_embedding(self, weights: dict[str, torch.Tensor]) -> None:
        config, own = self.config, weights.get("embed_tokens.weight")
        if config.target_hidden_size != config.hidden_size and own is not None:
            return
        shared = self._take("embed_tokens.weight", (config.vocab_size, config.hidden_size))
        if own is not None and not torch.equal(own.to(shared.dtype), shared):
            self.warnings.append(
                "the drafter's own embed_tokens differs from the target's; the test used the target's, as SGLang does"
            )
        weights["embed_tokens.weight"] = shared

    def _take(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        stored = self.target.require(name)
        if stored.shape != shape:
            raise checkpoint_failure(
                f"the target's `{stored.name}` must have shape {list(shape)} to serve the drafter, found: "
                f"{list(stored.shape)}",
                hint="is this the target the drafter was trained for?",
            )
        self._note(name, stored, "target")
        return read_finite(stored)

    def _note(self, name: str, stored: StoredTensor, source: Literal["draft", "target"]) -> None:
        self.facts[name] = TensorFact(
            name=name, stored_name=stored.name, shape=stored.shape, dtype=stored.dtype, source=source
        )

    def _checkpoint_facts(self) -> CheckpointFacts:
        config = self.config
        return CheckpointFacts(
            draft=str(self.draft),
            target=str(self.target.folder),
            architecture=config.architecture,
            hidden_size=config.hidden_size,
            target_hidden_size=config.target_hidden_size,
            slots=self.slots or 1,
            vocab_size=config.vocab_size,
            draft_vocab_size=config.draft_vocab_size,
            tensors=tuple(self.facts.values()),
            problems=tuple(self.problems),
            weights_sha256=files_sha256(weight_paths(self.draft, "draft")),
            config_json=config.text,
        )
