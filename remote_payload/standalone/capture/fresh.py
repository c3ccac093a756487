"""A fresh forward of the target with transformers, where this machine has it and can hold the target.

The one module that imports transformers, and only when it is asked to; nothing of the target's folder is executed or
unpickled, and nothing is fetched. Not covered: targets that need code of their own (`trust_remote_code`), weights that
are not safetensors, models that transformers only knows with images or sound.
"""

import gc
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError

COMPLETE = 0.95
"""Share of a model's numbers that its folder holds at least, unless weights are missing."""
PIECE_TOKENS = 128
"""Tokens whose logits are computed together: a vocabulary of 160,000 then takes 80 MB."""
LARGEST_HEADER = 100 << 20
"""Bytes; what safetensors itself allows."""
FAILURES = (
    ImportError,
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    MemoryError,
    SafetensorError,
)
"""Whatever a model of somebody else's may raise; the check then says that it did not run."""


class CannotRun(Exception):  # noqa: N818 - no error: the check is skipped for this reason
    """Why the target cannot be run here, in words."""


@dataclass(frozen=True, kw_only=True)
class Forward:
    """What the target computes for one row of T tokens; all on the device it ran on."""

    states: tuple[torch.Tensor, ...]  # L + 1 of (T, Ht): HF hidden_states, so the last is after the final norm
    pre_norm: torch.Tensor | None  # (T, Ht) the last layer's output; None where the final norm was not found
    answers: torch.Tensor  # (T,) greedy next token


class FreshTarget:
    """The target, loaded. `close` frees it."""

    def __init__(self, model: Any, device: torch.device, transformers_version: str) -> None:
        self._model, self._device = model, device
        self.transformers_version = transformers_version
        self.vocab_size = int(model.get_input_embeddings().num_embeddings)

    def forward(self, tokens: torch.Tensor) -> Forward:
        """Run tokens (T,). Raises CannotRun where the model's own code fails."""
        seen: list[torch.Tensor] = []
        norm = getattr(self._model.base_model, "norm", None)
        hook = None
        if isinstance(norm, torch.nn.Module):
            hook = norm.register_forward_pre_hook(lambda _, given: seen.extend(state[0] for state in given[:1]))
        try:
            with torch.no_grad(), _quiet():
                found = self._model.base_model(
                    input_ids=tokens[None].to(self._device), use_cache=False, output_hidden_states=True
                )
                states = tuple(state[0] for state in found.hidden_states)
                head = self._model.get_output_embeddings()
                pieces = [head(piece).argmax(dim=-1) for piece in states[-1].split(PIECE_TOKENS)]
        except FAILURES as error:
            raise CannotRun(f"the target's forward failed: {_line(error)}") from None
        finally:
            if hook is not None:
                hook.remove()
        return Forward(states=states, pre_norm=seen[-1] if seen else None, answers=torch.cat(pieces))

    def close(self) -> None:
        """Free the target's memory."""
        self._model = None
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def load_target(
    folder: Path, *, dtype: torch.dtype, device: torch.device, limit_bytes: int | None = None
) -> FreshTarget:
    """Load the target in `dtype`. Raises CannotRun: no transformers, no room, incomplete or unknown folder.

    `limit_bytes` is what may be used for it; None = nine tenths of what is free on the device.
    """
    _refuse_without_layers(folder)
    transformers = _transformers()
    try:
        # Outside inference mode: some models fill in buffers in place, which an inference tensor refuses later.
        with torch.inference_mode(mode=False), _quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_room(transformers, folder, dtype, _room(device) if limit_bytes is None else limit_bytes)
            model = _load(transformers, folder, dtype)
            return FreshTarget(model.eval().to(device), device, transformers.__version__)
    except FAILURES as error:
        raise CannotRun(f"transformers {transformers.__version__} cannot run the target: {_line(error)}") from None


def _check_room(transformers: ModuleType, folder: Path, dtype: torch.dtype, room: int) -> None:
    """Count the model's numbers without memory for them: a folder with few of its tensors would be filled up."""
    config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    if getattr(config, "quantization_config", None) is not None:
        raise CannotRun("the target is quantised; only one with plain float weights is run here")
    with torch.device("meta"):
        empty = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    numbers = sum(parameter.numel() for parameter in empty.parameters())
    if stored_numbers(folder) < numbers * COMPLETE:
        raise CannotRun(f"the target's folder holds {stored_numbers(folder)} of the model's {numbers} numbers")
    need = numbers * dtype.itemsize
    if need > room:
        raise CannotRun(f"the target needs {need / 2**30:.3g} GiB for its weights, there are: {room / 2**30:.3g} GiB")


def _load(transformers: ModuleType, folder: Path, dtype: torch.dtype) -> Any:
    major = int(transformers.__version__.split(".")[0])
    model, told = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
        **{"dtype" if major >= 5 else "torch_dtype": dtype},
    )
    missing = sorted({*told["missing_keys"], *(str(key) for key in told["mismatched_keys"])})
    if missing:
        raise CannotRun(f"the target's folder lacks {len(missing)} tensor(s) of the model, first: {missing[0]}")
    return model


def stored_numbers(folder: Path) -> int:
    """How many numbers the folder's safetensors hold, by their headers. Raises CannotRun."""
    return sum(torch.Size(shape).numel() for file in _files(folder) for shape in _shapes(file).values())


def _refuse_without_layers(folder: Path) -> None:
    """Before transformers is imported, which takes seconds: an embedding, a head and a norm are no model to run."""
    try:
        names = [name for file in _files(folder) for name in _shapes(file)]
    except FAILURES as error:
        raise CannotRun(f"the target's files cannot be read: {_line(error)}") from None
    if not any(".0." in name for name in names):
        raise CannotRun(f"the target's folder holds no layer of the model, only: {', '.join(sorted(names)[:5])}")


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CannotRun(f"the target's folder holds no safetensors: {folder}")
    return files


def _shapes(file: Path) -> dict[str, list[int]]:
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > LARGEST_HEADER:
            raise ValueError(f"not a safetensors file: {file}")
        header = json.loads(stream.read(size))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def _transformers() -> ModuleType:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        os.environ[name] = "1"  # read while it is imported
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers  # noqa: PLC0415 - seconds, and most machines need not have it

            transformers.AutoModelForCausalLM  # noqa: B018 - lazily imported: fails here where torch is too old
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise CannotRun(f"transformers cannot be imported here: {_line(error)}") from None
    module: ModuleType = transformers
    return module


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither progress bars nor log lines of transformers, which would end up in the job's log."""
    from transformers.utils import logging  # noqa: PLC0415 - as above

    before = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _room(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * 0.9)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, LookupError, StopIteration):
        raise CannotRun("how much memory is free cannot be told here; give a limit") from None
    return int(free * 0.9)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0][:300] if lines else "no message") + f" ({type(error).__name__})"
