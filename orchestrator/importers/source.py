"""A result file as it was read: its bytes, line by line, and its JSON objects with the line each stands on.

One line at a time becomes text and objects, so a large JSONL costs its bytes and its longest line; a line or a document
that is too large to be parsed at once is refused by name.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.errors import InvalidRunError
from orchestrator.importers.row import Row, digest_of, shown

MAX_ROWS = 10_000
MAX_OBJECT = 32 << 20
"""Bytes of one JSON document, and of one line: what is parsed at once."""
_SMALLER = "per-request arrays make it so large; leave them away (`--output-details`, `--save-detailed`)"
_SECRET = re.compile(
    rb"""(?:api[-_]key|hf[-_]token|auth[-_]token|access[-_]token|password|passwd|secret)\w*["']?(?:\s*[=:]\s*|\s+)["']?"""
    rb"""(?!None\b|null\b|none\b|["',}\s])[^"',}\s]""",
    re.IGNORECASE,
)
_CUT = "the file may be cut off; nothing of it was imported"
_NO_JSON = "nothing of it was imported: results are JSON, and a server's log has decode lines (`Decode batch ...`)"
_TOO_DEEP = "JSON that is nested too deep"
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\[{\]])")
_TEXT = re.compile(rb"[^\s\xef\xbb\xbf]")


@dataclass(frozen=True)
class Line:
    """One line that is not blank."""

    data: bytes
    where: str
    """File and line, in words."""
    number: int

    @property
    def text(self) -> str:
        """The line as text. Raises InvalidRunError where it is none."""
        try:
            return self.data.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as problem:
            raise InvalidRunError(f"{self.where}: expected text, found other bytes at {problem.start}") from None


@dataclass(frozen=True)
class Source:
    """A file's name (no folder), its bytes, and what the user calls it."""

    name: str
    data: bytes
    label: str = ""
    day: str = ""
    """YYYYMMDD: the day of the file, for a run whose tool does not tell when it measured; empty = not known."""
    places: tuple[str, ...] = ()
    """Where each line came from, of lines that were files of a folder."""

    @cached_property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def is_json(self) -> bool:
        """Whether it begins as JSON does, and not as a log. Raises InvalidRunError where it is empty or no text."""
        self._require_text()
        return _JSON.match(self.data) is not None

    @cached_property
    def holds_secret(self) -> bool:
        """Whether the text seems to tell a key, a token or a password; such a file is not kept."""
        return _SECRET.search(self.data) is not None

    def lines(self) -> Iterator[Line]:
        """Its lines but the blank ones. Raises InvalidRunError where it is empty, no text, or a line is too long."""
        self._require_text()
        number, begin, size = 0, 0, len(self.data)
        while begin < size:
            number += 1
            end = self.data.find(b"\n", begin)
            end = size if end < 0 else end
            where = self.places[number - 1] if self.places else f"{self.name}, line {number}"
            if end - begin > MAX_OBJECT:
                raise _too_large(where, end - begin)
            line = self.data[begin:end]
            if line.strip():
                yield Line(line, where, number)
            begin = end + 1

    def rows(self) -> Iterator[Row]:
        """Its objects: one JSON document (an object or a list of them), or one a line. Raises InvalidRunError."""
        lines = self.lines()
        first = next(lines)
        second = next(lines, None)
        try:
            value = _parsed(first.text)
        except ValueError as problem:
            if second is None or self.places:
                raise self._broken(first.where if self.places else self.name, problem) from None
            value, second = self._document(problem), None
        if second is None:
            yield from self._of_document(value, first)
            return
        yield self._row(value, first.where, first.number)
        for count, line in enumerate(itertools.chain([second], lines), 2):
            if count > MAX_ROWS:
                raise InvalidRunError(f"{self.name}: expected at most {MAX_ROWS} results, found more")
            try:
                yield self._row(_parsed(line.text), line.where, line.number)
            except ValueError as problem:
                raise _broken(line.where, problem) from None

    def _document(self, of_line: ValueError) -> object:
        """One document over several lines; what is no such document is told by its first line."""
        if len(self.data) > MAX_OBJECT:
            raise _too_large(f"{self.name}: its first line is no JSON ({of_line}), and as one document", len(self.data))
        try:
            return _parsed(self.data.decode("utf-8-sig"))
        except UnicodeDecodeError as problem:
            raise InvalidRunError(f"{self.name}: expected text, found other bytes at {problem.start}") from None
        except ValueError as problem:
            raise self._broken(self.name, problem) from None

    def _of_document(self, value: object, line: Line) -> Iterator[Row]:
        if not isinstance(value, list):
            yield self._row(value, line.where if self.places else self.name, 1)
            return
        if len(value) > MAX_ROWS:
            raise InvalidRunError(f"{self.name}: expected at most {MAX_ROWS} results, found {len(value)}")
        for number, item in enumerate(value, 1):
            yield self._row(item, f"{self.name}: entry {number}", number)

    def _row(self, value: object, where: str, number: int) -> Row:
        if not isinstance(value, dict):
            raise InvalidRunError(f"{where}: expected an object, found: {shown(value)}")
        try:
            return Row(value, where, number, self.name, digest_of(value))
        except RecursionError:
            raise _broken(where, ValueError(_TOO_DEEP)) from None

    def _broken(self, where: str, problem: ValueError) -> InvalidRunError:
        """What begins otherwise than JSON does is no file that was cut off."""
        return _broken(where, problem) if self.is_json else _broken(where, problem, _NO_JSON)

    def _require_text(self) -> None:
        if _TEXT.search(self.data) is None:
            raise InvalidRunError(f"{self.name}: expected a result file, found an empty one")
        if (place := self.data.find(b"\0")) >= 0:
            raise InvalidRunError(f"{self.name}: expected text, found other bytes at {place}")


def _parsed(text: str) -> object:
    """JSON, also with the `Infinity` that SGLang writes; keys that stand twice are refused. Raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key twice: {next(name for name in names if names.count(name) > 1)!r}")
    return found


def _broken(where: str, problem: ValueError, hint: str = _CUT) -> InvalidRunError:
    return InvalidRunError(f"{where}: expected JSON, found: {problem}", hint=hint)


def _too_large(where: str, size: int) -> InvalidRunError:
    told = f"expected at most {MAX_OBJECT >> 20} MB at once, found: {math.ceil(size / 2**20)} MB"
    return InvalidRunError(f"{where}: {told}", hint=_SMALLER)
