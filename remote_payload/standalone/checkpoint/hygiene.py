"""The drafter's folder: which weight files lie in it, which are used, and what about them can go wrong unseen."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from remote_payload.failure import JobFailure
from remote_payload.schema.standalone import WeightFile
from remote_payload.standalone.checkpoint.bin_files import not_readable, read_bin
from remote_payload.standalone.checkpoint.weight_files import (
    BIN_INDEX,
    INDEX,
    VOCABULARY_MAPS,
    StoredTensor,
    is_weights,
    read_index,
)

MAPS = {"d2t", "t2d"}
ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".npy")
COPY = "copy of weights"
"""Role of a file all of whose tensors lie in another one as well, number by number."""
SHOWN = 3


def weight_files(folder: Path, used: list[Path], tensors: dict[str, StoredTensor]) -> tuple[WeightFile, ...]:
    """Every file of the folder that holds weights or could, in name order.

    `used` are the files the test read, `tensors` what it took from them by stored name.
    """
    found = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    holding = {path: _names_in(path) for path in found if path.suffix == ".safetensors"}
    files = [_weight_file(path, used, holding, tensors) for path in found]
    indices = [folder / name for name in (INDEX, BIN_INDEX) if (folder / name).is_file()]
    return tuple(files + [_index_file(path, holding, tensors) for path in indices])


def _weight_file(
    path: Path, used: list[Path], holding: dict[Path, set[str] | None], tensors: dict[str, StoredTensor]
) -> WeightFile:
    names = holding.get(path)
    taken = path in used
    count = len(names) if names is not None else None
    if taken and path.suffix != ".safetensors":
        count = sum(tensor.path == path for tensor in tensors.values())
    role, problem, winner = _role(path, taken), None, None
    if taken and names:
        role, problem, winner = _beside_others(path, names, used, holding)
    elif not taken:
        problem = _leftover(path, role, used, tensors)
    size = path.stat().st_size
    return WeightFile(
        name=path.name,
        size_bytes=size,
        tensors=count,
        used=taken,
        role=role,
        problem=problem,
        overridden_by=winner,
    )


def _role(path: Path, taken: bool) -> str:
    if taken:
        return "weights"
    if path.name.startswith(VOCABULARY_MAPS):
        return "vocabulary map"
    if path.suffix == ".npy" or not is_weights(path):
        return "not weights"
    return "weights not in the index" if path.suffix == ".safetensors" else "weights of another form"


def _beside_others(
    path: Path, names: set[str], used: list[Path], holding: dict[Path, set[str] | None]
) -> tuple[str, str | None, str | None]:
    """A tensor in two files: SGLang loads every file, in no order it promises; here the last name wins.

    The file's role, what is wrong with it where it loses, and the name of the one that wins; nothing is wrong with the
    winner, nor where both hold the same numbers.
    """
    role = "weights"
    for other in sorted(used, reverse=True):
        common = names & (holding.get(other) or set()) if other > path else set()
        differing = sorted(name for name in common if not _same_in(path, other, name))
        if differing:
            shown = ", ".join(differing[:SHOWN])
            text = (
                f"{other.name} overrides {len(differing)} of its {len(names)} tensors ({shown}) with other numbers: "
                "SGLang loads every *.safetensors and the last one read wins, by name"
            )
            return role, text, other.name
        if common == names:
            role = COPY
    return role, None, None


def _same_in(one: Path, other: Path, name: str) -> bool:
    """Whether two safetensors files hold the same numbers under one name; they are memory-mapped, nothing is kept."""
    with safe_open(one, framework="pt") as first, safe_open(other, framework="pt") as second:
        a, b = first.get_tensor(name), second.get_tensor(name)
    if a.shape != b.shape:
        return False
    if a.dtype != b.dtype:
        return bool((a == b).all())
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def _leftover(path: Path, role: str, used: list[Path], tensors: dict[str, StoredTensor]) -> str | None:
    if role == "vocabulary map" and MAPS & set(tensors) and not _same_map(path, tensors):
        return "not the map that the weights hold; trainers may load this one, engines do not"
    if role == "weights not in the index":
        if _holds_the_same(path, tensors):
            return None
        return "lies beside an index that does not name it; engines leave it out"
    if role == "weights of another form":
        same = _same(path, tensors)
        if same:
            return None
        differs = "cannot be read" if same is None else "holds other numbers"
        return (
            f"{differs} than {used[0].name if used else 'the weights'}; SGLang loads *.safetensors first, SafeAILab's "
            "code prefers pytorch_model.bin"
        )
    return None


def _holds_the_same(path: Path, tensors: dict[str, StoredTensor]) -> bool:
    """Whether every tensor of a safetensors file is one that was used, number by number."""
    names = _names_in(path) or set()
    paths = {name: tensors[name].path for name in names & set(tensors)}
    return (
        bool(names)
        and paths.keys() == names
        and all(other.suffix == ".safetensors" and _same_in(path, other, name) for name, other in paths.items())
    )


def _same(path: Path, tensors: dict[str, StoredTensor]) -> bool | None:
    """Whether a torch file holds the very tensors that were used; None = it cannot be read."""
    other = read_bin(path)
    if isinstance(other, JobFailure):
        return None
    if any(not_readable(tensor) for tensor in other.values()):
        return None
    return other.keys() == tensors.keys() and all(
        other[name].shape == stored.shape and bool((other[name] == stored.read()).all())
        for name, stored in tensors.items()
    )


def _same_map(path: Path, tensors: dict[str, StoredTensor]) -> bool:
    """Whether a vocabulary map's file holds what the weights hold; a file that cannot be read does not."""
    stored = {name: tensors[name].read() for name in MAPS & set(tensors)}
    if path.suffix == ".npy":  # its numbers are the file's last bytes
        own = stored.get(path.stem)
        return own is not None and path.read_bytes().endswith(bytes(own.contiguous().view(torch.uint8).tolist()))
    found = read_bin(path)
    if isinstance(found, JobFailure):
        return False
    common = {name for name in found.keys() & stored.keys() if not_readable(found[name]) is None}
    return bool(common) and all(torch.equal(found[name].long(), stored[name].long()) for name in common)


def _index_file(path: Path, holding: dict[Path, set[str] | None], tensors: dict[str, StoredTensor]) -> WeightFile:
    size = path.stat().st_size
    try:
        stated = read_index(path, "draft")
    except JobFailure:  # an index that nobody follows, or the load had failed
        return WeightFile(name=path.name, size_bytes=size, used=False, role="index", problem="cannot be read")
    in_file = {(name, file.name) for file, names in holding.items() for name in names or ()}
    if path.name == BIN_INDEX:
        in_file = {(tensor.name, tensor.path.name) for tensor in tensors.values()}
    files = set(stated.values())
    lost = sorted(name for name, file in stated.items() if (name, file) not in in_file)
    unnamed = sorted(name for name, file in in_file if file in files and name not in stated)
    problem = None
    if lost:
        problem = f"names {len(lost)} tensor(s) that are not in the files it gives: {', '.join(lost[:SHOWN])}"
    elif unnamed:
        problem = (
            f"does not name {len(unnamed)} tensor(s) of its files: {', '.join(unnamed[:SHOWN])}; SGLang loads them"
        )
    used = path.name == INDEX or not holding
    return WeightFile(name=path.name, size_bytes=size, tensors=len(stated), used=used, role="index", problem=problem)


def _names_in(path: Path) -> set[str] | None:
    """Tensor names of a safetensors file; None = unreadable."""
    try:
        with safe_open(path, framework="pt") as file:
            return set(file.keys())
    except (SafetensorError, OSError):
        return None
