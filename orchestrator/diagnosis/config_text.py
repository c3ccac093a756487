"""A config.json as its host tells it, text or nothing: its object, and the counts in it. Nothing in it is believed."""

import json
from collections.abc import Mapping
from typing import Any


def object_of(text: str | None) -> Mapping[str, Any]:
    """The object that the text is; empty where there is none, or it is something else."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a model that sees or hears as well, the part that its language model reads; else the config itself."""
    nested = config.get("text_config")
    return nested if isinstance(nested, dict) else config


def count_of(config: Mapping[str, Any], key: str) -> int | None:
    """A number of things, at least one; None where the key is missing or something else stands there."""
    value = config.get(key)
    return value if type(value) is int and value > 0 else None
