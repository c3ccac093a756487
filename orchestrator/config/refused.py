"""What is wrong with a table that the records' own reader refused, in words, all at once."""

import difflib
import json
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from orchestrator.config.host import HostConfig
from remote_payload.schema.slurm import SlurmSettings

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def explain_host(host: str, value: object) -> list[str]:
    """Everything that is wrong with one host at once; pydantic's import is paid only by whoever needs the answer."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        TypeAdapter(HostConfig).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as refused:
        return [_explain_one(f"hosts.{host}", item) for item in refused.errors(include_url=False)]
    return []  # the strict reader refuses what JSON cannot hold, e.g. NaN or a date, and says so itself


def _explain_one(host: str, item: "ErrorDetails") -> str:
    key = ".".join((host, *(str(part) for part in item["loc"])))
    if item["type"] == "unexpected_keyword_argument":
        owner = SlurmSettings if item["loc"][:-1] == ("slurm",) else HostConfig
        return unknown_key(key, str(item["loc"][-1]), [item.name for item in fields(owner)])
    if item["type"] == "missing":
        return f"`{key}` is missing"
    words = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    # The invariants' own messages already end with what was found.
    return f"`{key}`: {words}" + ("" if item["type"] == "value_error" else f", found: {item['input']!r}")


def unknown_key(key: str, name: str, allowed: Sequence[str]) -> str:
    """`key` in full, the closest of what is allowed to its last part `name`, and all that is allowed."""
    close = difflib.get_close_matches(name, allowed, n=1)
    guess = f" (did you mean `{close[0]}`?)" if close else ""
    return f"unknown key `{key}`{guess}; allowed: {', '.join(allowed)}"
