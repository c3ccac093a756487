"""Weight files of a model folder, single or sharded: which tensors there are, and reading chosen ones.

Safetensors come first, as in SGLang; torch's `.bin` and then `.pt` are opened where there are none, tensors only.
Files are memory-mapped, so only tensors asked for are read.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from remote_payload.failure import JobFailure, checkpoint_failure
from remote_payload.standalone.checkpoint.bin_files import dtype_of, not_readable, read_bin
from remote_payload.standalone.file_kind import is_pointer, no_file

INDEX = "model.safetensors.index.json"
BIN_INDEX = "pytorch_model.bin.index.json"
NOT_WEIGHTS = ("training_args", "optimizer", "scheduler", "scaler", "training_state", "rng_state", "vocab_mapping")
"""Beginnings of torch files that lie beside weights and are none; SGLang leaves most of them out as well."""
VOCABULARY_MAPS = ("d2t", "t2d", "vocab_mapping", "token_freq")
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
    rows: tuple[int, int] | None = None
    """The part of the stored tensor that is meant, first to last + 1 along its first axis; None = all of it."""
    held: torch.Tensor | None = field(default=None, repr=False, compare=False)
    """A torch file's tensor, memory-mapped; None = read it from the safetensors file."""

    def part(self, start: int, stop: int) -> "StoredTensor":
        """Rows start..stop - 1 of this tensor, as a tensor of their own."""
        return replace(self, rows=(start, stop), shape=(stop - start, *self.shape[1:]))

    def read(self) -> torch.Tensor:
        """The tensor on the CPU, in its stored dtype, memory-mapped. Raises JobFailure(checkpoint)."""
        whole = self._whole() if self.held is None else self.held
        return whole if self.rows is None else whole[self.rows[0] : self.rows[1]]

    def _whole(self) -> torch.Tensor:
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
    listed = [_try_file(path, wanted) for path in weight_paths(folder, role, wanted)]
    bad = [item for item in listed if isinstance(item, JobFailure)]
    if bad:
        failures = [item.failure for item in bad]
        raise checkpoint_failure(
            failures[0].message, hint=failures[0].hint, details=tuple(failure.message for failure in failures)
        )
    return {tensor.name: tensor for item in listed if not isinstance(item, JobFailure) for tensor in item}


def weight_paths(folder: Path, role: str, wanted: Wanted = every_tensor) -> list[Path]:
    """The weight files with wanted tensors, in name order. Raises JobFailure(checkpoint) where there is none."""
    if (folder / INDEX).is_file():
        return _indexed_paths(folder / INDEX, role, wanted)
    paths = sorted(folder.glob("*.safetensors"))
    if not paths and (folder / BIN_INDEX).is_file():
        return _indexed_paths(folder / BIN_INDEX, role, wanted)
    for ending in ("bin", "pt", "pth"):
        paths = paths or [path for path in sorted(folder.glob(f"*.{ending}")) if is_weights(path)]
    if paths:
        return paths
    raise checkpoint_failure(
        f"the {role}'s folder has no *.safetensors, *.bin or *.pt: {folder}",
        hint="point at the exported model folder, the one that holds config.json and *.safetensors",
    )


def is_weights(path: Path) -> bool:
    """Whether a torch file may hold weights, by its name."""
    return not path.name.startswith((*NOT_WEIGHTS, *VOCABULARY_MAPS))


def files_sha256(paths: list[Path]) -> str:
    """One sha256 over the contents of the files, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def read_index(index: Path, role: str) -> dict[str, str]:
    """An index's `weight_map`: tensor name -> file name. Raises JobFailure(checkpoint)."""
    try:
        found = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:TOLD_CHARACTERS]
        raise checkpoint_failure(f"the {role}'s index cannot be read: {index}: {told}") from None
    weight_map = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(weight_map, dict):
        told = "no such key" if weight_map is None else type(weight_map).__name__
        raise checkpoint_failure(
            f"the {role}'s index must hold an object `weight_map`, tensor name to file name: {index}: {told}"
        )
    return {name: file if isinstance(file, str) else repr(file) for name, file in weight_map.items()}


def _indexed_paths(index: Path, role: str, wanted: Wanted) -> list[Path]:
    folder, weight_map = index.parent, read_index(index, role)
    names = sorted({file for name, file in weight_map.items() if wanted(name)})
    outside = [name for name in names if not _is_file_name(name)]
    if outside:
        found = repr(outside[0])[:TOLD_CHARACTERS]
        raise checkpoint_failure(f"the {role}'s index must name files of its own folder, found: {found}: {index}")
    missing = [name for name in names if no_file(folder / name) == "not there"]
    if missing:
        raise checkpoint_failure(
            f"the {role}'s index names {len(missing)} file(s) that are not there: {', '.join(missing[:5])}: {folder}",
            hint="the copy or download is incomplete",
            details=tuple(missing),
        )
    return [folder / name for name in names]


def _is_file_name(name: str) -> bool:
    return Path(name).name == name and "\0" not in name and len(name.encode("utf-8", "replace")) <= NAME_BYTES


def _try_file(path: Path, wanted: Wanted) -> list[StoredTensor] | JobFailure:
    missing = no_file(path)
    if missing is not None:
        return checkpoint_failure(f"a weight file must be a file, it is {missing}: {path}", hint="copy the file itself")
    if is_pointer(path):
        return checkpoint_failure(
            f"the weight file is a pointer of Git LFS, not the file itself: {path}",
            hint="fetch it with `git lfs pull`, or download the model with `hf download`",
        )
    if path.suffix != ".safetensors":
        return _try_bin(path, wanted)
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys() if wanted(name)}  # noqa: SIM118 - no mapping
            return [
                StoredTensor(name=name, path=path, shape=tuple(piece.get_shape()), dtype=str(piece.get_dtype()))
                for name, piece in slices.items()
            ]
    except (SafetensorError, OSError) as error:
        return _unreadable(path, error)


def _try_bin(path: Path, wanted: Wanted) -> list[StoredTensor] | JobFailure:
    found = read_bin(path)
    if isinstance(found, JobFailure):
        return found
    chosen = {name: held for name, held in found.items() if wanted(name)}
    odd = {name: why for name, held in chosen.items() if (why := not_readable(held)) is not None}
    if odd:
        name, why = next(iter(odd.items()))
        return checkpoint_failure(
            f"{len(odd)} tensor(s) of the file are not plain numbers; the first, `{name}`, is {why}: {path}",
            hint="gather the whole model before saving (offloading and sharded training leave such tensors), and save "
            "it with safetensors.torch.save_file",
            details=tuple(f"{name}: {why}" for name, why in odd.items()),
        )
    return [
        StoredTensor(name=name, path=path, shape=tuple(held.shape), dtype=dtype_of(held), held=held)
        for name, held in chosen.items()
    ]


def _unreadable(path: Path, error: Exception) -> JobFailure:
    return checkpoint_failure(
        f"not a whole safetensors file ({error}): {path}",
        hint="the file is truncated or of another format; copy or export it again",
    )
