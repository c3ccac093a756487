"""Reading flatbuffers, the format of Arrow's metadata, with nothing but the standard library.

A table is a position in a buffer; a vtable says where each of its fields lies. Positions come from the file and are
checked by `struct` alone: whatever points outside the buffer raises `struct.error` or IndexError.

Format: https://flatbuffers.dev/internals/
"""

import struct
from dataclasses import dataclass

NO_FIELD = 0


@dataclass(frozen=True, kw_only=True)
class Table:
    """A flatbuffers table within `buffer`."""

    buffer: bytes
    position: int

    def number(self, field: int, kind: str, default: int = 0) -> int:
        """A scalar field by its number; `kind` is a `struct` format such as `<h`."""
        at = self._field(field)
        return int(struct.unpack_from(kind, self.buffer, at)[0]) if at else default

    def table(self, field: int) -> "Table | None":
        """A field that is a table; None where it is absent."""
        at = self._field(field)
        return Table(buffer=self.buffer, position=self._follow(at)) if at else None

    def text(self, field: int) -> str:
        """A field that is a string; empty where it is absent."""
        at = self._field(field)
        if not at:
            return ""
        start = self._follow(at)
        (length,) = struct.unpack_from("<I", self.buffer, start)
        return self.buffer[start + 4 : start + 4 + length].decode("utf-8")

    def tables(self, field: int) -> "list[Table]":
        """A field that is a vector of tables."""
        start, count = self._vector(field, 4)
        return [Table(buffer=self.buffer, position=self._follow(start + 4 * index)) for index in range(count)]

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A field that is a vector of structs of two int64, as Arrow's FieldNode and Buffer are."""
        start, count = self._vector(field, 16)
        return list(struct.iter_unpack("<qq", self.buffer[start : start + 16 * count]))

    def _vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        at = self._field(field)
        if not at:
            return 0, 0
        start = self._follow(at)
        (count,) = struct.unpack_from("<I", self.buffer, start)
        if start + 4 + item_bytes * count > len(self.buffer):
            raise IndexError("a vector ends behind the buffer")
        return start + 4, count

    def _field(self, field: int) -> int:
        """Where a field lies; NO_FIELD where the table lacks it."""
        vtable = self.position - self._signed(self.position)
        if vtable < 0:
            raise IndexError("a vtable begins before the buffer")
        (size,) = struct.unpack_from("<H", self.buffer, vtable)
        slot = 4 + 2 * field
        if slot + 2 > size:
            return NO_FIELD
        (offset,) = struct.unpack_from("<H", self.buffer, vtable + slot)
        return self.position + offset if offset else NO_FIELD

    def _signed(self, at: int) -> int:
        return int(struct.unpack_from("<i", self.buffer, at)[0])

    def _follow(self, at: int) -> int:
        return at + int(struct.unpack_from("<I", self.buffer, at)[0])


def root(buffer: bytes) -> Table:
    """The table that a buffer begins with."""
    return Table(buffer=buffer, position=struct.unpack_from("<I", buffer)[0])
