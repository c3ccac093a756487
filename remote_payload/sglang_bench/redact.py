"""Secrets out of whatever a server prints, says about itself, or was started with.

Every pattern here starts at a fixed word and looks a bounded way from it, so that a line costs its length: whoever
reads a server's output slowly makes the server wait.
"""

import json
import re
from collections.abc import Iterable, Sequence

REDACTED = "<redacted>"
SHORTEST = 4
"""A shorter value would blot out half of a line."""
DEEPEST = 40
"""Levels of a JSON value; what is nested deeper is left out."""
_WORDS = r"api[-_]?key|password|passwd|secret|credential|private[-_]?key|access[-_]?key|watermark[-_]key|auth[-_]?token"
_TOKENS = r"hf|hub|bearer|access|github|gitlab|wandb"
_SECRET = re.compile(rf"(?:{_WORDS}|(?:^|[-_])(?:{_TOKENS})[-_]token$)", re.IGNORECASE)
_VARIABLE = re.compile(
    r"(?:^|_)(?:TOKENS?|KEYS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)
_NAMES = rf"(?:{_WORDS}|api key|(?:{_TOKENS})[-_]token|(?-i:_(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PAT|AUTH)\b))"
_QUOTE = r"""\\{0,3}['"]"""
"""Also as it stands in JSON within JSON."""
_VALUE = r"""(?P<open>\[?(?:SecretStr\()?)(?P<value>\\{0,3}'[^']*'|\\{0,3}"[^"]*"|[^\s,)}\]'"\\]+)"""
_PAIR = re.compile(
    rf"""(?P<head>{_NAMES}[-\w]{{0,64}}(?:{_QUOTE})?\s{{0,40}}[=:]\s{{0,40}}){_VALUE}""",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"""(?P<head>(?<![-\w])--(?=\w)[-\w]{{0,40}}{_NAMES}[-\w]{{0,24}}(?:{_QUOTE})?,?\s{{1,40}}){_VALUE}""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"""(?i)(?P<head>(?:bearer|authorization['"]?\s{0,8}[=:]\s{0,8}['"]?\w{1,16})\s{1,8})[^\s'"]+""")
_URL = re.compile(r"(?P<head>://[^\s/:@'\"]{0,128}:)[^\s/@'\"]{1,512}@")
_LONE = re.compile(r"(?P<head>://)[^\s/:@'\"]{16,512}@")
"""A token in the place of a user."""
_QUERY = re.compile(r"(?P<head>[?&](?:token|key|sig|signature|auth)=)[^\s&'\"]+", re.IGNORECASE)
_NOTHING = {"None", "null", "none", "''", '""', "=", ":", "is", "not", "must", "for", REDACTED, f"'{REDACTED}'"}
_HARMLESS = {"true", "false", "none", "null", "auto", "default"}


def is_secret(name: str) -> bool:
    """Whether an option, key or variable of this name holds a secret: `--api-key`, `admin_api_key`, `HF_TOKEN`."""
    return _SECRET.search(name) is not None


def secrets_of_variable(name: str, value: str) -> tuple[str, ...]:
    """What of an environment variable's value must be shown nowhere: `MY_TOKEN`'s is, `DB_URL`'s password is."""
    inside = tuple(found[0][len(found["head"]) : -1] for found in _URL.finditer(value))
    if (is_secret(name) or _VARIABLE.search(name)) and value.lower() not in _HARMLESS:
        return (value, *inside)
    return inside


def redact_argv(argv: Iterable[str], values: Sequence[str] = ()) -> tuple[str, ...]:
    """A command's words with the values of secret options (`--api-key X`, `--api-key=X`, `NAME=X`) replaced."""
    words: list[str] = []
    hidden_next = False
    for word in argv:
        name, equals, value = word.partition("=")
        if hidden_next and not word.startswith("--"):
            words.append(REDACTED)
            hidden_next = False
        elif equals and is_secret(name):
            words.append(f"{name}={REDACTED}")
            hidden_next = False
        elif equals and name.isidentifier() and secrets_of_variable(name, value):
            words.append(f"{name}={redact_text(value, (*values, *secrets_of_variable(name, value)))}")
            hidden_next = False
        else:
            hidden_next = word.startswith("--") and is_secret(word)
            words.append(word if hidden_next else redact_text(word, values))
    return tuple(words)


def redact_text(text: str, values: Iterable[str] = ()) -> str:
    """A line without the values of secrets: those of secret names, and the given `values` wherever they stand."""
    for value in values:
        if len(value) >= SHORTEST:
            text = text.replace(value, REDACTED).replace(json.dumps(value)[1:-1], REDACTED)
    if "://" in text:
        text = _LONE.sub(rf"\g<head>{REDACTED}@", _URL.sub(rf"\g<head>{REDACTED}@", text))
    text = _SCHEME.sub(rf"\g<head>{REDACTED}", _QUERY.sub(rf"\g<head>{REDACTED}", text))
    return _OPTION.sub(_hide, _PAIR.sub(_hide, text))


def redact_json(value: object, name: str = "", values: Sequence[str] = (), depth: int = 0) -> object:
    """A parsed JSON value with every secret in it replaced, at any depth down to `DEEPEST`."""
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return "<nested too deep>"
    if isinstance(value, dict):
        return {redact_text(key, values): redact_json(item, key, values, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        words = [item for item in value if isinstance(item, str)]
        if len(words) == len(value) and any(word.startswith("--") for word in words):
            return list(redact_argv(words, values))  # a command
        return [redact_json(item, name, values, depth + 1) for item in value]
    if isinstance(value, str):
        return REDACTED if value and is_secret(name) else redact_text(value, values)
    return value


def _hide(found: "re.Match[str]") -> str:
    value = found["value"]
    if value in _NOTHING or (value.isdigit() and not is_secret(found["head"])):  # a count: `total_token: 7`
        return found[0]
    bare = value.lstrip("\\")
    quote = value[: len(value) - len(bare) + 1] if bare[:1] in ("'", '"') else ""
    return f"{found['head']}{found['open']}{quote}{REDACTED}{quote}"
