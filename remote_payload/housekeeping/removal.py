"""Taking a tree away: renamed aside at once, then deleted, so that whatever breaks leaves a leftover and no half run.

A leftover is finished by the next `gc`, from its name alone: nothing has to be written, so a full disk is no obstacle.
Nothing is followed: every step goes by a folder's descriptor and a name in it.
"""

import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from remote_payload import heartbeat
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_state

MARK = ".gone+"
"""How the name of a leftover begins; then its kind, its name, and who set it aside, with `+` between."""
CLAIM_S = 1.0
"""How long the claim of a run that is over may be held: by another `gc`, by a launch that finds it there already."""
_numbers = count()


def trash(root: Path) -> Path:
    """Where what goes is put aside."""
    return root / "trash"


def aside_name(kind: str, name: str) -> str:
    """A name for a leftover that nobody else gives."""
    return f"{MARK}{kind}+{name}+{os.getpid()}.{next(_numbers)}"


def leftover_of(name: str) -> tuple[str, str] | None:
    """(kind, name) of what was set aside under this name; None = it is no leftover."""
    parts = name.removeprefix(MARK).split("+")
    return (parts[0], parts[1]) if name.startswith(MARK) and len(parts) == 3 else None


def set_aside(root: Path, path: Path, kind: str) -> Path | None:
    """Rename out of every listing; None = somebody else did. Raises OSError.

    A hidden name beside the old one takes no room; the trash is for people to see, where the disk has room for it.
    """
    name = aside_name(kind, path.name)
    hidden = path.with_name(name)
    try:
        path.rename(hidden)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # what is hidden is out of the way as well
        trash(root).mkdir(mode=0o700, exist_ok=True)
        if stat.S_ISDIR(os.lstat(trash(root)).st_mode):
            hidden.rename(trash(root) / name)
            return trash(root) / name
    return hidden


def set_run_aside(root: Path, run: RunDir, kind: str) -> Path | None:
    """The same for a run, if it is still over: looked at under its claim, so that no launch finds half of it.

    Raises Refusal where it is not to be taken, OSError.
    """
    claim = _claim(run)
    try:
        state = read_state(run)
        if not run.path.is_dir():  # another `gc` was quicker
            return None
        if state is None or not state.is_terminal or heartbeat.is_held(run.heartbeat):
            raise Refusal("bad_request", f"it is not over any more: {run.path.name}")
        gone = set_aside(root, run.path, kind)
        if gone is not None:
            with suppress(OSError):
                RunDir(gone).claim.unlink()  # who waits for the lock sees by this that it is no longer in place
        return gone
    finally:
        if claim is not None:
            os.close(claim)


def _claim(run: RunDir) -> int | None:
    """The run's claim, locked; None where there is none to lock. Raises Refusal where somebody keeps it."""
    try:
        claim = os.open(run.claim, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    until_s = time.monotonic() + CLAIM_S
    while not _is_locked(claim):
        if time.monotonic() > until_s:
            os.close(claim)
            raise Refusal("bad_request", f"somebody launches or settles it just now: {run.path.name}")
        time.sleep(0.01)
    return claim


def _is_locked(claim: int) -> bool:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: the state has to do
        return True
    return True


def delete(path: Path, tick: Callable[[], None]) -> str | None:
    """Delete a file, a link or a tree; what could not be and why, None = all is gone. What others delete is fine."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        _delete(parent, path.name, tick)
    except OSError as error:
        return f"{error.strerror}: {path.name if error.filename is None else error.filename}, in {path}"
    except RecursionError:
        return f"folders within folders, too many: {path}"
    finally:
        os.close(parent)
    return None


def _delete(parent: int, name: str, tick: Callable[[], None]) -> None:
    """Raises OSError for the first thing that cannot go; all else has gone."""
    tick()
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            return
        folder = _opened(parent, name)
        try:
            problems = [_problem(folder, entry, tick) for entry in os.listdir(folder)]  # noqa: PTH208 - by descriptor
        finally:
            os.close(folder)
        for problem in problems:
            if problem is not None:
                raise problem
        os.rmdir(name, dir_fd=parent)


def _problem(folder: int, entry: str, tick: Callable[[], None]) -> OSError | None:
    try:
        _delete(folder, entry, tick)
    except OSError as error:
        return error
    return None


def _opened(parent: int, name: str) -> int:
    """The folder, made ours to read and write where it is ours and was not."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(name, flags, dir_fd=parent)
    except PermissionError:
        folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{folder}", 0o700)  # noqa: PTH101 - by descriptor: no link can come in between
        finally:
            os.close(folder)
        folder = os.open(name, flags, dir_fd=parent)
    if os.fstat(folder).st_mode & 0o300 != 0o300:
        with suppress(PermissionError):
            os.fchmod(folder, 0o700)
    return folder
