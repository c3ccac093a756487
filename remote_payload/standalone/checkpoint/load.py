"""A drafter ready to compute: its own tensors under canonical names, and the few it borrows from the target."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import CheckpointFacts, ConfigNote, DialectFacts, GraphFlag, TensorProblem
from remote_payload.standalone.checkpoint.borrow import Borrowed, borrow
from remote_payload.standalone.checkpoint.config import DrafterConfig, read_drafter_config
from remote_payload.standalone.checkpoint.config_notes import Linted, config_notes
from remote_payload.standalone.checkpoint.dialect import recognise
from remote_payload.standalone.checkpoint.draft_vocabulary import DraftVocabulary, read_vocabulary
from remote_payload.standalone.checkpoint.facts import fact_of, statistics, vocabulary_facts
from remote_payload.standalone.checkpoint.graph_flags import Read, read_graph
from remote_payload.standalone.checkpoint.hygiene import weight_files
from remote_payload.standalone.checkpoint.mended_map import every_map
from remote_payload.standalone.checkpoint.served_notes import served_notes
from remote_payload.standalone.checkpoint.settle import settle, wanted_norms
from remote_payload.standalone.checkpoint.target_files import TargetFiles, read_finite, read_target
from remote_payload.standalone.checkpoint.target_oddities import target_oddities
from remote_payload.standalone.checkpoint.tensor_check import (
    kind_problem,
    name_problems,
    raise_on,
    stored_slots,
    value_problem,
)
from remote_payload.standalone.checkpoint.tensor_names import by_canonical_name, take_apart
from remote_payload.standalone.checkpoint.tensor_shapes import missing_norm
from remote_payload.standalone.checkpoint.unused_notes import unused_notes
from remote_payload.standalone.checkpoint.weight_files import StoredTensor, files_sha256, list_tensors, weight_paths
from remote_payload.standalone.graph import Graph, GroupedAttention


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
    """`target`, `draft`: embed_tokens (V, H) by whose it is: the target's where it fits, the drafter's own where it has
    one that differs."""
    vocabularies: dict[str, torch.Tensor]
    """Target token of each draft token (D,) int64, -1 = none, by `Graph.vocabulary`: that of `graph`, and every other
    that means something else."""
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

    Covered: the dialects of `DialectFacts`, Llama's and DeepSeek's (MLA) layers. Everything else is refused by name.
    """
    config = read_drafter_config(draft)
    stored = list_tensors(draft, "draft")
    if target is None:
        raise checkpoint_failure(
            "the test needs the target model as well, give its folder with --target: its lm_head says what the target "
            "would answer",
            hint="in a job file the key is `target`; only embed_tokens, lm_head and norm are read",
        )
    own = _read_draft(draft, config, stored)
    files = read_target(target)
    if files.rope is not None:  # which numbers of a head are turned together is the drafter's affair
        turned = replace(files.rope, interleaved=own.config.rope.interleaved, rotary_dim=own.config.rope.rotary_dim)
        files = replace(files, rope=turned)
    return _join(own, files)


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """The drafter's folder, read and checked by itself."""

    folder: Path
    config: DrafterConfig
    stored: dict[str, StoredTensor]
    """By stored name, everything in the files."""
    found: dict[str, StoredTensor]
    """By canonical name, the drafter's own."""
    weights: dict[str, torch.Tensor]
    """The usable ones, read; with embed_tokens and d2t."""
    problems: tuple[TensorProblem, ...]
    slots: int
    vocabulary: DraftVocabulary


def _read_draft(folder: Path, config: DrafterConfig, stored: dict[str, StoredTensor]) -> _Draft:
    found = take_apart(config, by_canonical_name(stored.values()))
    config = settle(config, found)
    slots = stored_slots(config, found) or 1
    fc = not config.reads_final_state
    problems = name_problems(config, found, wanted_norms(config, found, slots) if fc else (), fc=fc)
    weights = _read_usable(found, problems)
    raise_on(problems, folder)
    if not fc and config.target_hidden_size != config.hidden_size:
        raise checkpoint_failure(
            f"without fc the drafter must be as wide as the target's states, {config.target_hidden_size}, found: "
            f"{config.hidden_size}"
        )
    return _Draft(
        folder=folder,
        config=config,
        stored=stored,
        found=found,
        weights=weights,
        problems=tuple(problems),
        slots=slots,
        vocabulary=read_vocabulary(weights.get("d2t"), found.get("d2t"), found.get("t2d"), config),
    )


