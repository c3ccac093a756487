"""SpecForge's own evaluation as a resident process (see `resident.py`), under a Python that has SpecForge.

    PYTHON specforge_driver.py --draft D --target T --rows R --wiring 1,2,3 --steps 4 --threads 1

Its model, its offline reader, its strategy and its evaluator do the work, in bfloat16 as it does everywhere. Two things
are put in place because they need a GPU otherwise: an empty `triton`, and its own reference loss instead of the Triton
kernel. Tried with SpecForge 0.2.0.
"""

# ruff: noqa: E402 - SpecForge can only be imported once the empty triton is in place

import importlib.machinery
import os
import re
import sys
import types

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
os.environ.setdefault("SPECFORGE_DEVICE", "cpu")

import torch
import transformers.models.llama.modeling_llama  # noqa: F401 - it would take the empty triton for a real one
from answering import answer, peak_bytes, peers_arguments


def _without_triton() -> None:
    language = types.ModuleType("triton.language")
    language.constexpr = object
    language.__spec__ = importlib.machinery.ModuleSpec("triton.language", None)
    triton = types.ModuleType("triton")
    triton.__spec__ = importlib.machinery.ModuleSpec("triton", None)
    triton.__version__ = "0"
    triton.language = language
    triton.jit = lambda function=None, **_: function if function else (lambda inner: inner)
    triton.cdiv = lambda a, b: -(-a // b)
    triton.next_power_of_2 = lambda n: 1 << (n - 1).bit_length()
    sys.modules |= {"triton": triton, "triton.language": language}


_without_triton()

from specforge.core import loss


class ReferenceLoss:
    """Its own reference in place of its Triton kernel."""

    apply = staticmethod(loss._compute_loss)


loss.LogSoftmaxLoss = ReferenceLoss

from safetensors.torch import load_file
from specforge.algorithms.eagle3.data import normalize_offline_sample
from specforge.algorithms.eagle3.model import OnlineEagle3Model
from specforge.eval.evaluator import Evaluator
from specforge.modeling.auto import AutoDraftModel, AutoDraftModelConfig
from specforge.modeling.target.target_head import TargetHead
from specforge.runtime.contracts import TrainBatch
from specforge.runtime.data_plane.feature_store import load_feature_file
from specforge.runtime.data_plane.offline_reader import list_feature_files
from specforge.training.strategies.base import Eagle3TrainStrategy


def main() -> None:
    """Load, and evaluate all rows for every line on stdin."""
    arguments = peers_arguments("draft", "target", "rows", "wiring")
    torch.set_num_threads(arguments.threads)
    imported_bytes = peak_bytes()
    answer({"one": _evaluation(arguments)}, imported_bytes=imported_bytes)


def _evaluation(arguments):
    """A function that evaluates every row and returns tokens and accuracy of step 1."""
    drafter = _drafter(arguments)
    model = OnlineEagle3Model(drafter, length=arguments.steps, attention_backend="sdpa").to(torch.bfloat16).eval()
    strategy = Eagle3TrainStrategy(model, target_head=TargetHead.from_pretrained(arguments.target))
    wiring = [int(state) for state in arguments.wiring.split(",")]
    files = sorted(list_feature_files(arguments.rows), key=lambda name: int(re.findall(r"data_(\d+)", name)[-1]))

    def evaluate():
        tokens = 0

        def batches():
            nonlocal tokens
            for name in files:
                sample = normalize_offline_sample(load_feature_file(name), 1 << 20)
                states = sample["hidden_state"].unflatten(-1, (-1, drafter.target_hidden_size))
                sample["hidden_state"] = states[..., wiring, :].flatten(-2)
                tokens += sample["input_ids"].numel()
                yield TrainBatch(
                    sample_ids=[name], strategy="eagle3", tensors=sample, metadata={"target_repr": "hidden_state"}
                )

        found = Evaluator().run(strategy.forward_loss, batches())
        return {"tokens": tokens, "accuracy": found["eval/per_position_acc"][0]}

    return evaluate


def _drafter(arguments):
    # Not from_pretrained: transformers 5 then leaves the rotary tables, which are not in the file, uninitialised.
    config = AutoDraftModelConfig.from_file(f"{arguments.draft}/config.json")
    drafter = AutoDraftModel.from_config(config, torch_dtype=torch.bfloat16)
    missing, unexpected = drafter.load_state_dict(load_file(f"{arguments.draft}/model.safetensors"), strict=False)
    if unexpected:
        raise SystemExit(f"SpecForge does not know these tensors: {unexpected}")
    if any("embed" in name for name in missing):
        drafter.load_embedding(arguments.target)
    return drafter


main()
