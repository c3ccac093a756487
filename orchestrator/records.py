"""Records on the laptop: its own (a run, a baseline), and how all records are read, with errors naming file and key.

The wire's records live in `remote_payload.schema`, and so does the strict reader that a host without pydantic uses.
A text that it accepts is read; anything else goes to pydantic, which names every key that is wrong. So pydantic, 0.1 s
to import and to build its validators, is only paid for where something is wrong.
"""

import json
from typing import TYPE_CHECKING, TypeVar

from orchestrator.errors import Eagle3Error, ProtocolError
from remote_payload.schema import (
    FRAME_KINDS,
    SCHEMA_VERSION,
    Frame,
    Record,
    RunSpec,
    RunState,
    SchemaError,
    Setting,
    from_json,
    to_json,
)
from remote_payload.schema.record import require, require_finite

if TYPE_CHECKING:
    from pydantic import ValidationError

R = TypeVar("R", bound=Record)

NAME_RULE = "lower-case letters, digits, `.`, `_`, `-`, starting with a letter or digit, at most 64 characters"
_NAME_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_NAME_REST = _NAME_FIRST | frozenset("._-")


class RunHost(Record):
    """Where a run went."""

    name: str
    """As the user named it: a host of eagle3.toml, an ssh alias, `user@address:port`."""
    destination: str
    """What that meant when the run was launched: `user@address:port`."""
    root: str = "~/.eagle3-remote"
    """The tool's root on that host."""


class RunRecord(Record):
    """`run.json`: one run as this laptop knows it. Everything that was asked for stands in `spec`."""

    schema_version: int = SCHEMA_VERSION
    host: RunHost
    spec: RunSpec
    state: RunState | None = None
    """The final state, or the last one seen; None = begun here, no answer of the host yet."""
    state_seen_unix_s: float | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_finite(state_seen_unix_s=self.state_seen_unix_s)
        require(
            self.state is None or self.state.run_id == self.spec.run_id,
            "`state.run_id` must be the spec's run id",
        )

    @property
    def run_id(self) -> str:
        """The run's id, made by the laptop."""
        return self.spec.run_id

    @property
    def job_kind(self) -> str:
        """`standalone`, `selftest`."""
        return self.spec.job_kind

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Where each setting of the job came from."""
        return self.spec.settings

    @property
    def payload_sha256(self) -> str:
        """Which payload ran."""
        return self.spec.payload_sha256

    @property
    def launched_by(self) -> str:
        """user@laptop."""
        return self.spec.launched_by

    @property
    def created_unix_s(self) -> float:
        """When the laptop made the run id, by the laptop's clock."""
        return self.spec.created_unix_s

    @property
    def finished_unix_s(self) -> float | None:
        """When the run ended, by the host's clock; None = not over, or unknown."""
        return None if self.state is None else self.state.finished_unix_s

    @property
    def phase(self) -> str:
        """The state's phase; `unknown` while no state was seen."""
        return "unknown" if self.state is None else self.state.phase


class BaselineNumber(Record):
    """One typed number, e.g. output_throughput_tok_s = 90 tok/s."""

    metric: str
    value: float
    unit: str | None = None

    def __post_init__(self) -> None:
        require(is_name(self.metric), f"a metric's name must be {NAME_RULE}, found: {self.metric!r}")
        require_finite(value=self.value)


class BaselineEntry(Record):
    """What a baseline meant from `set_at_unix_s` on: a run, or typed numbers; never both."""

    run_id: str | None = None
    numbers: tuple[BaselineNumber, ...] = ()
    source: str = ""
    """Who set it (user@laptop), or where typed numbers came from."""
    note: str = ""
    set_at_unix_s: float

    def __post_init__(self) -> None:
        require_finite(set_at_unix_s=self.set_at_unix_s)
        require((self.run_id is None) == bool(self.numbers), "a baseline is either a run or typed numbers")
        metrics = [number.metric for number in self.numbers]
        require(len(set(metrics)) == len(metrics), "a metric must stand once")


class Baseline(Record):
    """`baselines/NAME.json`: a name and everything it ever meant, oldest first; the last entry holds."""

    schema_version: int = SCHEMA_VERSION
    name: str
    history: tuple[BaselineEntry, ...]

    def __post_init__(self) -> None:
        require(is_name(self.name), f"a baseline's name must be {NAME_RULE}, found: {self.name!r}")
        require(bool(self.history), "`history` must not be empty")

    @property
    def current(self) -> BaselineEntry:
        """What the name means now."""
        return self.history[-1]


def is_name(text: str) -> bool:
    """Whether `text` follows NAME_RULE (it becomes a file name)."""
    return 0 < len(text) <= 64 and text[0] in _NAME_FIRST and set(text) <= _NAME_REST


def read_record(cls: type[R], text: str | bytes, *, where: str = "", error: type[Eagle3Error] = ProtocolError) -> R:
    """Read one record from JSON text, strictly: unknown keys, wrong types and NaN are refused.

    `where` names the file or the sender in the message. Raises `error` with the offending key paths and what was there.
    """
    try:
        record = from_json(cls, text)
    except (SchemaError, RecursionError):
        record = _read_by_pydantic(cls, text, where, error)
    version = getattr(record, "schema_version", SCHEMA_VERSION)
    if version > SCHEMA_VERSION:
        raise error(_newer(cls, version, where))
    return record


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
