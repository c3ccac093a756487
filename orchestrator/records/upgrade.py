"""Older records made readable: a step a version, so that what was stored once can always be read.

Version 1 is the first, so there is no step yet. `STEPS[0]` will take a value of version 1 to version 2, and so on; a
step gets the record's name and its JSON value and returns the value of the next version. `tests/golden/store/` keeps a
store of every version. Version history: 1 = first release.
"""

from collections.abc import Callable
from typing import Any

from remote_payload.schema import SCHEMA_VERSION

Step = Callable[[str, dict[str, Any]], dict[str, Any]]
STEPS: tuple[Step, ...] = ()


def upgraded(cls: type, value: Any, steps: tuple[Step, ...] = STEPS, current: int = SCHEMA_VERSION) -> Any:
    """The value as `current` writes it; one of this version, of a newer one, or of none is left as it is."""
    version = value.get("schema_version") if isinstance(value, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < current:
        return value
    for step in steps[version - 1 : current - 1]:
        value = step(cls.__name__, value)
    return {**value, "schema_version": current}
