"""Safetensors files of a model folder, single or sharded: which tensors there are, and reading chosen ones.

Nothing but safetensors is opened: a `.bin` is a pickle. Files are memory-mapped, so only tensors asked for are read.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from remote_payload.failure import JobFailure, checkpoint_failure

INDEX = "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")
"""Plain floats: eight-bit ones and smaller need the scales of their quantisation to mean anything."""
NAME_BYTES = 255
"""No file system that holds models knows longer names."""
TOLD_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """One tensor of a file, not read yet."""

    name: str
    path: Path
    shape: tuple[int, ...]
    dtype: str
    """As safetensors spells it: BF16, F32, I64, ..."""

    def read(self) -> torch.Tensor:
        """The tensor on the CPU, in its stored dtype. Raises JobFailure(checkpoint)."""
        try:
            with safe_open(self.path, framework="pt") as file:
                tensor: torch.Tensor = file.get_tensor(self.name)
                return tensor
        except (SafetensorError, OSError) as error:
            raise _unreadable(self.path, error) from None


Wanted = Callable[[str], bool]


def every_tensor(_: str) -> bool:
    """Choose all."""
    return True


def list_tensors(folder: Path, role: str, wanted: Wanted = every_tensor) -> dict[str, StoredTensor]:
    """The wanted tensors of the folder by stored name. Raises JobFailure(checkpoint) naming every unreadable file.

    With an index only the shards that hold wanted tensors are opened; the others need not even be there.
    """
    listed = [_try_file(path) for path in weight_paths(folder, role, wanted)]
    bad = [item for item in listed if isinstance(item, JobFailure)]
    if bad:
        failures = [item.failure for item in bad]
        raise checkpoint_failure(
            failures[0].message, hint=failures[0].hint, details=tuple(failure.message for failure in failures)
        )
    tensors = (tensor for item in listed if not isinstance(item, JobFailure) for tensor in item)
    return {tensor.name: tensor for tensor in tensors if wanted(tensor.name)}


def weight_paths(folder: Path, role: str, wanted: Wanted = every_tensor) -> list[Path]:
    """The safetensors files with wanted tensors, in name order. Raises JobFailure(checkpoint) where there is none."""
    if (folder / INDEX).is_file():
        return _indexed_paths(folder, role, wanted)
    paths = sorted(folder.glob("*.safetensors"))
    if paths:
        return paths
    pickles = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")])
    if pickles:
        raise checkpoint_failure(
            f"the {role}'s weights must be safetensors, found only a pickle, which is not opened: {pickles[0]}",
            hint="pickles are not supported yet; convert it once: "
            "safetensors.torch.save_file(torch.load(..., weights_only=True), ...)",
        )
    raise checkpoint_failure(
        f"the {role}'s folder has no *.safetensors: {folder}",
        hint="point at the exported model folder, the one that holds config.json and *.safetensors",
    )


def files_sha256(paths: list[Path]) -> str:
    """One sha256 over the contents of the files, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _indexed_paths(folder: Path, role: str, wanted: Wanted) -> list[Path]:
    index = folder / INDEX
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted({file for name, file in weight_map.items() if wanted(name)})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        told = type(error).__name__ if isinstance(error, RecursionError) else repr(error)[:TOLD_CHARACTERS]
        raise checkpoint_failure(f"the {role}'s index must hold a `weight_map`: {index}: {told}") from None
    outside = [name for name in names if not _is_file_name(name)]
    if outside:
        found = repr(outside[0])[:TOLD_CHARACTERS]
        raise checkpoint_failure(f"the {role}'s index must name files of its own folder, found: {found}: {index}")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise checkpoint_failure(
            f"the {role}'s index names {len(missing)} file(s) that are not there: {', '.join(missing[:5])}: {folder}",
            hint="the copy or download is incomplete",
            details=tuple(missing),
        )
    return [folder / name for name in names]


def _is_file_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and Path(name).name == name
        and "\0" not in name
        and len(name.encode("utf-8", "replace")) <= NAME_BYTES
    )


def _try_file(path: Path) -> list[StoredTensor] | JobFailure:
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            return [
                StoredTensor(name=name, path=path, shape=tuple(piece.get_shape()), dtype=str(piece.get_dtype()))
                for name, piece in slices.items()
            ]
    except (SafetensorError, OSError) as error:
        return _unreadable(path, error)


def _unreadable(path: Path, error: Exception) -> JobFailure:
    return checkpoint_failure(
        f"not a whole safetensors file ({error}): {path}",
        hint="the file is truncated or of another format; copy or export it again",
    )
