"""PyTorch's own weight files (`.bin`, `.pt`, `.pth`): tensors only, memory-mapped; anything else in them is refused.

Such a file is a pickle. It is read with `weights_only=True`, which builds tensors, numbers and containers and calls
nothing else; a file that asks for more is refused by name.
"""

import pickle
import warnings
from pathlib import Path

import torch

from remote_payload.failure import JobFailure, checkpoint_failure

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}
"""As safetensors spells them; others are told as torch spells them."""


def dtype_of(tensor: torch.Tensor) -> str:
    """A tensor's dtype as safetensors spells it: BF16, F32, I64, ..."""
    return DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))


def read_bin(path: Path) -> dict[str, torch.Tensor] | JobFailure:
    """The tensors of a file by name, memory-mapped where the file's form allows it; or what is wrong with the file."""
    try:
        found = _load(path)
    except pickle.UnpicklingError as error:
        if "GLOBAL" not in str(error):
            return _broken(path, error)
        return checkpoint_failure(
            f"the file holds pickled objects that are not tensors, which are never opened: {path}",
            hint="save the tensors alone, best as safetensors: safetensors.torch.save_file(model.state_dict(), ...)",
        )
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        return _broken(path, error)
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in found.items()
    ):
        return checkpoint_failure(
            f"a weight file must hold tensors by name, found something else in it: {path}",
            hint="is it an optimizer's or a trainer's state? export the model's state_dict alone",
        )
    return found


def not_readable(tensor: torch.Tensor) -> str | None:
    """Why a torch file's tensor holds no numbers that could be read as they stand; None = it does."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout is not torch.strided:
        return f"a sparse tensor ({str(tensor.layout).removeprefix('torch.')})"
    if tensor.is_meta:
        return "on the `meta` device: its numbers were never saved"
    if tensor.is_quantized:
        return "quantised"
    wanted, stored = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
    return f"a repeating view of {stored} bytes with shape {list(tensor.shape)}" if wanted > stored else None


def _load(path: Path) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unusual pickle protocols, which are read or fail
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError as error:
            if "mmap can only be used" not in str(error):
                raise
        return torch.load(path, map_location="cpu", weights_only=True)  # a file from before torch 1.6


def _broken(path: Path, error: Exception) -> JobFailure:
    return checkpoint_failure(
        f"not a whole weight file of torch ({type(error).__name__}): {path}",
        hint="the file is truncated or of another format; copy or export it again",
    )
