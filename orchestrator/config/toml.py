"""Settings from a TOML file, whatever they are about: nothing in them deeper or larger than settings are."""

import tomllib
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError

MAX_DEPTH = 20


def read_toml(path: Path, error: type[UsageError]) -> dict[str, Any]:
    """The tables of a TOML file, nothing in them deeper or larger than settings are. Raises `error`."""
    try:
        if path.exists() and not path.is_file():
            raise error(f"cannot read {path}: expected a file, found a folder, a pipe or a device")
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_excess(raw, ())
    except (OSError, RuntimeError) as problem:  # RuntimeError: before Python 3.13 a loop of links
        if isinstance(problem, RecursionError):
            raise error(f"{path}: brackets nested too deep") from None
        raise error(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None
    except UnicodeDecodeError as problem:
        raise error(f"{path} must be UTF-8, found: byte {problem.object[problem.start]:#04x}") from None
    except ValueError as problem:
        raise error(f"{path} is not TOML: {problem}") from None
    return raw


def _refuse_excess(value: object, keys: tuple[str, ...]) -> None:
    """Raises ValueError: numbers beyond TOML's own 64 bits, and depths, are mistakes that would break far from here."""
    if len(keys) > MAX_DEPTH:
        raise ValueError(f"`{'.'.join(keys[:3])}...` is nested too deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"`{'.'.join(keys)}`: expected an integer of 64 bits, found one of {value.bit_length()}")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_excess(item, (*keys, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_excess(item, (*keys, str(index)))
