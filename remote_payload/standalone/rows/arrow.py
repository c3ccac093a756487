"""Columns of whole numbers out of an Arrow IPC stream, as `datasets` writes it, without pyarrow.

Read: int and bool columns and lists of them (`list`, `large_list`). Other columns are stepped over. Refused by name: a
wanted column of another type, compressed bodies, dictionaries, nulls. Values are read row by row from the file.

Format: https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch

from remote_payload.standalone.rows.flatbuffer import Table, root

CONTINUATION = b"\xff\xff\xff\xff"
SCHEMA, RECORD_BATCH = 1, 3
INT, BOOL, LIST, LARGE_LIST = 2, 6, 12, 21
OWN_BUFFERS = {1: 0, 2: 2, 3: 2, 4: 3, 5: 3, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 12: 2, 13: 1, 15: 2, 16: 1, 17: 2,
               18: 2, 19: 3, 20: 3, 21: 2}  # fmt: skip
"""Buffers of a column by its type's number, without its children's. What is missing here cannot be stepped over."""
TYPE_NAMES = {1: "null", 3: "floating point", 4: "binary", 5: "utf8", 13: "struct", 16: "fixed-size list",
              19: "large binary", 20: "large utf8"}  # fmt: skip
LARGEST_METADATA = 64 << 20
DEEPEST = 8


class ArrowError(ValueError):
    """Why a file cannot be read, in words."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the schema."""

    name: str
    kind: int
    """The number of its type."""
    bits: int
    """Of an int column, or of the items of a list of ints; 1 = bool, 0 = neither."""
    signed: bool
    nodes: int
    """Field nodes it takes in a batch, its children's included."""
    buffers: int
    """Buffers, likewise."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Bytes of the file."""

    start: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A record batch: its rows, and where the wanted columns' buffers lie."""

    first: int
    rows: int
    buffers: dict[str, tuple[Span, ...]]


@dataclass(frozen=True, kw_only=True)
class ArrowFile:
    """The wanted columns of one file; nothing but metadata is in memory."""

    path: Path
    columns: dict[str, Column]
    batches: tuple[Batch, ...]

    @property
    def rows(self) -> int:
        """How many rows the file holds."""
        return self.batches[-1].first + self.batches[-1].rows if self.batches else 0

    def read(self, name: str, row: int) -> torch.Tensor:
        """The int64 values (T,) of a list column in one row. Raises ArrowError, OSError."""
        batch = next(batch for batch in self.batches if batch.first <= row < batch.first + batch.rows)
        column, index = self.columns[name], row - batch.first
        try:
            with self.path.open("rb") as file:
                start, stop = _offsets(file, column, batch.buffers[name][1], index)
                return _values(file, column, batch.buffers[name][3], start, stop)
        except struct.error as error:
            raise ArrowError(f"it was cut while it was read ({error})") from None


def open_arrow(path: Path, wanted: tuple[str, ...]) -> ArrowFile:
    """Look at a stream's metadata. Raises ArrowError naming what cannot be read, OSError."""
    try:
        return _open(path, wanted)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise ArrowError(f"it is not a whole Arrow IPC stream ({error})") from None


def _open(path: Path, wanted: tuple[str, ...]) -> ArrowFile:
    size = path.stat().st_size
    columns: list[Column] | None = None
    batches: list[Batch] = []
    with path.open("rb") as file:
        for kind, header, body, body_size in _messages(file, size):
            if kind == SCHEMA and columns is None:
                columns = [_column(field, 0) for field in header.tables(1)]
                _check_wanted(columns, wanted)
            elif kind == RECORD_BATCH and columns is not None:
                first = batches[-1].first + batches[-1].rows if batches else 0
                batches.append(_batch(header, columns, wanted, Span(start=body, size=body_size), first))
            else:
                raise ArrowError(f"it holds a message that is not read here (dictionaries are not), of kind: {kind}")
    if columns is None:
        raise ArrowError("it is not an Arrow IPC stream: it has no schema")
    return ArrowFile(
        path=path, columns={column.name: column for column in columns if column.name in wanted}, batches=tuple(batches)
    )


def _messages(file: IO[bytes], size: int) -> Iterator[tuple[int, Table, int, int]]:
    """(kind, header, start of the body, its size) of each message."""
    while prefix := file.read(8):
        if len(prefix) < 8 or prefix[:4] != CONTINUATION:
            raise ArrowError("it is not an Arrow IPC stream: a message has no marker")
        (length,) = struct.unpack("<i", prefix[4:])
        if length == 0:
            return
        if not 0 < length <= LARGEST_METADATA:
            raise ArrowError(f"a message's metadata must be 1..{LARGEST_METADATA} bytes long, found: {length}")
        metadata = file.read(length)
        if len(metadata) < length:
            raise ArrowError("it is truncated within a message's metadata")
        message = root(metadata)
        header, body = message.table(2), file.tell()
        body_size = message.number(3, "<q")
        if header is None or body_size < 0 or body + body_size > size:
            raise ArrowError(f"it is truncated: a message of {body_size} bytes begins at byte {body} of: {size}")
        yield message.number(1, "<B"), header, body, body_size
        file.seek(body + body_size)


