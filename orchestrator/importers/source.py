"""A result file as it was read: its bytes, its rows of JSON with the line each stands on, and what is wrong."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from orchestrator.errors import InvalidRunError

LARGEST = 1e15
"""Nothing that is counted or timed here is larger."""
MAX_ROWS = 10_000
_SHOWN = 60
_SECRET = re.compile(
    r"""(?:api[-_]key|hf[-_]token|auth[-_]token|access[-_]token|password|passwd|secret)\w*["']?(?:\s*[=:]\s*|\s+)["']?"""
    r"""(?!None\b|null\b|none\b|["',}\s])[^"',}\s]""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Row:
    """One JSON object of a file; `where` names file and line."""

    value: dict[str, Any]
    where: str
    number: int
    """The line it begins on; in a list its place."""

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise InvalidRunError on one key."""
        raise InvalidRunError(f"{self.where}: `{key}`: expected {expected}, found: {_shown(self.value.get(key))}")

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
        return Row(value or {}, f"{self.where}: `{key}`", self.number)

    def rows(self, key: str) -> tuple["Row", ...]:
        """The objects in the list under a key. Raises InvalidRunError."""
        value = self.value.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, "a list of objects")
        return tuple(Row(item, f"{self.where}: `{key}`[{n}]", n + 1) for n, item in enumerate(value))


@dataclass(frozen=True)
class Source:
    """A file's name (no folder), its bytes, and what the user calls it."""

    name: str
    data: bytes
    label: str = ""

    @cached_property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def text(self) -> str:
        """The text. Raises InvalidRunError where it is empty or no text."""
        if not self.data.strip():
            raise InvalidRunError(f"{self.name}: expected a result file, found an empty one")
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            raise InvalidRunError(f"{self.name}: expected text, found other bytes at {problem.start}") from None
        if "\0" in text:
            raise InvalidRunError(f"{self.name}: expected text, found other bytes at {text.index(chr(0))}")
        return text

    @property
    def holds_secret(self) -> bool:
        """Whether the text seems to tell a key, a token or a password; such a file is not kept."""
        return _SECRET.search(self.text) is not None

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Its objects: one JSON document (an object or a list of them), or one a line. Raises InvalidRunError."""
        text = self.text
        try:
            whole = _parsed(text)
        except RecursionError:
            raise InvalidRunError(f"{self.name}: expected a result, found JSON that is nested too deep") from None
        except ValueError as problem:
            return self._lines(text, problem)
        if isinstance(whole, list):
            return tuple(self._row(item, f"{self.name}: entry {n}", n) for n, item in enumerate(whole, 1))
        return (self._row(whole, self.name, 1),)

    def _lines(self, text: str, problem: ValueError) -> tuple[Row, ...]:
        """An object a line; a file that is one broken document over several lines is told as that."""
        found: list[Row] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            where = f"{self.name}, line {number}"
            try:
                value = _parsed(line)
            except RecursionError:
                raise InvalidRunError(f"{where}: expected a result, found JSON that is nested too deep") from None
            except ValueError as of_line:
                told = of_line if found else problem
                raise InvalidRunError(
                    f"{where if found else self.name}: expected JSON, found: {told}",
                    hint="the file may be cut off; nothing of it was imported",
                ) from None
            found.append(self._row(value, where, number))
            if len(found) > MAX_ROWS:
                raise InvalidRunError(f"{self.name}: expected at most {MAX_ROWS} results, found more")
        return tuple(found)

    @staticmethod
    def _row(value: object, where: str, number: int) -> Row:
        if not isinstance(value, dict):
            raise InvalidRunError(f"{where}: expected an object, found: {_shown(value)}")
        return Row(value, where, number)


def without_copies(rows: Sequence[Row]) -> tuple[tuple[Row, ...], int]:
    """The rows without those that stand there twice, and how many those were: a copy is no repeat."""
    seen: dict[str, Row] = {}
    for row in rows:
        seen.setdefault(json.dumps(row.value, sort_keys=True), row)
    return tuple(seen.values()), len(rows) - len(seen)


def in_words(value: object) -> str | None:
    """A scalar as a fact tells it; None for null and for what is no scalar."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, int | str) else None


def _parsed(text: str) -> object:
    """JSON, also with the `Infinity` that SGLang writes; keys that stand twice are refused. Raises ValueError."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key twice: {next(name for name in names if names.count(name) > 1)!r}")
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
