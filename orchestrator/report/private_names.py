"""What records name that is private: hosts, accounts, folders, files, addresses, words for a server.

Whatever setting is not known to be nobody's is private, so that one that is added tomorrow is as well. What is numbers,
one of our own choices, or a word that every report has tells nothing, and stays.
"""

import dataclasses
import functools
import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from orchestrator.report.redaction import Private
from remote_payload.schema import JOB_KINDS

NOBODYS = ("kind", "job_kind", "run_id", "diagnosis_id", "within", "after", "resume", "payload_sha256", "settings",
           "state", "tags", "algorithm", "dtype", "quantization", "draft_quantization", "device", "states", "trained",
           "gres", "time", "mem", "leases", "start_local")  # fmt: skip
"""Settings whose text is SGLang's, Slurm's or this tool's, and ids: runs are told by theirs."""
ORDINARY = re.compile(
    r"(?i)[\d.,:+-]*|none|null|true|false|yes|no|on|off|auto|default|bundled|random|cpu|cuda(:\d+)?|localhost|"
    r"(draft(er)?|target|model|row|prompt|weight|checkpoint|trained|heldout|held-out|merged|train|test)s?|"
    r"(train|training|heldout|merged)[-_](rows|prompts)|"
    r"(train|heldout|rows|merged|prompts|config|bench|job|model|eagle3)\.(jsonl?|toml|safetensors)|config|"
    r"eagle[-_]?3?|eagle3-remote|sglang[\w.]*|python[\d.]*|python3?|env|bash|sh|srun|docker|podman|apptainer|singularity|"
    r"exec|run|conda|nice|numactl|bin|lib|home|data|tmp|usr|opt|srv|venv"
)
"""Names that tell nothing of who chose them."""
_CHOSEN = re.compile(r"(backend|dtype|quantization|algorithm|device|format|parser|mode|method|policy|schedule|level)$")
"""Options whose values, where they are plain words, are one of SGLang's own."""
_OF_PROGRAMS = re.compile(r"(SGLANG|SGL|CUDA|NCCL|TORCH|PYTORCH|PYTHON|HF|OMP|MKL|TRITON|FLASHINFER|LD|XDG|SLURM)_?\w*|"
                          r"PATH|HOME|USER|TMPDIR|LANG|TZ|(?:HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)  # fmt: skip
Named = tuple[str, str]
"""Of `Private`'s fields, and what belongs there."""


def private_in(*records: Any) -> Private:
    """Everything private that records, or what was asked, name at any depth. A `RunHost` is a host by its name."""
    found: dict[str, set[str]] = {field.name: set() for field in dataclasses.fields(Private)}
    for record in records:
        for kind, value in _named("", record):
            found[kind].add(value)
    found["names"] -= found["paths"] | found["hosts"] | found["users"]
    return Private(**{kind: sorted(values) for kind, values in found.items()})


def _named(key: str, value: Any) -> Iterator[Named]:
    if key in NOBODYS or value is None or isinstance(value, int | float):
        return
    if key in _READ:
        yield from _READ[key](value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in _texts(type(value)):
            yield from _named(name, getattr(value, name))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _choices():
                yield from _named(str(name), item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _named(key, item)
    else:
        yield from _value(str(value))


def _texts(record: Any) -> tuple[str, ...]:
    """The fields of a class that may hold text which is not one of our own choices."""
    hints = typing.get_type_hints(record)
    return tuple(item.name for item in dataclasses.fields(record) if _is_text(hints[item.name]))


@functools.cache
def _choices() -> frozenset[str]:
    """Settings of jobs that hold numbers, or one of our own words."""
    records = list(JOB_KINDS.values())
    texts = {name for record in records for name in _texts(record)}
    return frozenset(item.name for record in records for item in dataclasses.fields(record)) - texts


def _is_text(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Literal:
        return False
    parts = typing.get_args(hint)
    return any(map(_is_text, parts)) if parts else hint not in (int, float, bool, type(None), ...)


def _value(text: str) -> Iterator[Named]:
    """A setting's text, by its form."""
    text = text.strip()
    if "://" in text:
        yield from _url(text)
    elif ORDINARY.fullmatch(text) or len(text) < 3 or not any(map(str.isalpha, text)):
        return
    elif "/" in text or "\\" in text or text.startswith("~") or re.search(r"\.\w{1,12}$", text):
        short = text.rstrip("/").removeprefix("./")
        yield from (("paths", one) for one in {text, short} if not ORDINARY.fullmatch(one))
        for part in PurePath(short).parts:  # of a name in several parts, those that are not plain words stand alone too
            if len(part) > 3 and not part.isalpha() and any(map(str.isalpha, part)) and not ORDINARY.fullmatch(part):
                yield "names", part
    else:
        yield "names", text


def _url(text: str) -> Iterator[Named]:
    try:
        parts = urlsplit(text)
        name, user = parts.hostname, parts.username
    except ValueError:  # e.g. half a bracket: it goes as a whole, by its form
        name = user = None
    yield "paths", text
    if name is not None:
        yield from _address(name)
    if user is not None:
        yield "users", user


def _address(text: str) -> Iterator[Named]:
    """`user@name:port`, and the first label of a full name."""
    user, _, rest = text.rpartition("@")
    name = re.sub(r"^\[|\](:\d+)?$", "", rest) if rest.startswith("[") else re.sub(r":\d{1,5}$", "", rest)
    if user:
        yield "users", user
    if name.lower() in ("", "localhost", "127.0.0.1", "::1"):
        return
    yield "hosts", name
    first, dot, _ = name.partition(".")
    if dot and not first.isdigit():
        yield "hosts", first


def _host(value: str) -> Iterator[Named]:
    """As somebody named it: whatever it is, also where it is an ordinary word."""
    yield from _address(value)


def _job(text: str) -> Iterator[Named]:
    yield from _named("", json.loads(text))


def _words(words: Sequence[str] | str) -> Iterator[Named]:
    """Words of a command line: what follows an option, stands in it, or sets a variable."""
    option = ""
    for word in [words] if isinstance(words, str) else words:
        name, equals, rest = word.partition("=")
        if word.startswith("-"):
            option = name
            yield from _argument(option, rest)
        elif equals and name.isidentifier():
            yield from _variable(word)
        else:
            yield from _argument(option, word)


def _argument(option: str, text: str) -> Iterator[Named]:
    if text[:1] in ("{", "["):
        try:
            yield from _inside(json.loads(text))
        except ValueError:  # no JSON: a word like another
            yield from _value(text)
    elif not (_CHOSEN.search(option) and re.fullmatch(r"\w+", text)):
        for part in {text, *text.split(",")}:
            yield from _value(part)


def _inside(value: Any) -> Iterator[Named]:
    if isinstance(value, str):
        yield from _value(value)
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _inside(item)


def _variables(pairs: Mapping[str, str] | Sequence[str] | str) -> Iterator[Named]:
    """Of an environment; a name alone is that of a secret."""
    words = [f"{name}={value}" for name, value in pairs.items()] if isinstance(pairs, Mapping) else pairs
    for word in [words] if isinstance(words, str) else words:
        yield from _variable(word)


def _variable(word: str) -> Iterator[Named]:
    name, _, value = word.partition("=")
    if not _OF_PROGRAMS.fullmatch(name):
        yield from _value(name)
    yield from _argument("", value)


_READ: Mapping[str, typing.Callable[[Any], Iterator[Named]]] = {
    "host": lambda value: _host(value) if isinstance(value, str) else _of_host(value),
    "told_as": _host,
    "ssh": _host,
    "destination": _address,
    "launched_by": _address,
    "attach_url": _url,
    "job_json": _job,
    "asked_json": _job,
    "server_args": _words,
    "exec_prefix": _words,
    "notify_command": _words,
    "options": _words,
    "environment": _variables,
    "server_environment": _variables,
    "secret_names": _variables,
    "secrets": _variables,
    "api_key_env": _variables,
}
"""Settings that are read by what they are, not by their form."""


def _of_host(record: Any) -> Iterator[Named]:
    """A host's record: its `name` is a host's."""
    if hasattr(record, "name"):
        yield from _host(record.name)
    for name in _texts(type(record)):
        if name != "name":
            yield from _named(name, getattr(record, name))
