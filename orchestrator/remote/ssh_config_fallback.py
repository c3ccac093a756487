"""The ssh config on a laptop without OpenSSH: paramiko's parser, minus what it would silently get wrong.

It ignores `Include` and lets every `Match` criterion it does not know apply; both are refused here by name, so that no
host is ever dialled with half of its settings.
"""

import glob
import shlex
from pathlib import Path

import paramiko

from orchestrator.errors import UsageError

_DEFAULT_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
_MATCH_CRITERIA = frozenset({"all", "canonical", "final", "host", "originalhost", "user", "localuser", "exec"})
_DEFAULTS = {
    "identityfile": ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"],
    "userknownhostsfile": ["~/.ssh/known_hosts ~/.ssh/known_hosts2"],
    "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"],
}


def read_options(host: str, config: str | None) -> dict[str, list[str]]:
    """Keywords in lower case -> values, for one host; `config` replaces the usual files.

    Raises UsageError for a file that uses what cannot be read here, naming file, line and keyword.
    """
    parser = paramiko.SSHConfig()
    for name in (config,) if config else _DEFAULT_FILES:
        file = Path(name).expanduser()
        if file.is_file():
            text = file.read_text(errors="surrogateescape")
            _refuse_unreadable(text, file)
            try:
                parser.parse(text.splitlines())
            except (paramiko.SSHException, ValueError) as error:
                raise UsageError(f"{file} cannot be read: {error}") from error
    options = {key: [value] if isinstance(value, str) else list(value) for key, value in parser.lookup(host).items()}
    return {**_DEFAULTS, **options}


def _refuse_unreadable(text: str, file: Path) -> None:
    hint = "install the OpenSSH client, which reads it, or write the host's settings out"
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line.strip().replace("=", " ", 1), comments=True)
        except ValueError:
            continue  # an odd quote in a value; the parser decides
        if not words:
            continue
        keyword, values = words[0].lower(), words[1:]
        if keyword == "include" and any(_included(pattern) for pattern in values):
            raise UsageError(f"without OpenSSH this tool cannot follow `Include`, found at {file}:{number}", hint=hint)
        unknown = [word for word in _criteria(values) if word not in _MATCH_CRITERIA] if keyword == "match" else []
        if unknown:
            raise UsageError(
                f"without OpenSSH this tool cannot judge `Match {unknown[0]}`, found at {file}:{number}", hint=hint
            )


def _included(pattern: str) -> list[str]:
    """The files an Include names, relative to ~/.ssh as ssh_config(5) has it; one that names none does no harm."""
    absolute = Path("~/.ssh").expanduser() / Path(pattern).expanduser()
    return glob.glob(str(absolute))  # noqa: PTH207 -- Path.glob takes no absolute pattern


def _criteria(values: list[str]) -> list[str]:
    """The criterion words of a Match line: `all`, `canonical` and `final` stand alone, the others take an argument."""
    found = []
    words = iter(value.lower().lstrip("!") for value in values)
    for word in words:
        found.append(word)
        if word not in ("all", "canonical", "final"):
            next(words, None)
    return found
