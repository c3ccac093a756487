"""Secrets among a job's settings, refused: a job is written down on both machines, a secret nowhere."""

import re
from collections.abc import Mapping

from orchestrator.errors import ConfigError, JobFileError
from orchestrator.flags import flag_of
from remote_payload.schema import Job

_WORDS = r"api[-_]?key|password|passwd|secret|credential|private[-_]?key|access[-_]?key|auth[-_]?token|hf[-_]token"
_SHORTENED = r"(?:admin-)?api(?:-ke?)?"
"""As argparse takes it for --api-key."""
_OPTION = re.compile(rf"--(?:[\w-]*(?:{_WORDS})|{_SHORTENED})(?P<value>=.*)?", re.IGNORECASE | re.DOTALL)
_INSIDE = re.compile(rf"""(?:{_WORDS})['"]?\s{{0,8}}[=:]\s{{0,8}}['"]?\w""", re.IGNORECASE)
_URL = re.compile(r"://[^\s/:@'\"]{0,128}:[^\s/@'\"]{1,512}@")
_VARIABLE = re.compile(
    r"(?:^|_)(?:TOKEN|PAT|AUTH|[A-Z]*KEY(?:_ID)?|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)=(?P<value>.+)",
    re.IGNORECASE | re.DOTALL,
)
_HARMLESS = re.compile(r"[\d.+-]*|true|false|none|null|auto|default", re.IGNORECASE)
"""Values that are no secret, whatever their name: SGLANG_X_KEY=1."""
_WOULD = "would be written into the run's files, here and on the host"
_HINT = (
    "give a variable that holds it: its name to `secrets` of the host in eagle3.toml, its value to this laptop's "
    "environment; --api-key-env names the one with the server's API key"
)


def require_no_secret(job: Job, sources: Mapping[str, str]) -> None:
    """Raise JobFileError for a secret among a job's settings; the message does not hold it.

    By the names that secrets go by: an option, a key within a value, a variable, the password of an address.
    """
    for key, value in vars(job).items():
        found = None
        if key in ("server_args", "exec_prefix"):
            found = _in_variables(value) or _in_words(value)
        elif key == "server_environment":
            found = _in_variables(value)
        elif isinstance(value, str) and _URL.search(value):
            found = "the password of the address"
        if found is not None:
            source = sources.get(key, flag_of(key))
            raise JobFileError(f"{source}: {found} {_WOULD}", hint=_HINT)


def require_no_secret_of_host(
    name: str, environment: Mapping[str, str], exec_prefix: tuple[str, ...], notify_command: tuple[str, ...] = ()
) -> None:
    """The same for what the configuration of a host adds to its jobs. Raises ConfigError."""
    told = _in_variables(tuple(f"{key}={value}" for key, value in environment.items()))
    for key, found in (
        ("environment", told),
        ("exec_prefix", _in_variables(exec_prefix) or _in_words(exec_prefix)),
        ("notify_command", _in_variables(notify_command) or _in_words(notify_command)),
    ):
        if found is not None:
            raise ConfigError(f"eagle3.toml [hosts.{name}] `{key}`: {found} {_WOULD}", hint=_HINT)


def _in_words(words: tuple[str, ...]) -> str | None:
    last = ""
    for number, word in enumerate(words):
        name = word.partition("=")[0]
        last = name if name.startswith("--") else last
        option, after = _OPTION.fullmatch(word), words[number + 1 : number + 2]
        if option is not None and (option["value"] or (after and not after[0].startswith("--"))):
            return f"the value of {name}"
        if option is None and (_INSIDE.search(word) or _URL.search(word)):
            return f"a secret in the value of {last or 'a word'}"
    return None


def _in_variables(pairs: tuple[str, ...]) -> str | None:
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not equals or not name.isidentifier():  # a word that sets no variable
            continue
        held = _VARIABLE.search(pair)
        is_named = held is not None and pair.index("=") == held.start("value") - 1
        if (held is not None and is_named and not _HARMLESS.fullmatch(held["value"])) or _URL.search(pair):
            return f"the value of {name}"
    return None