def _read_usable(found: dict[str, StoredTensor], problems: list[TensorProblem]) -> dict[str, torch.Tensor]:
    """Read what is expected and well shaped; adds a problem for each tensor whose numbers cannot be used."""
    weights: dict[str, torch.Tensor] = {}
    unusable = {problem.name for problem in problems} | {"t2d"}
    for name, stored in found.items():
        if name in unusable:
            continue
        problem = kind_problem(name, stored)
        if problem is None:
            weights[name] = stored.read()
            problem = value_problem(name, weights[name])
        if problem:
            problems.append(problem)
    return weights


def _join(own: _Draft, target: TargetFiles) -> Checkpoint:
    config = own.config
    teacher_head = _teacher_head(config, target)
    borrowed = borrow(config, own.weights, own.vocabulary.target_ids, target)
    dialect = recognise(config, own.stored, {tensor.path for tensor in own.stored.values()})
    graph, served, flags = _graph(own, borrowed, dialect)
    target_norm = _target_norm(config, target)
    missing_norm = () if target_norm is not None else (NO_FINAL_NORM,)
    facts = _facts(own, target, borrowed)
    vocabulary = vocabulary_facts(own.vocabulary, own.weights.get("lm_head.weight"), teacher_head)
    return Checkpoint(
        config=config,
        target=target,
        slots=own.slots,
        graph=graph,
        served=served,
        weights=borrowed.weights,
        embeddings=borrowed.embeddings,
        vocabularies=every_map(own.vocabulary, vocabulary),
        teacher_head=teacher_head,
        target_norm=target_norm,
        facts=replace(
            facts,
            dialect=dialect,
            graph=flags,
            notes=_notes(own, target, dialect),
            vocabulary=vocabulary,
        ),
        warnings=(*own.vocabulary.warnings, *borrowed.warnings, *missing_norm, *target_oddities(target)),
    )


def _graph(own: _Draft, borrowed: Borrowed, dialect: DialectFacts) -> tuple[Graph, Graph, tuple[GraphFlag, ...]]:
    norm = own.weights.get("norm.weight")
    read = Read(
        config=own.config,
        dialect=dialect.name,
        names=frozenset(own.found),
        slots=own.slots,
        final_norm_untrained=norm is not None and bool((norm == 1).all()),
        embedding=borrowed.embedding,
        vocabulary=own.vocabulary.flag,
    )
    return read_graph(read)


def _notes(own: _Draft, target: TargetFiles, dialect: DialectFacts) -> tuple[ConfigNote, ...]:
    linted = Linted(
        config=own.config,
        dialect=dialect.name,
        names=frozenset(own.found),
        stored_names=frozenset(own.stored),
        slots=own.slots,
        target_max_positions=target.max_positions,
    )
    return (*config_notes(linted), *unused_notes(linted), *served_notes(linted))


def _teacher_head(config: DrafterConfig, target: TargetFiles) -> torch.Tensor:
    head = target.require("lm_head.weight")
    if head.shape != (config.vocab_size, config.target_hidden_size):
        raise checkpoint_failure(
            f"the target's `{head.name}` must have shape [{config.vocab_size}, {config.target_hidden_size}] by the "
            f"drafter's config.json (vocabulary, target hidden size), found: {list(head.shape)}",
            hint="is this the target the drafter was trained for?",
        )
    return read_finite(head)


NO_FINAL_NORM = "the target's final norm was not found or has another size; the rows' final states were taken as normed"


def _target_norm(config: DrafterConfig, target: TargetFiles) -> torch.Tensor | None:
    norm = target.find("norm.weight")
    return read_finite(norm) if norm is not None and norm.shape == (config.target_hidden_size,) else None


def _facts(own: _Draft, target: TargetFiles, borrowed: Borrowed) -> CheckpointFacts:
    config = own.config
    used = {name: stored for name, stored in own.found.items() if name not in borrowed.lent}
    tensors = [fact_of(name, stored, "draft") for name, stored in used.items()]
    paths = weight_paths(own.folder, "draft")
    return CheckpointFacts(
        draft=str(own.folder),
        target=str(target.folder),
        architecture=config.architecture,
        hidden_size=config.hidden_size,
        target_hidden_size=config.target_hidden_size,
        slots=own.slots,
        vocab_size=config.vocab_size,
        draft_vocab_size=config.draft_vocab_size,
        tensors=(*tensors, *(fact_of(name, stored, "target") for name, stored in borrowed.lent.items())),
        problems=(*own.problems, *missing_norm(config, own.found)),
        weights_sha256=files_sha256(paths),
        config_json=config.text,
        layers=config.layers,
        attention="grouped" if isinstance(config.attention, GroupedAttention) else "latent",
        statistics=statistics(own.weights),
        shared=borrowed.shared,
        files=weight_files(own.folder, paths, own.stored),
    )
