"""How all records are read, with errors naming file and key.

The wire's records live in `remote_payload.schema`, and so does the strict reader that a host without pydantic uses.
A text that it accepts is read; anything else goes to pydantic, which names every key that is wrong. So pydantic, 0.1 s
to import and to build its validators, is only paid for where something is wrong.
"""

import json
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.errors import Eagle3Error, ProtocolError
from orchestrator.records.upgrade import upgraded
from remote_payload.schema import FRAME_KINDS, SCHEMA_VERSION, Frame, Record, SchemaError, to_json
from remote_payload.schema.record import from_value, parse_json

if TYPE_CHECKING:
    from pydantic import ValidationError

R = TypeVar("R", bound=Record)


def read_record(cls: type[R], text: str | bytes, *, where: str = "", error: type[Eagle3Error] = ProtocolError) -> R:
    """Read one record from JSON text, strictly: unknown keys, wrong types and NaN are refused.

    A record of an older version is brought up to this one's. `where` names the file or the sender in the message.
    Raises `error` with the offending key paths and what was there.
    """
    try:
        value = upgraded(cls, parse_json(text, f"JSON for {cls.__name__}"))
    except SchemaError:
        value = None
    return record_of(cls, value, where=where, error=error, text=text)


def record_of(
    cls: type[R], value: Any, *, where: str = "", error: type[Eagle3Error] = ProtocolError, text: str | bytes = ""
) -> R:
    """As `read_record`, for a value that is already parsed; `text` is what it was parsed from, if anything."""
    try:
        record = from_value(cls, value)
    except (SchemaError, RecursionError):
        record = _read_by_pydantic(cls, text or json.dumps(value), where, error)
    version = getattr(record, "schema_version", SCHEMA_VERSION)
    if version > SCHEMA_VERSION:
        raise error(_newer(cls, version, where))
    return record


def json_of(text: str | bytes, expected: str, *, where: str, error: type[Eagle3Error]) -> Any:
    """The value of a JSON text; `expected` are the words for it. Raises `error`."""
    try:
        return parse_json(text, expected)
    except SchemaError as problem:
        raise error(f"{_at(where)}{str(problem).removeprefix('$: ')}") from None


def read_frame(text: str | bytes, *, where: str = "") -> Frame:
    """Read one frame of the wire by its `kind`. Raises ProtocolError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(f"{_at(where)}expected a frame in JSON, found: {problem}") from None
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in FRAME_KINDS:
        raise ProtocolError(f"{_at(where)}`kind`: expected one of {', '.join(FRAME_KINDS)}, found: {kind!r}")
    return read_record(FRAME_KINDS[kind], text, where=where)


def record_bytes(record: Record) -> bytes:
    """The record as it is stored: one line of JSON and a newline."""
    return f"{to_json(record)}\n".encode()


def lined_bytes(record: Record) -> bytes:
    """The record over several lines, for files that people read and compare: in git, in an editor."""
    return f"{json.dumps(json.loads(to_json(record)), ensure_ascii=True, indent=1)}\n".encode()


def _read_by_pydantic(cls: type[R], text: str | bytes, where: str, error: type[Eagle3Error]) -> R:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        record: R = TypeAdapter(cls).validate_json(text, strict=True)
    except ValidationError as problem:
        raise error(*_explain(cls, problem, text, where)) from None
    return record


def _at(where: str) -> str:
    return f"{where}: " if where else ""


def _newer(cls: type[Record], version: object, where: str) -> str:
    return (
        f"{_at(where)}expected {cls.__name__} of schema version {SCHEMA_VERSION} or older, "
        f"written by a newer eagle3-remote: {version}"
    )


def _explain(cls: type[Record], problem: "ValidationError", text: str | bytes, where: str) -> tuple[str]:
    """Say what pydantic found, a key path at a time; a record of a newer version says only that."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as broken:
        return (f"{_at(where)}expected JSON for {cls.__name__}, found: {broken}",)
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return (_newer(cls, version, where),)
    found = []
    for item in problem.errors(include_url=False)[:5]:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])
        words = _words(item["type"], item["msg"], cls)
        if item["type"] != "value_error":  # our own messages already end with what was found
            shown = repr(item["input"])
            words += f", found: {shown if len(shown) <= 80 else shown[:77] + '...'}"
        found.append(f"`{path.lstrip('.') or cls.__name__}`: {words}")
    return (f"{_at(where)}{'; '.join(found)}",)


def _words(kind: str, message: str, cls: type[Record]) -> str:
    if kind == "unexpected_keyword_argument":
        return "unknown key"
    if kind == "missing":
        return f"missing key of {cls.__name__}"
    return message.removeprefix("Value error, ").replace("Input should be", "expected")
