"""A real OpenSSH server per test: own folder, port, host keys, HOME and clean PATH; started by us, stopped by pid.

    with running_sshd(tmp_path / "gpu1") as server:
        client = SshClientFiles(tmp_path / "laptop")
        client.add_host("gpu1", server)          # ssh_config entry and a right known_hosts line
        monkeypatch.setenv("EAGLE3_REMOTE_SSH_CONFIG", str(client.ssh_config))
        ... resolve("gpu1") ...

It runs as root or as an ordinary user; it only ever logs in the user who runs the tests. Nothing outside `folder` is
written, except the empty `/run/sshd` that a root sshd insists on.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SSHD_SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin"
CLEAN_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True)
class SshServer:
    """One running sshd. `home` is the HOME every command on it sees; `log` is sshd's own log."""

    folder: Path
    port: int
    pid: int
    host_keys: tuple[Path, ...]

    @property
    def home(self) -> Path:
        """HOME of the commands run there (their working directory stays the account's own)."""
        return self.folder / "home"

    @property
    def log(self) -> Path:
        """What sshd logged."""
        return self.folder / "sshd.log"

    @property
    def user_key(self) -> Path:
        """The private key this server lets in."""
        return self.folder / "user_key"

    def public_key(self, index: int = 0) -> str:
        """`TYPE BASE64` of one host key."""
        return " ".join(self.host_keys[index].with_suffix(".pub").read_text().split()[:2])

    def known_hosts_line(self, *, pattern: str | None = None, index: int = 0, marker: str = "") -> str:
        """One known_hosts line for this server; `marker` is `@revoked` or `@cert-authority`."""
        pattern = pattern if pattern is not None else f"[127.0.0.1]:{self.port}"
        return " ".join(part for part in (marker, pattern, self.public_key(index)) if part) + "\n"


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What may differ between two servers of a test.

    host_keys: key types to make, in the order given to sshd. login_shell: the shell that receives the command line
    with `-c`, as if it were the account's login shell (needs no second account). bashrc: HOME/.bashrc, which bash
    reads under sshd. environment: `SetEnv` pairs beside HOME and PATH. sshd_config: extra lines, verbatim.
    authorized_keys: more public keys to let in.
    """

    host_keys: Sequence[str] = ("ed25519",)
    login_shell: str | None = None
    bashrc: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    sshd_config: str = ""
    authorized_keys: Sequence[str] = ()


@contextlib.contextmanager
def running_sshd(folder: Path, options: ServerOptions | None = None) -> Iterator[SshServer]:
    """Start an sshd whose whole state lives in `folder`; stop it, and every session it serves, on the way out."""
    server = start_sshd(folder, options)
    try:
        yield server
    finally:
        stop_sshd(server)


def start_sshd(folder: Path, options: ServerOptions | None = None) -> SshServer:
    """Start an sshd and return once it has sent its banner; the caller stops it with `stop_sshd`."""
    options = options or ServerOptions()
    folder = folder.resolve()
    (folder / "home").mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    host_keys = tuple(make_key(folder / f"host_{number}_{kind}", kind) for number, kind in enumerate(options.host_keys))
    user_key = make_key(folder / "user_key", "ed25519")
    keys = [user_key.with_suffix(".pub").read_text().strip(), *options.authorized_keys]
    (folder / "authorized_keys").write_text("".join(f"{key}\n" for key in keys))
    if options.bashrc is not None:
        (folder / "home" / ".bashrc").write_text(options.bashrc)
    for _ in range(5):  # a port that was free a moment ago can be taken by another test
        port = free_port()
        pid = _try_to_start(folder, port, host_keys, options)
        if pid is not None:
            return SshServer(folder=folder, port=port, pid=pid, host_keys=host_keys)
    raise RuntimeError(f"sshd did not come up; its log says:\n{(folder / 'sshd.log').read_text()}")


def stop_sshd(server: SshServer) -> None:
    """Stop the listener, then the sessions it left; by pid, never by name."""
    for pid in (server.pid, *session_pids(server)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _reap(server.pid):
        time.sleep(0.005)


def session_pids(server: SshServer) -> tuple[int, ...]:
    """Pids of the sshd processes that serve one client each: the listener's children and their children."""
    found: list[int] = []
    queue = [server.pid]
    parents = _parents()
    while queue:
        parent = queue.pop()
        for pid, its_parent in parents.items():
            if its_parent == parent and _name_of(pid).startswith("sshd"):
                found.append(pid)
                queue.append(pid)
    return tuple(found)


