"""Secrets out of whatever a server prints, says about itself, or was started with."""

import re
from collections.abc import Iterable

REDACTED = "<redacted>"
_WORDS = r"api[-_]?key|password|passwd|secret|credential|private[-_]?key|access[-_]?key|watermark[-_]key|auth[-_]?token"
_SECRET = re.compile(rf"(?:{_WORDS}|(?:^|[-_])(?:hf|hub|bearer|access|github|gitlab|wandb)[-_]token$)", re.IGNORECASE)
_NAME = rf"[-\w]*(?:{_WORDS}|(?:hf|hub|access|github|gitlab|wandb)[-_]token)[-\w]*"
_PAIR = re.compile(
    rf"""(?P<head>['"]?{_NAME}['"]?(?:['"]?\s*[=:]\s*|['"]?,?\s+))(?P<value>'[^']*'|"[^"]*"|[^\s,)}}\]'"]+)""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)(bearer\s+)[^\s'\"]+")
_NOTHING = {"None", "null", "none", "''", '""', "=", ":", "is", "not", "must", "for", REDACTED, f"'{REDACTED}'"}


def is_secret(name: str) -> bool:
    """Whether an option, key or variable of this name holds a secret: `--api-key`, `admin_api_key`, `HF_TOKEN`."""
    return _SECRET.search(name) is not None


def redact_argv(argv: Iterable[str]) -> tuple[str, ...]:
    """A command's words with the values of secret options (`--api-key X`, `--api-key=X`, `NAME=X`) replaced."""
    words: list[str] = []
    hidden_next = False
    for word in argv:
        name, equals, _ = word.partition("=")
        if hidden_next and not word.startswith("--"):
            words.append(REDACTED)
            hidden_next = False
        elif equals and is_secret(name):
            words.append(f"{name}={REDACTED}")
            hidden_next = False
        else:
            words.append(redact_text(word) if " " in word else word)
            hidden_next = word.startswith("--") and is_secret(word)
    return tuple(words)


def redact_text(text: str, values: Iterable[str] = ()) -> str:
    """A line without the values of secrets: those of secret names, and the given `values` wherever they stand."""
    for value in values:
        if len(value) >= 4:  # a shorter one would blot out half of the line
            text = text.replace(value, REDACTED)
    return _BEARER.sub(rf"\1{REDACTED}", _PAIR.sub(_hide, text))


def redact_json(value: object, name: str = "", values: tuple[str, ...] = ()) -> object:
    """A parsed JSON value with every secret in it replaced, at any depth."""
    if isinstance(value, dict):
        return {key: redact_json(item, str(key), values) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_json(item, name, values) for item in value]
    if isinstance(value, str):
        return REDACTED if value and is_secret(name) else redact_text(value, values)
    return value


def _hide(found: "re.Match[str]") -> str:
    value = found["value"]
    if value in _NOTHING:
        return found[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{found['head']}{quote}{REDACTED}{quote}"
