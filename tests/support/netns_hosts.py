"""Hosts that can lose their power or their cable: each a network namespace with its own processes, home and sshd.

    with network(tmp_path, 3) as hosts:
        hosts[0].introduce(laptop, "a")     # ssh_config, known_hosts and eagle3.toml
        hosts[0].cut_power()                # all its processes die at once; hosts[0].boot() starts it again

Needs root, `ip` and `unshare`: `why_not()` says what is missing. Names carry this process's pid, so that several test
processes do not meet; everything is ended by pid and taken away on the way out, also after a failed test.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.laptop import Laptop
from tests.support.patience import wait_for
from tests.support.sshd import SshServer, find_sshd, make_key

CONFIG = """\
Port 22
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
LogLevel VERBOSE
SetEnv "HOME={folder}/home" "PATH=/usr/local/bin:/usr/bin:/bin"
"""
"""MaxStartups stays sshd's own: the tool must not need more."""

INIT = """\
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
hostname "$2"
"$3" -D -f "$1/sshd_config" -E "$1/sshd.log" &
while true; do wait || true; sleep 0.2; done
"""
"""What process 1 of a host does: a machine of its own, an sshd, and reaping what loses its parent."""


def why_not() -> str | None:
    """Why such hosts cannot be had here, in words; None = they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "unshare", "sshd") if shutil.which(tool, path=_PATH) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    made = subprocess.run(["unshare", "--net", "--pid", "--mount", "--fork", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "this kernel or container allows no namespaces"


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass
class NetHost:
    """One host. `home` is the HOME of what runs on it; this machine's Python, wherever it is, is there as well."""

    name: str
    address: str
    folder: Path
    cable: str
    """The end of its cable that is plugged into the switch."""
    _power: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def home(self) -> Path:
        """Survives a power cut, as a disk does."""
        return self.folder / "home"

    def boot(self) -> None:
        """Start it, and return once its sshd listens. A new boot id, as a kernel has it."""
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        argv = ["ip", "netns", "exec", self.name, "unshare", "--uts", "--mount", "--pid", "--ipc", "--fork"]
        init = ["bash", "-c", INIT, "init", str(self.folder), self.name, find_sshd()]
        log = self.folder / "sshd.log"
        log.unlink(missing_ok=True)
        with (self.folder / "console").open("ab") as console:
            self._power = subprocess.Popen(
                [*argv, "--kill-child", *init], stdin=subprocess.DEVNULL, stdout=console, stderr=console
            )
        wait_for(lambda: log.exists() and "Server listening" in log.read_text(), f"{self.name} to boot", 30)

    def cut_power(self) -> None:
        """Everything that runs on it is gone at once; nothing says goodbye, and its address falls silent."""
        self.unplug()
        assert self._power is not None
        for pid in _children(self._power.pid):
            os.kill(pid, signal.SIGKILL)  # process 1 of the namespace: the kernel kills all others
        self._power.wait(30)
        self._power = None

    def unplug(self) -> None:
        """Packets vanish both ways."""
        _ip("link", "set", self.cable, "down")

    def plug(self) -> None:
        """And come through again."""
        _ip("link", "set", self.cable, "up")

    def stop_sessions(self) -> list[int]:
        """Every sshd that serves a client stands still: the connection stays open, and says nothing. Returns pids."""
        serving = self.sessions()
        for pid in serving:
            os.kill(pid, signal.SIGSTOP)
        return serving

    def sessions(self) -> list[int]:
        """Pids of the processes that serve a client each."""
        assert self._power is not None
        commands = {pid: _command(pid) for pid in _below(self._power.pid)}
        ours = {
            pid: words for pid, words in commands.items() if b"sshd-session" in words or words.startswith(b"sshd: ")
        }
        return [pid for pid, words in ours.items() if b"listener" not in words]

    def introduce(self, laptop: Laptop, alias: str, settings: str = "connect_timeout_s = 3.0") -> None:
        """The laptop knows it by that name."""
        server = SshServer(folder=self.folder, port=22, pid=0, host_keys=(self.folder / "host_key",))
        laptop.add_host(alias, server, settings=settings, trust=False, HostName=self.address, ConnectTimeout="3")
        laptop.ssh.know(server.known_hosts_line(pattern=self.address))

    def end(self) -> None:
        """Power off, whatever state it is in."""
        if self._power is not None:
            self._power.kill()  # with it goes process 1, by --kill-child
            self._power.wait(30)
            self._power = None


@contextlib.contextmanager
def network(folder: Path, count: int) -> Iterator[list[NetHost]]:
    """So many hosts that run, on a switch that this machine is plugged into."""
    pid = os.getpid()
    net = f"10.{200 + (pid >> 8) % 50}.{pid % 256}"
    switch = f"e3s{pid}"
    hosts: list[NetHost] = []
    Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        _ip("link", "add", switch, "type", "bridge")
        _ip("addr", "add", f"{net}.1/24", "dev", switch)
        _ip("link", "set", switch, "up")
        for number in range(count):
            hosts.append(_made(folder / f"host{number}", f"e3h{pid}-{number}", f"{net}.{10 + number}", switch))
            hosts[-1].boot()
        yield hosts
    finally:
        for host in hosts:
            host.end()
        for number in range(count):  # also of a host that was only half made
            _ip("link", "del", f"e3c{pid}-{number}", check=False)
            _ip("netns", "del", f"e3h{pid}-{number}", check=False)
        _ip("link", "del", switch, check=False)


def _made(folder: Path, name: str, address: str, switch: str) -> NetHost:
    (folder / "home").mkdir(parents=True)
    cable = name.replace("e3h", "e3c")
    make_key(folder / "host_key", "ed25519")
    key = make_key(folder / "user_key", "ed25519")
    (folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    (folder / "sshd_config").write_text(CONFIG.format(address=address, folder=folder))
    _ip("netns", "add", name)
    _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", cable, "master", switch, "up")
    _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")
    _ip("-n", name, "link", "set", "lo", "up")
    return NetHost(name=name, address=address, folder=folder, cable=cable)


def _ip(*arguments: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _below(pid: int) -> list[int]:
    found = _children(pid)
    for child in list(found):
        found += _below(child)
    return found


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