@dataclass(frozen=True)
class SshClientFiles:
    """The laptop's side: `ssh_config` and `known_hosts` in a folder of their own, never the user's `~/.ssh`."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.known_hosts.touch(mode=0o600)
        self.ssh_config.touch()

    @property
    def ssh_config(self) -> Path:
        """To be named in EAGLE3_REMOTE_SSH_CONFIG."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """The only known_hosts file the hosts of `ssh_config` use."""
        return self.folder / "known_hosts"

    def add_host(
        self, alias: str, server: SshServer, *, trust: bool = True, port: int | None = None, **more: str
    ) -> None:
        """Append a `Host` block (`more`: further options, e.g. ProxyJump="hop") and, with `trust`, a known_hosts line.

        `port` dials somewhere else, e.g. a fault proxy in front of the server.
        """
        port = port if port is not None else server.port
        options = {
            "HostName": "127.0.0.1",
            "Port": str(port),
            "User": getpass.getuser(),
            "IdentityFile": f'"{server.user_key}"',
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": f'"{self.known_hosts}"',
            "GlobalKnownHostsFile": "none",
            "ConnectTimeout": "60",  # a busy machine is no dead one
            **more,
        }
        with self.ssh_config.open("a") as file:
            file.write(f"Host {alias}\n" + "".join(f"  {key} {value}\n" for key, value in options.items()))
        if trust:
            self.know(server.known_hosts_line(pattern=f"[127.0.0.1]:{port}"))

    def know(self, line: str) -> None:
        """Append one line to known_hosts."""
        with self.known_hosts.open("a") as file:
            file.write(line)


def make_key(path: Path, kind: str) -> Path:
    """Make a key pair without passphrase, unless it is there already; returns the private key's path."""
    if not path.exists():
        size = ["-b", "2048"] if kind == "rsa" else []  # the default of 3072 bits is slow to make
        _run(["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", path.name, "-f", str(path)])
    return path


def free_port() -> int:
    """A TCP port that was free on loopback a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A TCP port of loopback where nobody answers, and that nobody else gets meanwhile: bound, but not listened on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def find_sshd() -> str:
    """Where sshd is; a machine without it fails the test and says what to install."""
    found = shutil.which("sshd", path=SSHD_SEARCH_PATH)
    if found is None or shutil.which("ssh-keygen") is None:
        raise RuntimeError("these tests need a real sshd: apt-get install openssh-server openssh-client")
    return found


def _try_to_start(folder: Path, port: int, host_keys: Sequence[Path], options: ServerOptions) -> int | None:
    """Spawn sshd in the foreground, so that its pid is our child's; None when it died before its banner."""
    sshd = find_sshd()
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)  # a root sshd refuses to start without it
    config = folder / "sshd_config"
    config.write_text(_config_text(folder, port, host_keys, options))
    # Absolute paths: a session's sshd is re-executed with `/` as its working directory.
    process = subprocess.Popen(
        [sshd, "-D", "-f", str(config), "-E", str(folder / "sshd.log")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    listening = f"Server listening on 127.0.0.1 port {port}."  # else another one's banner may come from that port
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if listening in _text(folder / "sshd.log") and _banner(port).startswith(b"SSH-2.0-"):
            process.returncode = 0  # from here on stop_sshd owns the pid; Popen must not warn about it
            return process.pid
        time.sleep(0.005)
    if process.poll() is None:
        process.kill()
        process.wait()
    return None


def _config_text(folder: Path, port: int, host_keys: Sequence[Path], options: ServerOptions) -> str:
    environment = {"HOME": str(folder / "home"), "PATH": CLEAN_PATH, **options.environment}
    pairs = " ".join(f'"{name}={value}"' for name, value in environment.items())
    lines = [
        # sshd keeps the first value of a keyword, so a test's own lines come first.
        options.sshd_config.strip(),
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f'HostKey "{key}"' for key in host_keys),
        "PidFile none",
        f'AuthorizedKeysFile "{folder}/authorized_keys"',
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "AllowTcpForwarding yes",
        "PrintMotd no",
        "PrintLastLog no",
        "UseDNS no",
        "MaxStartups 100:30:200",
        "MaxSessions 100",
        "LogLevel VERBOSE",
        "Subsystem sftp internal-sftp",
        f"SetEnv {pairs}",
    ]
    if options.login_shell is not None:
        lines.append(f'ForceCommand exec {options.login_shell} -c "$SSH_ORIGINAL_COMMAND"')
    return "\n".join(lines) + "\n"


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _banner(port: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as probe:
            return probe.recv(64)
    except OSError:
        return b""


def _reap(pid: int) -> bool:
    """Collect the listener if it has ended; True while it still runs."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def _parents() -> dict[int, int]:
    """Every pid of this machine with its parent's."""
    rows = _run(["ps", "-A", "-o", "pid=,ppid="]).split()
    return {int(pid): int(parent) for pid, parent in zip(rows[::2], rows[1::2], strict=True)}


def _name_of(pid: int) -> str:
    return subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _run(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
