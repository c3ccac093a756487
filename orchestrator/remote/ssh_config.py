"""From a destination the user typed to everything needed to dial it: `resolve("gpu1")` -> `SshTarget`.

OpenSSH itself resolves its config (`ssh -G`: Include, Match and defaults come out settled); it is asked once per hop,
with an argv list. Without OpenSSH on the laptop `ssh_config_fallback` reads the file and refuses what it cannot.
The environment variable EAGLE3_REMOTE_SSH_CONFIG names a config file to use instead of the user's (`ssh -F`).

Not covered: `ProxyUseFdpass`, `PKCS11Provider`, `GSSAPI*`, and the algorithm lists (the library's own are used).
"""

import getpass
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.remote.destination import FORBIDDEN, Destination, parse_destination

SSH_CONFIG_VARIABLE = "EAGLE3_REMOTE_SSH_CONFIG"
MAX_HOPS = 8
_RESOLVE_TIMEOUT_S = 15.0  # `Match exec` commands of the user's config run inside `ssh -G`

Options = Mapping[str, Sequence[str]]
"""ssh_config keywords in lower case -> the values of every line that sets them."""


@dataclass(frozen=True, kw_only=True)
class SshTarget:
    """One host to dial, and the hops before it.

    alias: what the user wrote. identity_agent: socket path, or None for no agent. proxy_jump: hops in dialling order,
    each with an empty proxy_jump of its own. host_key_alias: the name known_hosts is asked for, if not hostname:port.
    proxy_command: a shell command whose stdin and stdout are the connection.
    """

    alias: str
    hostname: str
    port: int
    user: str
    identity_files: tuple[Path, ...] = ()
    certificate_files: tuple[Path, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    user_known_hosts_files: tuple[Path, ...] = ()
    global_known_hosts_files: tuple[Path, ...] = ()
    host_key_alias: str | None = None
    connect_timeout_s: float | None = None
    proxy_jump: tuple["SshTarget", ...] = ()
    proxy_command: str | None = None

    @property
    def host_key_name(self) -> str:
        """The name known_hosts lines are matched against: `host`, `[host]:port` or the HostKeyAlias."""
        if self.host_key_alias is not None:
            return self.host_key_alias.lower()
        host = self.hostname.lower()
        return host if self.port == 22 else f"[{host}]:{self.port}"

    @property
    def ssh_command(self) -> str:
        """The `ssh ...` that dials this host by itself, for a user to paste."""
        typed = parse_destination(self.alias)
        config = os.environ.get(SSH_CONFIG_VARIABLE)
        words = ["ssh", *(["-F", config] if config else []), *(["-p", str(typed.port)] if typed.port else [])]
        return shlex.join([*words, f"{typed.user}@{typed.host}" if typed.user else typed.host])

    @property
    def destination(self) -> str:
        """`user@address:port`, as runs remember their host."""
        return f"{self.user}@{self.hostname}:{self.port}"

    @property
    def address(self) -> str:
        """`host:port` for messages."""
        return f"[{self.hostname}]:{self.port}" if ":" in self.hostname else f"{self.hostname}:{self.port}"


def resolve(destination: str, *, identity_files: Sequence[Path] = ()) -> SshTarget:
    """Everything needed to dial `destination`: an ssh alias or `[user@]host[:port]`, IPv6 addresses in brackets.

    `identity_files` go before those of the config. Raises UsageError for a text that cannot be a destination, for a
    config OpenSSH refuses, and for a ProxyJump that leads back to itself.
    """
    target = _resolve(parse_destination(destination), destination, forced_jump=None, depth=0)
    return replace(target, identity_files=(*identity_files, *target.identity_files))


def _resolve(destination: Destination, alias: str, *, forced_jump: Sequence[str] | None, depth: int) -> SshTarget:
    """`forced_jump` replaces the config's own ProxyJump, as `ssh -J` does for all hops but the first."""
    if depth > MAX_HOPS:
        raise UsageError(f"ProxyJump must end within {MAX_HOPS} hops; it seems to lead back to itself at: {alias}")
    options = read_options(destination)
    target = _target(options, destination, alias)
    jumps = list(forced_jump) if forced_jump is not None else _jump_list(options)
    if not jumps:
        return target
    *before, last = jumps  # the last jump is the host next to the target; the ones before it lead there
    hop = parse_destination(last)
    if hop.host.lower() in (destination.host.lower(), target.hostname.lower()) and hop.port in (None, target.port):
        return target  # a ProxyJump under `Host *` also matches the jump host itself, which is dialled directly
    nearest = _resolve(hop, last, forced_jump=before or None, depth=depth + 1)
    hops = (*nearest.proxy_jump, replace(nearest, proxy_jump=()))
    return replace(target, proxy_jump=hops, proxy_command=None)


def read_options(destination: Destination) -> Options:
    """What the ssh config says about a destination; raises UsageError with OpenSSH's own words where it refuses."""
    config = os.environ.get(SSH_CONFIG_VARIABLE)
    ssh = shutil.which("ssh")
    if ssh is None:
        from orchestrator.remote import ssh_config_fallback  # noqa: PLC0415 -- paramiko is slow to import

        options = ssh_config_fallback.read_options(destination.host, config)
        options |= {"user": [destination.user]} if destination.user is not None else {}
        return options | ({"port": [str(destination.port)]} if destination.port is not None else {})
    argv = [ssh, "-G"]
    argv += ["-F", config] if config else []
    argv += ["-l", destination.user] if destination.user is not None else []
    argv += ["-p", str(destination.port)] if destination.port is not None else []
    try:
        done = subprocess.run(
            [*argv, "--", destination.host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RESOLVE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as timeout:
        raise UsageError(f"`ssh -G {destination.host}` gave no answer within {_RESOLVE_TIMEOUT_S:g} s") from timeout
    if done.returncode != 0:
        words = [line for line in done.stderr.decode(errors="replace").splitlines() if "Pseudo-terminal" not in line]
        raise UsageError(f"OpenSSH cannot resolve {destination.host!r}: {' '.join(words) or 'no reason given'}")
    resolved: dict[str, list[str]] = {}
    for line in done.stdout.decode(errors="surrogateescape").splitlines():
        keyword, _, value = line.partition(" ")
        resolved.setdefault(keyword.lower(), []).append(value.strip())
    return resolved


def _target(options: Options, destination: Destination, alias: str) -> SshTarget:
    hostname = _one(options, "hostname") or destination.host
    if hostname.startswith("-") or FORBIDDEN.search(hostname):
        raise UsageError(f"HostName of {destination.host!r} in the ssh config is not a host name: {hostname!r}")
    user = _one(options, "user") or destination.user or getpass.getuser()
    port = int(_one(options, "port") or destination.port or 22)
    bare = SshTarget(alias=alias, hostname=hostname, port=port, user=user)
    tokens = token_values(bare, destination.host)
    timeout, command = _one(options, "connecttimeout"), _one(options, "proxycommand")
    return replace(
        bare,
        identity_files=_paths(options.get("identityfile", ()), tokens, several_per_line=False),
        certificate_files=_paths(options.get("certificatefile", ()), tokens, several_per_line=False),
        identities_only=_one(options, "identitiesonly") == "yes",
        identity_agent=_agent(options, tokens),
        user_known_hosts_files=_paths(options.get("userknownhostsfile", ()), tokens, several_per_line=True),
        global_known_hosts_files=_paths(options.get("globalknownhostsfile", ()), tokens, several_per_line=True),
        host_key_alias=_one(options, "hostkeyalias"),
        connect_timeout_s=float(timeout) if timeout and timeout.isdigit() and int(timeout) > 0 else None,
        proxy_command=replace_tokens(command, tokens) if command is not None else None,
    )


def token_values(target: SshTarget, typed_host: str) -> dict[str, str]:
    """The `%` tokens ssh_config(5) allows in paths and ProxyCommand, for this target."""
    name = socket.gethostname()
    return {
        "%": "%",
        "d": str(Path("~").expanduser()),
        "h": target.hostname,
        "i": str(os.getuid()) if hasattr(os, "getuid") else "0",
        "k": target.host_key_alias or typed_host,
        "L": name.partition(".")[0],
        "l": name,
        "n": typed_host,
        "p": str(target.port),
        "r": target.user,
        "u": getpass.getuser(),
    }


def replace_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """Replace `%x` tokens; raises UsageError for one we do not know rather than guess a path."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in tokens:
            raise UsageError(f"the ssh config uses a token this tool does not replace: %{match[1]} in {text!r}")
        return tokens[match[1]]

    return re.sub(r"%(.)", value, text)


def _one(options: Options, keyword: str) -> str | None:
    """The first value (ssh_config: first wins), None when unset or `none`."""
    values = options.get(keyword, ())
    return values[0] if values and values[0] and values[0].lower() != "none" else None


def _jump_list(options: Options) -> list[str]:
    value = _one(options, "proxyjump")
    return [hop.strip() for hop in value.split(",")] if value else []


def _agent(options: Options, tokens: Mapping[str, str]) -> str | None:
    """IdentityAgent: a path; SSH_AUTH_SOCK or unset means the environment's agent; `none` means no agent."""
    value = next(iter(options.get("identityagent", ())), "SSH_AUTH_SOCK")
    if value.lower() == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    if value.startswith("$"):
        return os.environ.get(value.strip("${}"))
    return str(_path(value, tokens))


def _paths(values: Sequence[str], tokens: Mapping[str, str], *, several_per_line: bool) -> tuple[Path, ...]:
    paths: list[Path] = []
    for value in values:
        words = split_paths(value) if several_per_line else [value.strip('"')]
        paths += [_path(word, tokens) for word in words if word.lower() != "none"]
    return tuple(paths)


def split_paths(value: str) -> list[str]:
    """Split a list of paths as `ssh -G` prints it: unquoted even where a path holds spaces.

    A word that starts with `/`, `~`, `%`, `$` or a drive letter begins a path; any other continues the one before.
    """
    if '"' in value:
        return shlex.split(value)
    paths: list[str] = []
    for word in value.split(" "):
        if not paths or re.match(r"[/~%$]|[A-Za-z]:|none$", word):
            paths.append(word)
        else:
            paths[-1] += f" {word}"
    return [path for path in paths if path]


def _path(text: str, tokens: Mapping[str, str]) -> Path:
    expanded = re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], ""), text)
    return Path(replace_tokens(expanded, tokens)).expanduser()
