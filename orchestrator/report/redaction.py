"""A report free of what is private: secrets, hosts, accounts, addresses, paths, each under a stable placeholder.

Two nets: what the caller knows to be private (its host's name, its user, its secrets) goes wherever it stands; what
looks private goes by its form. The second net is a net: a name that looks like a word and that nobody told is not seen.
Every pattern looks a bounded way, so that a text costs its length.
"""

import dataclasses
import ipaddress
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHORTEST = 3
"""A shorter name is part of too many words: it goes as it was written, where it stands alone."""
ENDPOINTS = ("/server_info", "/get_server_info", "/generate", "/flush_cache", "/metrics", "/health", "/v1/models")
"""Paths of a server's own interface: nobody's."""
SCHEMA = (
    "axis",
    "answer",
    "outcome",
    "severity",
    "cause",
    "causes",
    "check",
    "verdict",
    "step",
    "cost",
    "place",
    "rows",
)
"""Fields of our records that hold words of their own, whatever a user is called."""
MARKUP = ("/details", "/summary")
"""What ends a fold of our own Markdown."""
PUBLIC = ("https://github.com/sgl-project/", "https://arxiv.org/")

_PLACEHOLDER = r"(?:SECRET|URL|ACCOUNT|PATH|ADDRESS|DEVICE|HOST|USER|NAME)-\d{1,6}"
_NAME = (
    r"(?:api[-_]?key|[a-z]{1,20}[-_]token(?!s)|passwd|password|passphrase|secret|credential|private[-_]?key|"
    r"authorization)"
)
_VALUE = r"[^\s'\"`,;}\\]{1,4000}"
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("SECRET", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,20000}?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)"),
    ("SECRET", r"\beyJ[\w-]{6,4000}\.[\w-]{4,4000}(?:\.[\w-]{0,4000})?"),
    ("SECRET", r"\b(?:hf_|sk-|gh[opsu]_|github_pat_|glpat-|xox[abprs]-|nvapi-|AKIA|ASIA|dckr_pat_)[\w-]{8,400}"),
    ("SECRET", r"(?i)(?<=bearer )[^\s'\"`,;]{4,4000}"),
    ("SECRET", rf"(?i){_NAME}[\w-]{{0,40}}\\?['\"]?\s{{0,8}}[=:]\s{{0,8}}\\?['\"]?(?P<value>{_VALUE})"),
    ("SECRET", rf"(?i)--[\w-]{{0,40}}{_NAME}[\w-]{{0,20}}['\"]?,?\s{{1,8}}['\"]?(?P<value>{_VALUE})"),
    ("URL", r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s'\"`<>)\]}|]{1,4000}"),
    ("ACCOUNT", r"[\w.+-]{1,64}\\?@(?:<!-- -->)?[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}(?::\d{1,5})?"),
    ("PATH", r"(?<![\w./\\])(?:\\?~[\w.-]{0,64})?(?:/[^\s/'\"`,;:)\]}<>|]{1,255}){1,64}/?"),
    ("PATH", r"(?<!\w)\\?~[\w.-]{0,64}/?(?=[\s'\"`,;:)\]}]|$)"),
    ("PATH", r"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\)[^\s'\"`,;<>|]{1,4000}"),
    ("PATH", r"(?<![\w./\\-])[A-Za-z][\w.-]{1,95}/[A-Za-z][\w.]{0,60}-[\w.-]{0,60}\d[\w.-]{0,60}(?![\w/])"),
    ("ADDRESS", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.])"),
    ("ADDRESS", r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])"),
    ("DEVICE", r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F-]{8,40}"),
    ("HOST", r"(?i)(?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}(?:com|org|net|edu|gov|io|ai|dev|local|internal|"
     r"intra|corp|lan|cloud|cluster|example|de|fr|uk|eu|cn|jp|kr|in|ch|us)(?::\d{1,5})?(?![\w.])"),
)  # fmt: skip
_HARMLESS = re.compile(r"(?i)\d{1,9}|none|null|true|false|auto|not")
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


@dataclass(frozen=True, kw_only=True)
class Private:
    """What the caller knows to be private."""

    secrets: Sequence[str] = ()
    hosts: Sequence[str] = ()
    users: Sequence[str] = ()
    paths: Sequence[str] = ()
    """Files, folders, addresses, names on a hub: whatever form they have."""
    names: Sequence[str] = ()
    """Anything else that somebody chose."""


