"""Stored tensors against what config.json asks for: everything that is wrong, told at once."""

from pathlib import Path
from typing import Literal

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import TensorProblem
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.config_values import printable
from remote_payload.standalone.checkpoint.pieces import count_not_finite
from remote_payload.standalone.checkpoint.refused import refused_tensor
from remote_payload.standalone.checkpoint.tensor_shapes import BORROWED, expected_shapes, optional_shapes
from remote_payload.standalone.checkpoint.weight_files import FLOATS, StoredTensor

KINDS: tuple[Literal["missing", "misshapen", "not_finite", "unexpected"], ...] = (
    "missing",
    "misshapen",
    "not_finite",
    "unexpected",
)
SHOWN = 5
WHOLE = ("I64", "I32", "I16", "I8", "U8", *FLOATS)
"""What offsets may be stored as; floats only where they are whole."""


def stored_slots(config: DrafterConfig, found: dict[str, StoredTensor]) -> int | None:
    """How many target states the stored fc joins; None where its width does not say."""
    fc = found.get("fc.weight")
    width = fc.shape[1] if fc is not None and len(fc.shape) == 2 else 0
    return width // config.target_hidden_size if width and width % config.target_hidden_size == 0 else None


def name_problems(
    config: DrafterConfig, found: dict[str, StoredTensor], norms: tuple[str, ...] = (), *, fc: bool = True
) -> list[TensorProblem]:
    """Missing, unexpected and misshapen tensors, by canonical name. What the target can lend is not missing.

    `norms` are the norms before fc that must be there as well; `fc` is whether the drafter has one.
    """
    slots = stored_slots(config, found)
    optional = optional_shapes(config, slots)
    expected = expected_shapes(config, slots, fc=fc) | {name: optional[name] for name in norms}
    shapes = optional | expected
    problems = [
        TensorProblem(problem="missing", name=name, expected=f"shape {list(shape)}", found="nothing")
        for name, shape in expected.items()
        if name not in found and name not in BORROWED
    ]
    for name, stored in found.items():
        size = list(stored.shape)
        if name not in shapes:
            problems.append(
                TensorProblem(
                    problem="unexpected",
                    name=name,
                    expected="no such tensor",
                    found=f"`{printable(stored.name)}` {size}",
                )
            )
        elif name == "fc.weight" and slots is None:
            wanted = f"[{config.hidden_size}, n * {config.target_hidden_size}] for n captured states"
            problems.append(TensorProblem(problem="misshapen", name=name, expected=wanted, found=f"shape {size}"))
        elif stored.shape != shapes[name]:
            wanted = f"shape {list(shapes[name])}"
            problems.append(TensorProblem(problem="misshapen", name=name, expected=wanted, found=f"shape {size}"))
    return problems


def kind_problem(name: str, stored: StoredTensor) -> TensorProblem | None:
    """A tensor of a kind that cannot be computed with: quantised floats mean nothing without their scales."""
    wanted = WHOLE if name == "d2t" else FLOATS
    if stored.dtype in wanted:
        return None
    expected = "whole numbers" if name == "d2t" else "plain floats"
    found = stored.dtype if name == "d2t" else f"{stored.dtype} (quantised?)"
    return TensorProblem(problem="misshapen", name=name, expected=expected, found=found)


def value_problem(name: str, tensor: torch.Tensor) -> TensorProblem | None:
    """What is wrong with a tensor's numbers: not finite, or fractions where ids belong."""
    bad = count_not_finite(tensor)
    if bad:
        found = f"{bad} of {tensor.numel()} are NaN or infinite"
        return TensorProblem(problem="not_finite", name=name, expected="finite numbers", found=found)
    if name == "d2t" and tensor.is_floating_point() and bool((tensor != tensor.round()).any()):
        return TensorProblem(problem="misshapen", name=name, expected="whole numbers", found="fractions")
    return None


def raise_on(problems: list[TensorProblem], draft: Path) -> None:
    """Raise one JobFailure(checkpoint) with every problem, unless there are only harmless unexpected tensors."""
    fatal = [problem for problem in problems if problem.problem != "unexpected"]
    unexpected = [problem for problem in problems if problem.problem == "unexpected"]
    changing = [(item.name, words) for item in unexpected if (words := refused_tensor(item.name)) is not None]
    details = tuple(_line(problem) for problem in problems)
    if fatal:
        counts = {kind: sum(problem.problem == kind for problem in problems) for kind in KINDS}
        told = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items() if count)
        raise checkpoint_failure(
            f"the drafter's tensors are not what its config.json asks for ({told}); the first: {_line(fatal[0])}",
            hint=f"compare {draft / 'config.json'} with how the weights were exported{_served_so(fatal)}",
            details=details,
        )
    if changing:
        raise checkpoint_failure(
            "the drafter has tensors of a computation that this test does not follow: "
            + ", ".join(f"{printable(name)} ({words})" for name, words in changing[:SHOWN]),
            hint="its numbers would be wrong, so it is refused",
            details=details,
        )


def _served_so(fatal: list[TensorProblem]) -> str:
    """What SGLang makes of it, where that is known."""
    if all(problem.problem == "missing" for problem in fatal):
        return "; SGLang would load this without a word and leave what is missing at random values"
    if all(problem.problem == "not_finite" for problem in fatal):
        return "; a server would load this and answer nonsense: the export or the training itself broke"
    return ""


def _line(problem: TensorProblem) -> str:
    kind = problem.problem.replace("_", " ")
    return f"{printable(problem.name)}: {kind}: expected {problem.expected}, found: {problem.found}"
