"""Before a launch: which interpreter runs the job on the host, and is our payload there."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.config import HostConfig
from orchestrator.errors import HostNotReadyError, ProtocolError
from orchestrator.remote.host_shell import EXPAND, NO_HOME, NO_HOME_WORDS
from orchestrator.remote.payload import Payload
from orchestrator.remote.verbs import Installed, new_nonce
from orchestrator.updates import Note, Update
from remote_payload.schema import HostFacts, PythonFacts

if TYPE_CHECKING:
    from orchestrator.remote.link import ExecResult, Link

LOOK_S = 30.0
WORDS_BYTES = 500

# Finds any interpreter that can run the payload's stdlib part; fixed text, candidates come as parameters.
_FIND_PYTHON = (
    EXPAND
    + """
nonce=$1; shift
for candidate in "$@" "$VIRTUAL_ENV/bin/python" "$CONDA_PREFIX/bin/python" "$HOME/.venv/bin/python" \
    "$HOME/venv/bin/python" python3 /usr/local/bin/python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.10
do
  expand "$candidate"
  found=$(command -v "$path" 2>/dev/null) || continue
  "$found" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 10))' </dev/null >/dev/null 2>&1 || continue
  printf '\\n%s %s\\n' "$nonce" "$found"
  exit 0
done
printf '\\n%s \\n' "$nonce"
"""
)

_HAVE_PAYLOAD = (
    EXPAND
    + """
expand "$2"
if [ -f "$path/payloads/$3.pyz" ]; then printf '\\n%s yes\\n' "$1"; else printf '\\n%s no\\n' "$1"; fi
"""
)

# Hashes what arrived and gives it its name only if it is what was sent; a faster laptop's file counts as well.
_ADOPT = (
    EXPAND
    + """
expand "$2"; python=$path; expand "$3"; arrived=$path; expand "$4"; final=$path
[ -f "$arrived" ] || arrived=$final
found=$("$python" -I -S -c "$6" "$arrived")
if [ "$found" != "$5" ]; then rm -f -- "$arrived"
elif [ "$arrived" != "$final" ]; then
  [ ! -d "$final" ] || rm -rf -- "$final"
  mv -f -- "$arrived" "$final"
fi
printf '\\n%s %s\\n' "$1" "$found"
"""
)

# After a verb that did not run: takes away a payload that is not what its name says, and the sources compiled from it.
_MEND = (
    EXPAND
    + """
expand "$2"; python=$path; expand "$3"; payload="$path/payloads/$4.pyz"; answer=whole; found=
if [ -f "$payload" ]; then found=$("$python" -I -S -c "$5" "$payload" 2>/dev/null) || found=; fi
if [ -z "$found" ] && [ -f "$payload" ] && [ -r "$payload" ]; then answer=unknown
elif [ "$found" != "$4" ]; then answer=damaged; rm -rf -- "$payload"
fi
for folder in "${payload%.pyz}".*/; do
  [ "$answer" != unknown ] && [ -d "$folder" ] && rm -rf -- "${folder%/}" && answer=damaged
