"""Captured states, however a writer arranged them, to (T, n, Ht) without copying where it can be avoided."""

from collections.abc import Sequence

import torch

from remote_payload.standalone.rows.values import RowError, floats, matrix


def stacked(found: object, what: str, size: int, tokens: int) -> torch.Tensor:
    """(T, n, size) from [T, n * size], [1, T, n * size], [T, n, size], [n, T, size] or a list of [T, size].

    All but a list stay views of what was read. `tokens` tells [T, n, size] from [n, T, size]. Raises RowError.
    """
    if isinstance(found, Sequence) and not isinstance(found, str | bytes):
        return _joined(found, what, size)
    value = floats(found, what)
    if value.dim() == 4 and value.shape[0] == 1:
        value = value[0]
    if value.dim() == 3 and value.shape[0] != 1 and value.shape[2] == size:
        return _token_first(value, what, tokens)
    if value.dim() == 3 and value.shape[0] != 1 and value.shape[2] % size:
        raise RowError(f"its {what} must be {size} wide (the drafter's target), found: {value.shape[2]}")
    flat = matrix(value, what)
    if flat.shape[1] == 0 or flat.shape[1] % size:
        raise RowError(f"its {what} must be n * {size} wide (the drafter's target), found: {flat.shape[1]}")
    return flat.reshape(len(flat), flat.shape[1] // size, size)


def _token_first(value: torch.Tensor, what: str, tokens: int) -> torch.Tensor:
    if value.shape[0] == value.shape[1] == tokens:
        raise RowError(f"{what} of shape {list(value.shape)} may be [T, n, width] or [n, T, width]: T and n are equal")
    return value.transpose(0, 1) if value.shape[1] == tokens else value


def _joined(found: Sequence[object], what: str, size: int) -> torch.Tensor:
    layers = [matrix(layer, f"a layer of {what}") for layer in found]
    if not layers:
        raise RowError(f"{what} must be a list of layers, found: an empty list")
    shapes = {tuple(layer.shape) for layer in layers}
    if len(shapes) > 1 or layers[0].shape[1] != size:
        told = ", ".join(str(list(shape)) for shape in sorted(shapes))
        raise RowError(f"the layers of {what} must all have shape [T, {size}] (the drafter's target), found: {told}")
    return torch.stack(layers, dim=1)
