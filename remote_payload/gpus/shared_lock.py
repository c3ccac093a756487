"""A lock that every user of the host can take: a file in a sticky folder, and the kernel's flock on it.

The kernel frees it with its holder, however that dies, so nothing is ever left reserved. The file's text tells who
holds it; nothing is decided by it. Guarded against a planted file: no links are followed, it must be a plain file, and
one of several names, which anybody can make of a file that all may write, is locked and never written.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from remote_payload.schema.record import SchemaError, from_json, to_json
from remote_payload.schema.waiting import Holder

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MADE_S = 1.0
"""How long another user's file may be on its way from creation to the mode that lets us open it."""
_SIGNED_BYTES = 4096
_TEXT_BYTES = 1 << 20
_SHARED = 0o1777


class SharedLock:
    """An open lock file; `close` gives the lock back."""

    def __init__(self, path: Path, patience_s: float = _MADE_S) -> None:
        """Raises OSError where the file can neither be opened nor made, or is not a plain file.

        `patience_s`: how long one that another user is just making is waited for.
        """
        self.path = path
        self._descriptor = _open(path, patience_s)

    def close(self) -> None:
        """Give it back; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def try_lock(self) -> bool:
        """Take it, if it is free and its file still in place. Raises OSError on a file system without locks."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return self._is_in_place()

    def lock(self, patience_s: float) -> bool:
        """Wait for it, so long at most."""
        until_s = time.monotonic() + patience_s
        while not self.try_lock():
            if time.monotonic() > until_s:
                return False
            if not self._is_in_place():  # it was removed while we waited: the lock is on the file that is there now
                self.close()
                self._descriptor = _open(self.path, _MADE_S)
            time.sleep(0.01)
        return True

    def sign(self, holder: Holder) -> None:
        """Say who holds it; a full disk leaves it unsigned, and so does another name: it may be anybody's file."""
        self.write(to_json(holder))

    def write(self, text: str) -> None:
        """Replace its text, of ASCII; not on a full disk, and not where it has another name: it may be anybody's."""
        if not self.has_one_name:
            return
        content = text.encode("ascii")
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))

    def hand_down(self) -> None:
        """Let children that are started by fork and exec hold it, too: it is free when the last of them is gone."""
        os.set_inheritable(self._descriptor, True)

    def touch(self) -> None:
        """Let those who clean temporary folders see that it is in use."""
        with contextlib.suppress(OSError):
            os.utime(self._descriptor)

    def read(self) -> Holder | None:
        """Who signed it last; None = nobody, or unreadable."""
        try:
            return from_json(Holder, os.pread(self._descriptor, _SIGNED_BYTES, 0).decode("utf-8"))
        except (OSError, UnicodeDecodeError, SchemaError):
            return None

    def text(self) -> str:
        """What is written in it, so far as it is ASCII and not too long."""
        try:
            return os.pread(self._descriptor, _TEXT_BYTES, 0).decode("ascii", errors="ignore")
        except OSError:
            return ""

    @property
    def owner(self) -> int:
        """The uid of who made the file."""
        return os.fstat(self._descriptor).st_uid

    @property
    def inode(self) -> int:
        """The number of the file itself, whatever its name."""
        return os.fstat(self._descriptor).st_ino

    @property
    def has_one_name(self) -> bool:
        """Whether it is known under this name alone."""
        return os.fstat(self._descriptor).st_nlink <= 1

    def is_held(self) -> bool:
        """Whether somebody holds it now; never true of a lock that this very object holds."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def _is_in_place(self) -> bool:
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return False
        ours = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def shared_folder(path: Path) -> Path:
    """Make sure of a folder that all users may write to, sticky. Raises OSError; also where it is none."""
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(_SHARED)  # whatever the umask: every user of the host locks here
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) != _SHARED:
        path.chmod(_SHARED)  # whoever made it died before this
        found = path.lstat()
    is_ours_to_trust = found.st_uid in (0, os.getuid()) or bool(found.st_mode & stat.S_ISVTX)
    if not stat.S_ISDIR(found.st_mode) or not is_ours_to_trust or not os.access(path, os.W_OK | os.X_OK):
        raise OSError(errno.EINVAL, "not a folder that all users may write to (mode 1777)", str(path))
    return path


def _open(path: Path, patience_s: float) -> int:
    until_s = time.monotonic() + patience_s
    while (descriptor := _there(path, until_s)) is None:
        with contextlib.suppress(FileExistsError):
            made = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(made, 0o666)  # whatever the umask: other users take this lock as well
            return made
        time.sleep(0.02)
    return descriptor


def _there(path: Path, until_s: float) -> int | None:
    """None = not there (yet), or just being made by another user."""
    try:
        return _checked(os.open(path, _FLAGS), path)
    except FileNotFoundError:
        return None
    except PermissionError:
        if time.monotonic() > until_s:
            raise
        return None


def _checked(descriptor: int, path: Path) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    if found.st_nlink <= 1 and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) != 0o666:
        os.fchmod(descriptor, 0o666)  # whoever made it died before this
    return descriptor
