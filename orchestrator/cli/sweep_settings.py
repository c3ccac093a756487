"""Settings of a sweep's base from the command line: `--set KEY=VALUE`, the value as TOML has it, else as a word."""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.errors import UsageError


def shared_settings(assigned: Iterable[str], named: Mapping[str, object]) -> dict[str, Any]:
    """`--set a=1 --set b=[1,2] --set c=~/x` -> values; those of flags of their own among them. Raises UsageError."""
    found: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    for one in assigned:
        key, equals, text = one.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set: expected KEY=VALUE, found: {one!r}")
        found[key.strip()] = _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text