done
printf '\\n%s %s\\n' "$1" "$answer"
"""
)

_HASH = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())"


def install(link: "Link", host: HostConfig, payload: Payload, tell: Callable[[Update], None]) -> Installed:
    """Make sure the payload is on the host; runs under the first interpreter that can (it needs no torch yet).

    Raises HostNotReadyError when there is no Python >= 3.10, or the root cannot be written.
    """
    python = _bootstrap_python(link, host)
    installed = Installed(python=python, root=host.root, sha256=payload.sha256)
    ship(link, installed, payload, tell)
    return installed


def ship(link: "Link", installed: Installed, payload: Payload, tell: Callable[[Update], None]) -> None:
    """Send the payload unless it is there; says which."""
    if _answer(link, _HAVE_PAYLOAD, installed.root, installed.sha256) == "yes":
        tell(Note(name="payload", text=already_there(payload)))
        return
    folder = f"{installed.root}/payloads"
    arrived = f"{folder}/{payload.sha256}.arrived"  # the same name every time: what a cut leaves is used or replaced
    link.put_bytes(payload.data, arrived)
    found = _answer(link, _ADOPT, installed.python, arrived, f"{folder}/{payload.sha256}.pyz", payload.sha256, _HASH)
    if found != payload.sha256:
        raise ProtocolError(
            f"the payload did not arrive whole in {folder}: expected sha256 {payload.sha256}, found: {found}",
            hint="try again; if it stays so, look at the disk of the host",
        )
    tell(Note(name="payload", text=f"{payload.sha256[:12]} shipped, {len(payload.data)} bytes"))


def mend(link: "Link", installed: Installed) -> bool:
    """Whether the payload on the host may be why a verb did not run; what may be damaged of it is gone then."""
    arguments = (installed.python, installed.root, installed.sha256, _HASH)
    return _answer(link, _MEND, *arguments) == "damaged"


def already_there(payload: Payload) -> str:
    """The words for a warm host."""
    return f"{payload.sha256[:12]} is already on the host, nothing shipped"


DRAFTER_PACKAGES = ("torch", "safetensors")
SERVER_PACKAGES = ("sglang",)


def choose_python(
    facts: HostFacts, host: HostConfig, host_name: str, packages: tuple[str, ...] = DRAFTER_PACKAGES
) -> PythonFacts:
    """The first interpreter with all of `packages`.

    Raises HostNotReadyError listing every interpreter that was looked at and what it lacks.
    """
    for python in facts.pythons:
        if python.problem is None and not _lacking(python, packages):
            return python
    looked = "; ".join(f"{python.path}: {_lack(python, packages)}" for python in facts.pythons) or "none"
    raise HostNotReadyError(
        f"host `{host_name}`: expected a Python >= 3.10 with {' and '.join(packages)}, found: {looked}",
        hint=_where_to_name_it(host, host_name, packages),
    )


def _where_to_name_it(host: HostConfig, host_name: str, packages: tuple[str, ...]) -> str:
    if "sglang" in packages:  # the host's `python` is the drafter test's: it may well have no SGLang
        return "name the interpreter of your SGLang environment: --server-python, or `server_python` under [jobs.bench]"
    if host.python:
        return "correct `python` in eagle3.toml"
    line = 'name the interpreter of your training environment: `python = "/path/to/venv/bin/python"` under '
    if host_name.replace("-", "").replace("_", "").isalnum():
        return f"{line}[hosts.{host_name}] in eagle3.toml"
    # A destination as ssh takes it is no name of eagle3.toml: it has no table of its own yet.
    return f'{line}[hosts.NAME] with `ssh = "{host_name}"` in eagle3.toml, and give --host NAME'


def _lacking(python: PythonFacts, packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if not getattr(python, name)]


def _lack(python: PythonFacts, packages: tuple[str, ...]) -> str:
    return python.problem or f"Python {python.version} without {' and '.join(_lacking(python, packages))}"


def _bootstrap_python(link: "Link", host: HostConfig) -> str:
    found = _answer(link, _FIND_PYTHON, *([host.python] if host.python else []))
    if not found:
        raise HostNotReadyError(
            "expected a Python >= 3.10 on the host, found: none on the probe list (virtual and conda environments, "
            "~/.venv, ~/venv, python3 on PATH, /usr/local/bin, /usr/bin)",
            hint='name one: `python = "/path/to/bin/python"` under [hosts.NAME] in eagle3.toml',
        )
    if host.python and "/" in host.python and not found.endswith(host.python.removeprefix("~")):
        raise HostNotReadyError(
            f"the configured interpreter `{host.python}` does not run on the host (or is older than 3.10)",
            hint="`eagle3-remote hosts check` without `python` in eagle3.toml lists what there is",
        )
    return found


def _answer(link: "Link", script: str, *arguments: str) -> str:
    """Run a fixed script and return what it printed behind the nonce.

    Raises HostNotReadyError with the host's own words when the login shell did not run it.
    """
    nonce = new_nonce()
    result = link.exec(["sh", "-c", script, "eagle3-remote", nonce, *arguments], deadline_s=LOOK_S)
    mark = f"{nonce} ".encode()
    for line in result.stdout.split(b"\n"):
        if line.startswith(mark):
            return line[len(mark) :].decode(errors="surrogateescape")
    if result.exit_code == NO_HOME:
        raise HostNotReadyError(NO_HOME_WORDS)
    raise _no_shell(link, result)


def _no_shell(link: "Link", result: "ExecResult") -> HostNotReadyError:
    how = "ended by a signal" if result.exit_code is None else f"exit code {result.exit_code}"
    words = (result.stderr.strip() or result.stdout.strip())[-WORDS_BYTES:].decode(errors="replace")
    from orchestrator.remote.translate_errors import describe  # noqa: PLC0415 - paramiko

    return HostNotReadyError(
        f"the login shell of {describe(link.target)} did not run a command ({how}): {words or 'no message'}",
        hint="the account needs a shell that runs commands: no nologin, no forced command, no start-up file that exits",
    )
