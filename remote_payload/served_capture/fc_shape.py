"""How wide the states are that a drafter's fc takes, by the header of its weight files: no weight is read."""

import json
import os
from pathlib import Path

from remote_payload.weights import header_of

NAMES = ("fc.weight", "model.fc.weight")
"""SGLang tries a name as it stands, then with `model.` before it."""


def fc_shape(folder: str) -> tuple[int, int] | None:
    """(rows, columns) of fc.weight in a folder's safetensors files; None where it is not found there."""
    try:
        files = sorted(Path(os.path.expanduser(folder)).glob("*.safetensors"))
        for path in files:
            header = json.loads(header_of(path) or b"null")
            for name in NAMES:
                shape = header[name].get("shape") if isinstance(header, dict) and name in header else None
                if isinstance(shape, list) and len(shape) == 2 and all(type(size) is int for size in shape):
                    return (shape[0], shape[1])
    except (OSError, ValueError, AttributeError, RecursionError):  # a broken file: its loader says more
        return None
    return None