def _column(field: Table, depth: int) -> Column:
    name, kind = field.text(0), field.number(2, "<B")
    if depth > DEEPEST:
        raise ArrowError("its columns are nested too deeply")
    if kind not in OWN_BUFFERS or field.table(4) is not None:
        raise ArrowError(f"column `{name}` has a type that is not known here (view, union or dictionary): {kind}")
    children = [_column(child, depth + 1) for child in field.tables(5)]
    described = field.table(3)
    bits, signed = 0, True
    if kind == INT and described is not None:
        bits, signed = described.number(0, "<i"), bool(described.number(1, "<B"))
    elif kind == BOOL:
        bits = 1
    elif kind in (LIST, LARGE_LIST) and len(children) == 1 and children[0].kind in (INT, BOOL):
        bits, signed = children[0].bits, children[0].signed
    return Column(
        name=name,
        kind=kind,
        bits=bits,
        signed=signed,
        nodes=1 + sum(child.nodes for child in children),
        buffers=OWN_BUFFERS[kind] + sum(child.buffers for child in children),
    )


def _check_wanted(columns: list[Column], wanted: tuple[str, ...]) -> None:
    by_name = {column.name: column for column in columns}
    for name in wanted:
        if name not in by_name:
            raise ArrowError(f"it lacks the column `{name}`; it holds: {', '.join(by_name) or 'none'}")
        column = by_name[name]
        if column.kind not in (LIST, LARGE_LIST) or column.bits not in (1, 8, 16, 32, 64):
            found = TYPE_NAMES.get(column.kind, "a list of something else" if column.kind in (LIST, LARGE_LIST) else "")
            raise ArrowError(
                f"column `{name}` must be a list of whole numbers, found: {found or f'type {column.kind}'}"
            )


def _batch(header: Table, columns: list[Column], wanted: tuple[str, ...], body: Span, first: int) -> Batch:
    if header.table(3) is not None:
        raise ArrowError("its record batches are compressed, which is not read here; save the dataset uncompressed")
    rows, nodes, buffers = header.number(0, "<q"), header.pairs(1), header.pairs(2)
    if len(nodes) != sum(column.nodes for column in columns) or len(buffers) != sum(c.buffers for c in columns):
        raise ArrowError("a record batch does not have the buffers of its schema")
    found: dict[str, tuple[Span, ...]] = {}
    node = buffer = 0
    for column in columns:
        if column.name in wanted:
            own = nodes[node : node + column.nodes]
            if own[0][0] != rows or rows < 0:
                raise ArrowError(f"column `{column.name}` must have the batch's {rows} rows, found: {own[0][0]}")
            if any(nulls for _, nulls in own):
                raise ArrowError(f"column `{column.name}` holds nulls")
            spans = tuple(_span(body, offset, size) for offset, size in buffers[buffer : buffer + column.buffers])
            if rows and (rows + 1) * _offset_bytes(column) > spans[1].size:
                raise ArrowError(f"column `{column.name}` has fewer offsets than its {rows} rows need")
            found[column.name] = spans
        node, buffer = node + column.nodes, buffer + column.buffers
    return Batch(first=first, rows=rows, buffers=found)


def _span(body: Span, offset: int, size: int) -> Span:
    if offset < 0 or size < 0 or offset + size > body.size:
        raise ArrowError("a buffer ends behind its message")
    return Span(start=body.start + offset, size=size)


def _offset_bytes(column: Column) -> int:
    return 8 if column.kind == LARGE_LIST else 4


def _offsets(file: IO[bytes], column: Column, span: Span, index: int) -> tuple[int, int]:
    wide = _offset_bytes(column)
    file.seek(span.start + index * wide)
    start, stop = struct.unpack("<qq" if wide == 8 else "<ii", file.read(2 * wide))
    return start, stop


def _values(file: IO[bytes], column: Column, span: Span, start: int, stop: int) -> torch.Tensor:
    first, last = (start * column.bits) // 8, -(-stop * column.bits // 8)
    if not 0 <= start <= stop or last > span.size:
        raise ArrowError(f"column `{column.name}` must end within its values, found items {start}..{stop}")
    file.seek(span.start + first)
    data = bytearray(file.read(last - first))
    if start == stop:
        return torch.zeros(0, dtype=torch.int64)
    if column.bits == 1:
        bits = torch.frombuffer(data, dtype=torch.uint8).to(torch.int64)[:, None] >> torch.arange(8) & 1
        return bits.flatten()[start - first * 8 :][: stop - start]
    name = f"int{column.bits}" if column.signed or column.bits == 64 else f"uint{column.bits}"
    if hasattr(torch, name):
        return torch.frombuffer(data, dtype=getattr(torch, name)).to(torch.int64)
    raise ArrowError(f"column `{column.name}` holds a kind of number that is not known here: {name}")
