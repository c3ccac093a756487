"""The drafter's weights: read, named canonically, and everything that is wrong with them told at once."""

from dataclasses import dataclass
from pathlib import Path

import torch

from remote_payload.failure import checkpoint_failure, job_failure
from remote_payload.schema.standalone import CheckpointFacts, TensorFact, TensorProblem
from remote_payload.standalone.config import DrafterConfig, read_drafter_config
from remote_payload.standalone.target_files import TargetFiles, read_finite, read_target
from remote_payload.standalone.tensor_names import (
    GRAPH_CHANGING,
    canonical_name,
    expected_shapes,
    optional_shapes,
)
from remote_payload.standalone.weight_files import StoredTensor, files_sha256, list_tensors, weight_paths


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A drafter ready to compute, with what it borrows from the target."""

    config: DrafterConfig
    target: TargetFiles
    slots: int
    """How many captured states fc joins."""
    weights: dict[str, torch.Tensor]
    """Canonical name -> tensor in its stored dtype, on the CPU."""
    teacher_head: torch.Tensor
    """The target's lm_head, (V, Ht)."""
    target_norm: torch.Tensor | None
    """The target's final norm, (Ht,); None where it was not found."""
    target_ids: torch.Tensor
    """Target token of each draft token, (D,) int64."""
    facts: CheckpointFacts
    warnings: tuple[str, ...]


def load_checkpoint(draft: Path, target: Path | None) -> Checkpoint:
    """Read the drafter and the three tensors of the target it needs. Raises JobFailure (checkpoint or job).

    The embedding is the target's wherever it fits, as in SGLang, which replaces the drafter's own (`set_embed`).
    """
    config = read_drafter_config(draft)
    stored = list_tensors(draft, "draft")
    if target is None:
        raise job_failure(
            "the test needs the target's folder: its lm_head says what the target would answer",
            hint="name it with `target` in the job file or --target; only embed_tokens, lm_head and norm are read",
        )
    found = {canonical_name(name): tensor for name, tensor in stored.items()}
    return _Loader(draft, config, found, read_target(target)).load()


