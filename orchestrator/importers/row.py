"""One JSON object of a result file; every key is optional, and what is wrong is told with its place."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from orchestrator.errors import InvalidRunError

LARGEST = 1e15
"""Nothing that is counted or timed here is larger."""
_SHOWN = 60
_MOST_ALIKE = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Place:
    """Where a result stands, without the result."""

    where: str
    number: int
    no_numbers: tuple[str, ...] = ()
    """Keys whose number is NaN or infinite: no figure is made of them."""
    digest: bytes = b""
    """Of the result's content; empty = not told."""


@dataclass(frozen=True)
class Row:
    """One JSON object of a file; `where` names file and line."""

    value: dict[str, Any]
    where: str
    number: int
    """The line it begins on; in a list its place."""
    file: str = ""
    """The name of its file."""
    digest: bytes = b""
    """Of its content: a row that stands there twice has the same."""

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise InvalidRunError on one key."""
        raise InvalidRunError(f"{self.where}: `{key}`: expected {expected}, found: {shown(self.value.get(key))}")

    def number_of(self, key: str) -> float | None:
        """A finite number; None where the key is missing, null, NaN or infinite. Raises InvalidRunError."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(key, "a number")
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if abs(value) > LARGEST:
            self.fail(key, f"a number of at most {LARGEST:g}")
        return float(value)

    def positive(self, key: str) -> float | None:
        """As `number_of`; below zero is refused, zero is no figure: these tools write it for what they do not know."""
        value = self.number_of(key)
        if value is not None and value < 0:
            self.fail(key, "a number above 0")
        return value or None

    def count(self, key: str) -> int | None:
        """A whole number of at least 0; None where the key is missing or null. Raises InvalidRunError."""
        value = self.number_of(key)
        if value is not None and (value < 0 or value != int(value)):
            self.fail(key, "a whole number of at least 0")
        return None if value is None else int(value)

    def word(self, key: str) -> str | None:
        """A scalar in words; None where the key is missing or null. Raises InvalidRunError on a list or an object."""
        value = self.value.get(key)
        if isinstance(value, list | dict):
            self.fail(key, "a word or a number")
        return in_words(value)

    def inner(self, key: str) -> "Row":
        """The object under a key; an empty one where it is missing or null. Raises InvalidRunError."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, "an object")
        return Row(value or {}, f"{self.where}: `{key}`", self.number, self.file)

    def rows(self, key: str) -> tuple["Row", ...]:
        """The objects in the list under a key. Raises InvalidRunError."""
        value = self.value.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, "a list of objects")
        return tuple(
            Row(item, f"{self.where}: `{key}`[{n}]", n + 1, self.file, digest_of(item)) for n, item in enumerate(value)
        )

    def numbers(self, key: str) -> Sequence[float] | None:
        """The finite numbers in a list; None where the key is missing, null or empty. Raises InvalidRunError."""
        value = self.value.get(key)
        if value is None or value == []:
            return None
        if not isinstance(value, list):
            self.fail(key, "a list of numbers")
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float) or not abs(item) <= LARGEST:
                raise InvalidRunError(f"{self.where}: `{key}`: expected a list of numbers, found in it: {shown(item)}")
        return value

    @property
    def place(self) -> Place:
        """Where it stands, and which of its numbers are none; an infinite request rate is one, of all at once."""
        odd = (name for name, value in self.value.items() if isinstance(value, float) and not math.isfinite(value))
        return Place(self.where, self.number, tuple(name for name in odd if name != "request_rate"), self.digest)


def digest_of(value: object) -> bytes:
    """Of what a JSON value says, however it was written."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).digest()


def in_words(value: object) -> str | None:
    """A scalar as a fact tells it; None for null and for what is no scalar."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, int | str) else None


def shown(value: object) -> str:
    """A value as an error shows it: cut where it is long."""
    text = json.dumps(value, default=str) if isinstance(value, float) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def once(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text once; of many that differ in numbers alone, such as that of their line, the first with their count."""
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        alike.setdefault(_NUMBER.sub("#", text), []).append(text)
    return tuple(
        text
        for some in alike.values()
        for text in (some if len(some) <= _MOST_ALIKE else (f"{some[0]}, and {len(some) - 1} more like it",))
    )
