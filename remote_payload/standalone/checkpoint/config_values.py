"""Numbers of a config.json, refused where a computation with them would be silently wrong."""

import math
from typing import Any

from remote_payload.failure import checkpoint_failure

LARGEST_COUNT = 2**31 - 1
TOLD_CHARACTERS = 80


def told(found: object) -> str:
    """A value as a message shows it: short, whatever stood there."""
    text = repr(found)
    return text if len(text) <= TOLD_CHARACTERS else text[:TOLD_CHARACTERS] + "..."


def printable(name: str) -> str:
    """A tensor's name as a message shows it: short, and without characters that a terminal would obey."""
    return name if name.isprintable() and len(name) <= TOLD_CHARACTERS else told(name)


def positive(value: dict[str, Any], key: str, default: int | None = None) -> int:
    """A count, 1 or more. Raises JobFailure(checkpoint)."""
    found = value.get(key)
    if found is None:
        found = default
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= LARGEST_COUNT:
        raise checkpoint_failure(
            f"the drafter's config.json needs a positive whole number `{key}`, found: {told(found)}"
        )
    return found


def number(value: dict[str, Any], key: str, default: float, most: float) -> float:
    """A number above 0 and up to `most`. Raises JobFailure(checkpoint)."""
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found <= most:  # NaN is not either
        raise checkpoint_failure(
            f"the drafter's config.json needs a positive number `{key}` of at most {most:g}, found: {told(found)}"
        )
    return float(found)


def flag(value: dict[str, Any], key: str) -> bool:
    """A yes or no; absent is no. Raises JobFailure(checkpoint): any text would count as yes."""
    found = value.get(key)
    if found is not None and not isinstance(found, bool):
        raise checkpoint_failure(f"the drafter's config.json needs true or false as `{key}`, found: {told(found)}")
    return bool(found)


def layer_ids(found: object) -> tuple[int, ...] | None:
    """A list of layer ids; None where there is none. Raises JobFailure(checkpoint)."""
    if found is None:
        return None
    if not isinstance(found, list) or not all(_is_id(item) for item in found):
        raise checkpoint_failure(
            f"`eagle_aux_hidden_state_layer_ids` must be a list of whole numbers, found: {told(found)}",
            hint="SGLang counts the characters of a string as layers; write e.g. [1, 29, 57]",
        )
    return tuple(found)


def is_one(found: object) -> bool:
    """Whether a factor is absent or 1, and so changes nothing."""
    return found is None or (isinstance(found, int | float) and not isinstance(found, bool) and math.isclose(found, 1))


def _is_id(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and abs(item) <= LARGEST_COUNT
