"""Keeps one server and everything it starts, and ends all of it. Sent as text to the Python that is to run the server.

It stands beside the server, wherever an `exec_prefix` leads (another container, root, node), where a signal from
outside reaches nobody and a closed connection ends nothing. Its standard input is the rope: the first line is the
order (JSON: token, argv, environment, files, wanted), then `stop SECONDS` may follow; when the rope is cut, the server
is ended too. What it tells is on its standard output, among the server's own lines: a line `TOKEN {"guard": ...}`.

SGLang's own load tool is run by it, too: its files are carried there and back, for it may see no folder of the host's.

Imports nothing of ours: the payload is not where this runs.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36
CUT_GRACE_S = 5.0
"""Between TERM and KILL when the rope is cut, or when we are asked to end by a signal."""
ORPHAN_GRACE_S = 1.0
KILL_PATIENCE_S = 10.0
BLIND_PATIENCE_S = 1.0
"""The same where /proc does not show the tree: what the server left there ends by itself, or is found from outside."""
LOOK_S = 0.05
PART_CHARACTERS = 5000
"""Of a file, in one line: whoever reads takes lines of 64 KiB, and a character may become twelve."""


def tell(token: str, **facts: object) -> None:
    """One line of ours, whatever stands half-written before it."""
    data = f"\n{token} {json.dumps(facts)}\n".encode("ascii")
    with contextlib.suppress(OSError):  # nobody listens any more
        while data:  # a signal may cut a long write short
            data = data[os.write(1, data) :]


def sees_itself() -> bool:
    """Whether /proc is that of our own pid namespace; in any other one the pids there are other processes'."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 - proc(5)
    except OSError:
        return False


def below(ancestor: int) -> dict[int, str]:
    """Living processes below `ancestor`: pid -> name."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
            fields = text[text.rindex(")") + 2 :].split()
            if fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(name))
                names[int(name)] = text[text.index("(") + 1 : text.rindex(")")]
    found: dict[int, str] = {}
    frontier = [ancestor]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, ()) if child not in found]
        found.update((pid, names[pid]) for pid in frontier)
    return found


class Folder:
    """The files of one call. Raises OSError at construction where there is no room for them."""

    def __init__(self, files: dict[str, str], wanted: list[str]) -> None:
        self.path = tempfile.mkdtemp(prefix="eagle3-")
        self._wanted = wanted
        for name, text in files.items():
            with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:  # noqa: PTH118 - as all here
                file.write(text)

    def hand_over(self, token: str) -> None:
        """Tell what the wanted files hold, and remove all."""
        for name in self._wanted:
            with contextlib.suppress(OSError):
                with open(os.path.join(self.path, name), encoding="utf-8", errors="replace") as file:  # noqa: PTH118
                    text = file.read()
                for at in range(0, len(text), PART_CHARACTERS):
                    tell(token, guard="file", name=name, part=text[at : at + PART_CHARACTERS])
        shutil.rmtree(self.path, ignore_errors=True)


class Guard:
    """One server's guard. Raises OSError at construction when the server cannot be started."""

    def __init__(self, token: str, argv: list[str], environment: dict[str, str], folder: "Folder | None") -> None:
        self._token, self._folder = token, folder
        self._code: int | None = None
        self.asked: float | None = None
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._knows_tree = sees_itself()
        self._server = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
            cwd=None if folder is None else folder.path,
        ).pid
        tell(token, guard="started", pid=self._server, knows_tree=self._knows_tree)

    def watch(self) -> float:
        """Until the server ends by itself or somebody wants it ended; returns the grace in seconds."""
        waker, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        rope = 0
        while True:
            if not self._reap() or self._code is not None:
                return ORPHAN_GRACE_S
            if self.asked is not None:
                return self.asked
            ready, _, _ = select.select([rope, waker], [], [], 5.0)
            if waker in ready:
                os.read(waker, 512)
            if rope in ready:
                words = os.read(rope, 512).decode("ascii", "replace").split()
                self.asked = float(words[1]) if words[:1] == ["stop"] else CUT_GRACE_S

    def end(self, grace_s: float) -> None:
        """TERM, wait, KILL, wait; tell how it went."""
        began = time.monotonic()
        how = "term" if self._code is None else "died"
        kill_at = began + grace_s
        # The server has an order of its own for ending its children, so it alone is asked first.
        self._send(signal.SIGTERM, (self._server,) if how == "term" else self._tree())
        orphans_asked = how == "died"
        while self._reap():
            now = time.monotonic()
            if self._code is not None and not orphans_asked:  # what it left behind goes too
                self._send(signal.SIGTERM, self._tree())
                orphans_asked, kill_at = True, min(kill_at, now + ORPHAN_GRACE_S)
            if now >= kill_at:
                how = "kill" if self._code is None else how
                self._send(signal.SIGKILL, self._tree())
            if now >= kill_at + (KILL_PATIENCE_S if self._knows_tree else BLIND_PATIENCE_S):
                break
            time.sleep(LOOK_S)
        seconds = time.monotonic() - began
        if self._folder is not None:
            self._folder.hand_over(self._token)
        tell(self._token, guard="over", how=how, seconds=seconds, survivors=self._tree())

    def _reap(self) -> bool:
        """Collect whoever ended; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._server:
                self._code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
                tell(self._token, guard="ended", code=self._code)

    def _tree(self) -> dict[int, str]:
        """The server's processes, also those that lost their parent."""
        if self._knows_tree:
            return below(os.getpid())
        return {} if self._code is not None else {self._server: "server"}

    def _send(self, number: signal.Signals, pids: "dict[int, str] | tuple[int, ...]") -> None:
        for pid in pids:
            with contextlib.suppress(OSError):
                if self._knows_tree:
                    os.kill(pid, number)
                else:
                    os.killpg(pid, number)


def main() -> None:
    """Read the order, keep the server, end it."""
    data = b""
    while b"\n" not in data:  # not by sys.stdin, which select() would not see
        block = os.read(0, 65536)
        if not block:
            return
        data += block
    line, _, more = data.partition(b"\n")
    order = json.loads(line)
    for ignored in (signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        folder = None if order["files"] is None else Folder(order["files"], order["wanted"])
        guard = Guard(order["token"], order["argv"], order["environment"], folder)
    except OSError as error:
        tell(order["token"], guard="failed", problem=f"{error.strerror}: {error.filename or order['argv'][0]}")
        return

    if more.startswith(b"stop "):
        guard.asked = float(more.split()[1])

    def ask(_number: int, _frame: FrameType | None) -> None:
        guard.asked = CUT_GRACE_S if guard.asked is None else guard.asked

    for asking in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asking, ask)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    guard.end(guard.watch())


if __name__ == "__main__":
    main()
