"""The claim of a run id on a host.

`mkdir` of the run directory, then a lock (flock) on its `claim` file, held until `state.json` exists - first
by the launcher, then, inherited, by the supervisor. Whoever gets the lock finds one of three things: no spec (a
launcher died before it wrote one: go on as if new), a spec but no state (it died before the supervisor was up, and no
worker ever ran: start the supervisor), or a state (started: adopt, never start twice). The kernel frees the lock of
whoever dies, so no crash leaves a claim stuck.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
from pathlib import Path

from remote_payload.refusal import Refusal
from remote_payload.rundir import Root, RunDir

CLAIM_TIMEOUT_S = 10.0


def absolute_root(text: str) -> Path:
    """The root with `~` and links resolved (a run's mark must not depend on how its root was spelled).

    Raises Refusal when it is not an absolute path.
    """
    root = Root.at(text).path if fits_the_kernel(text) else Path()
    if not root.is_absolute():
        raise Refusal("bad_request", f"`root` must be an absolute path or start with `~/`, found: {text!r}")
    return Path(os.path.realpath(root))


def fits_the_kernel(text: str) -> bool:
    """Whether a text can be a path, an argument or a variable: no NUL, nothing that no encoding knows."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def make_folders(root: Path) -> None:
    """Create `root`, `payloads` and `runs`, for this user alone. Raises OSError.

    Those that are there and ours lose what lets others write (`root`, which may be a home) or look (the other two).
    """
    os.umask(0o077)
    os.makedirs(root / "runs", exist_ok=True)  # noqa: PTH103 - pathlib's gives parents the default mode
    os.makedirs(root / "payloads", exist_ok=True)  # noqa: PTH103
    for folder, others in ((root, 0o022), (root / "runs", 0o077), (root / "payloads", 0o077)):
        found = folder.stat()
        if found.st_uid == os.getuid() and found.st_mode & others:
            folder.chmod(stat.S_IMODE(found.st_mode) & ~others)


def lock_claim(run: RunDir) -> int:
    """The locked descriptor of the run's claim file, in a directory that is still in place. Raises OSError, Refusal."""
    until_s = time.monotonic() + CLAIM_TIMEOUT_S
    while True:
        run.path.mkdir(exist_ok=True)
        try:
            claim = os.open(run.claim, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # a failed launch has just removed the directory again
        except OSError:
            with contextlib.suppress(OSError):  # not empty: somebody else's claim
                run.path.rmdir()
            raise
        while not _try_lock(claim):
            if time.monotonic() > until_s:
                os.close(claim)
                raise Refusal(
                    "supervisor_did_not_start",
                    f"another launch holds this run's claim for more than {CLAIM_TIMEOUT_S:.0f} s: {run.claim}",
                    "repeat the launch; it is safe",
                )
            time.sleep(0.01)
        if os.fstat(claim).st_nlink > 0:
            return claim
        os.close(claim)  # it was removed while we waited


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        raise Refusal(
            "root_not_writable",
            f"the file system under `root` has no locks: {error}",
            "set `root` for this host in eagle3.toml to a folder on a local disk",
        ) from None
    return True


def remove_unstarted(run: RunDir) -> None:
    """Take away a run directory in which nothing ran; the claim goes last, so that a waiting launch starts afresh."""
    for path in run.path.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path != run.claim:
            path.unlink(missing_ok=True)
    run.claim.unlink(missing_ok=True)
    run.path.rmdir()