class _Loader:
    """One load; collects facts, problems and warnings on the way."""

    def __init__(self, draft: Path, config: DrafterConfig, found: dict[str, StoredTensor], target: TargetFiles) -> None:
        self.draft, self.config, self.found, self.target = draft, config, found, target
        self.facts: list[TensorFact] = []
        self.problems: list[TensorProblem] = []
        self.warnings: list[str] = []
        self.slots = self._slots()

    def load(self) -> Checkpoint:
        self._check_target_sizes()
        self._check_names()
        weights = self._read_draft()
        self._raise_on_problems()
        target_ids = self._target_ids(weights)
        self._borrow(weights, target_ids)
        return Checkpoint(
            config=self.config,
            target=self.target,
            slots=self.slots or 1,
            weights=weights,
            teacher_head=read_finite(self.target.require("lm_head.weight")),
            target_norm=self._target_norm(),
            target_ids=target_ids,
            facts=self._checkpoint_facts(),
            warnings=tuple(self.warnings),
        )

    def _slots(self) -> int | None:
        """How many target states fc joins; None where the stored fc does not say."""
        fc = self.found.get("fc.weight")
        width = fc.shape[1] if fc is not None and len(fc.shape) == 2 else 0
        return (
            width // self.config.target_hidden_size if width and width % self.config.target_hidden_size == 0 else None
        )

    def _check_target_sizes(self) -> None:
        config = self.config
        head = self.target.require("lm_head.weight")
        if head.shape != (config.vocab_size, config.target_hidden_size):
            raise checkpoint_failure(
                f"drafter and target disagree: the drafter's config.json says vocabulary {config.vocab_size} and target "
                f"hidden size {config.target_hidden_size}, the target's `{head.name}` is: {list(head.shape)}",
                hint="is this the target the drafter was trained for? (`vocab_size`, `target_hidden_size`)",
            )

    def _check_names(self) -> None:
        """Missing, unexpected and misshapen, all at once."""
        expected = expected_shapes(self.config, self.slots)
        borrowable = {"embed_tokens.weight", "lm_head.weight", "norm.weight"}
        for name, shape in expected.items():
            stored = self.found.get(name)
            if stored is None and name not in borrowable:
                self._problem("missing", name, f"shape {list(shape)}", "nothing")
        shapes = optional_shapes(self.config) | expected
        for name, stored in self.found.items():
            if name not in shapes:
                self._problem("unexpected", name, "no such tensor", f"`{stored.name}` {list(stored.shape)}")
            elif stored.shape != shapes[name]:
                wanted = f"shape {list(shapes[name])}"
                if name == "fc.weight" and self.slots is None:
                    size = self.config.target_hidden_size
                    wanted = f"[{self.config.hidden_size}, n * {size}] (n captured states of width {size})"
                self._problem("misshapen", name, wanted, f"shape {list(stored.shape)}")

    def _read_draft(self) -> dict[str, torch.Tensor]:
        """Read what is expected and well shaped; note tensors that are not finite."""
        weights: dict[str, torch.Tensor] = {}
        bad = {problem.name for problem in self.problems}
        for name, stored in self.found.items():
            if name in bad or name == "t2d":
                continue
            tensor = stored.read()
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                count = int((~torch.isfinite(tensor)).sum())
                self._problem("not_finite", name, "finite numbers", f"{count} of {tensor.numel()} are NaN or infinite")
            elif not tensor.is_floating_point() and name != "d2t":
                self._problem("misshapen", name, "floats", f"dtype {stored.dtype} (quantised?)")
            weights[name] = tensor
            self._fact(name, stored, "draft")
        return weights

    def _raise_on_problems(self) -> None:
        fatal = [problem for problem in self.problems if problem.problem != "unexpected"]
        changing = [p for p in self.problems if p.problem == "unexpected" and GRAPH_CHANGING.match(p.name)]
        if changing and not fatal:
            raise checkpoint_failure(
                "the drafter has tensors of a computation that this test does not follow yet: "
                + ", ".join(problem.name for problem in changing),
                hint="its numbers would be wrong, so it is refused",
                details=tuple(_line(problem) for problem in self.problems),
            )
        if fatal:
            kinds = ", ".join(
                f"{sum(p.problem == kind for p in self.problems)} {kind.replace('_', ' ')}"
                for kind in ("missing", "misshapen", "not_finite", "unexpected")
                if any(p.problem == kind for p in self.problems)
            )
            raise checkpoint_failure(
                f"the drafter's tensors are not what its config.json asks for ({kinds}); the first: {_line(fatal[0])}",
                hint=f"look at `{self.draft / 'config.json'}` and at how the weights were exported; SGLang would load "
                "this without a word and leave what is missing at random values",
                details=tuple(_line(problem) for problem in self.problems),
            )

    def _target_ids(self, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """d2t is an offset: target id = draft id + d2t[draft id]."""
        size, vocab = self.config.draft_vocab_size, self.config.vocab_size
        own = torch.arange(size)
        offsets = weights.pop("d2t", None)
        if offsets is None:
            return own
        ids = own + offsets.to(torch.int64)
        if int(ids.min()) < 0 or int(ids.max()) >= vocab:
            absolute = int(offsets.min()) >= 0 and int(offsets.max()) < vocab
            raise checkpoint_failure(
                f"`d2t` must lead to target tokens 0..{vocab - 1}, it leads to: {int(ids.min())}..{int(ids.max())}",
                hint="it seems to hold target ids; every engine reads it as an offset: subtract arange"
                if absolute
                else "d2t[i] is an offset: target id = i + d2t[i]",
            )
        return ids

    def _borrow(self, weights: dict[str, torch.Tensor], target_ids: torch.Tensor) -> None:
        config = self.config
        if config.target_hidden_size == config.hidden_size:
            self._borrow_embedding(weights)
        elif "embed_tokens.weight" not in weights:
            raise checkpoint_failure(
                f"the drafter has no `embed_tokens.weight`, and the target's has another width: {config.target_hidden_size} "
                f"instead of {config.hidden_size}"
            )
        if config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["embed_tokens.weight"][target_ids]
        elif "lm_head.weight" not in weights:
            weights["lm_head.weight"] = self._take("lm_head.weight", (config.vocab_size, config.hidden_size))[
                target_ids
            ]
            if config.draft_vocab_size != config.vocab_size:
                self.warnings.append(
                    "the drafter has no lm_head; the test used the target's rows of its vocabulary, but SGLang would "
                    "leave it at random values"
                )
        if "norm.weight" not in weights:
            weights["norm.weight"] = self._take("norm.weight", (config.hidden_size,))
            self.warnings.append(
                "the drafter has no final norm; the test used the target's, but SGLang would leave it at its initial value"
            )

    def _borrow_embedding(self, weights: dict[str, torch.Tensor]) -> None:
        own = weights.get("embed_tokens.weight")
        shared = self._take("embed_tokens.weight", (self.config.vocab_size, self.config.hidden_size))
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
        self.facts = [fact for fact in self.facts if fact.name != name]
        self._fact(name, stored, "target")
        return read_finite(stored)

    def _target_norm(self) -> torch.Tensor | None:
        stored = self.target.find("norm.weight")
        usable = stored is not None and stored.shape == (self.config.target_hidden_size,)
        return read_finite(stored) if usable and stored is not None else None

    def _problem(self, problem: str, name: str, expected: str, found: str) -> None:
        self.problems.append(TensorProblem(problem=problem, name=name, expected=expected, found=found))  # type: ignore[arg-type]

    def _fact(self, name: str, stored: StoredTensor, source: str) -> None:
        self.facts.append(
            TensorFact(name=name, stored_name=stored.name, shape=stored.shape, dtype=stored.dtype, source=source)  # type: ignore[arg-type]
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
            tensors=tuple(self.facts),
            problems=tuple(self.problems),
            weights_sha256=files_sha256(weight_paths(self.draft, "draft")),
            config_json=config.text,
        )


def _line(problem: TensorProblem) -> str:
    return f"{problem.name}: {problem.problem.replace('_', ' ')}: expected {problem.expected}, found: {problem.found}"