@dataclass(kw_only=True)
class Redaction:
    """One report's placeholders: equal values have equal ones, over all its texts and records."""

    private: Private = field(default_factory=Private)
    placeholders: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = {"SECRET": "secrets", "PATH": "paths", "HOST": "hosts", "USER": "users", "NAME": "names"}
        known = {kind: [_plain(name) for name in getattr(self.private, field)] for kind, field in kinds.items()}
        self._secrets = _Known({"SECRET": known.pop("SECRET")})
        self._names = _Known(known)

    def text(self, text: str) -> str:
        """A text, Markdown or plain, without what is private in it.

        Where a text is folded, records go through `record` before it is made: half a path on the next line is none.
        """
        plain = _plain(text)
        for known in (self._secrets, self._names):
            plain = known.pattern.sub(lambda found, k=known: self._known(k, found), plain)  # type: ignore[misc]
        for kind, pattern in _COMPILED:
            plain = pattern.sub(lambda found, k=kind: self._found(k, found), plain)  # type: ignore[misc]
        return plain

    def values(self, value: Any) -> Any:
        """JSON values, keys included; a value that is a path as a whole goes as a whole, blanks and all."""
        if isinstance(value, str):
            is_path = re.match(r"(?:/|~|[A-Za-z]:\\)\S", value) is not None and not value.startswith(ENDPOINTS)
            return self._put("PATH", value) if is_path and "\n" not in value else self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.values(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.values(item) for item in value)
        return value

    def record(self, record: Any) -> Any:
        """A record of ours, with every text in it, at any depth; numbers and words of the schema stay."""
        if dataclasses.is_dataclass(record) and not isinstance(record, type):
            names = [item.name for item in dataclasses.fields(record) if not _is_schema(item.name, record)]
            changes = {name: self.record(getattr(record, name)) for name in names}
            return dataclasses.replace(record, **changes)
        if isinstance(record, tuple):
            return tuple(self.record(item) for item in record)
        return self.values(record)

    def _known(self, known: "_Known", found: re.Match[str]) -> str:
        return found.group() if found.lastgroup is None else self._put(*known.named[found.lastgroup])

    def _found(self, kind: str, found: re.Match[str]) -> str:
        whole = found.group()
        if _is_placeholder(whole) or whole.rstrip("/.") in ENDPOINTS or whole.startswith(PUBLIC):
            return whole
        if whole in MARKUP and found.string[found.start() - 1 : found.end() + 1] == f"<{whole}>":
            return whole
        if kind == "ADDRESS" and ":" in whole and not _is_address(whole):
            return whole
        value = found.groupdict().get("value")
        if value is None:
            tail = whole[len(whole.rstrip(".,;:\\")) :]  # a sentence's own end, or what keeps a table's cell whole
            return f"{self._put(kind, whole[: len(whole) - len(tail)])}{tail}"
        if _is_placeholder(value) or _HARMLESS.fullmatch(value):
            return whole
        return whole[: -len(value)] + self._put(kind, value)

    def _put(self, kind: str, value: str) -> str:
        key = (kind, value.casefold().rstrip("/") or value)
        number = sum(known == kind for known, _ in self.placeholders) + 1
        return self.placeholders.setdefault(key, f"{kind}-{number}")


def _plain(text: str) -> str:
    """One spelling of what looks the same, without characters that cannot be seen."""
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")


class _Known:
    """Names to be found at once, the longest first: none is sought in another's placeholder, or breaks it up."""

    def __init__(self, known: Mapping[str, Sequence[str]]) -> None:
        named = sorted({(kind, name) for kind, names in known.items() for name in names if name}, key=_by_length)
        self.named = {f"name_{place}": item for place, item in enumerate(named)}
        parts = [f"(?P<{group}>{_whole(name, kind)})" for group, (kind, name) in self.named.items()]
        self.pattern = re.compile("|".join([_PLACEHOLDER, *parts]))


def _by_length(named: tuple[str, str]) -> tuple[int, str, str]:
    kind, name = named
    return -len(name), name, kind


def _whole(value: str, kind: str) -> str:
    """A secret wherever it stands; a name as a whole word, whatever its case. Also escaped, or broken over lines."""
    chars = (r"\s{1,13}" if char.isspace() else re.escape(char) for char in value)
    spelled = r"\\?(?:\n {0,12})?".join(chars)
    if kind == "SECRET":
        return spelled
    if value.isdigit():  # numbers are everywhere
        return rf"(?:(?<=--host )|(?<=host )|(?<=host `)){spelled}(?!\w)"
    if len(value) < SHORTEST:
        return rf"(?<![\w.-]){spelled}(?![\w-])"
    return rf"(?i:(?<![a-z0-9])\\?{spelled}(?![a-z0-9]))"


def _is_schema(name: str, record: Any) -> bool:
    """Whether a field holds words of our own; a sentence, or the cells of a table, may have been written by anybody."""
    value = getattr(record, name)
    is_sentence = isinstance(value, str) and re.fullmatch(r"[\w-]{1,40}", value) is None
    is_table = isinstance(value, tuple) and any(isinstance(item, tuple) for item in value)
    return name in SCHEMA and not is_sentence and not is_table


def _is_placeholder(text: str) -> bool:
    return re.fullmatch(_PLACEHOLDER, text) is not None


def _is_address(text: str) -> bool:
    """Whether colons and hex digits are an IPv6 address, or a network card's; times of day are neither."""
    if re.fullmatch(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text):
        return True
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text.count(":") == 1 and re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){3}:\d{1,5}", text) is not None
    return True
