"""Leases of GPUs, for all users of a host; who takes them first is the queue's to say.

A lease is the lock of a file named by the GPU's UUID. Only the first of the queue takes GPUs, so a large wish is not
starved by small ones. What the kernel freed - a lease or a ticket whose holder died - is free at once.

A lease is held by the run's worker, too, and by the runs that it starts, as a sweep does: whoever kills the supervisor
alone leaves the devices to those that still use them.
"""

import contextlib
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

from remote_payload.gpus.choice import is_uuid
from remote_payload.gpus.shared_lock import SharedLock, shared_folder
from remote_payload.gpus.tickets import Queue
from remote_payload.schema import SchemaError
from remote_payload.schema.waiting import Holder

_END = ".lease"
_LOOKED_AT_S = 0.1
"""Somebody who looks whether a lease is held holds it shared for a moment."""


class Leases:
    """One run's dealings with the lease folder; `close` gives everything back. Raises OSError where it is unusable."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self._folder = shared_folder(folder)
        self.queue = Queue(folder, holder)
        """Its place among those who wait."""
        self._holder = holder
        self._held: dict[str, SharedLock] = {}
        self.unusable: dict[str, OSError] = {}
        """Of the devices that were last to be taken: those whose file is none, as somebody may have planted it."""

    def close(self) -> None:
        """Give back every lease and the place in the queue."""
        self.queue.leave()
        for lock in self._held.values():
            lock.close()
        self._held = {}

    def touch(self) -> None:
        """Keep those who clean old files away, from the folders too."""
        with contextlib.suppress(OSError):  # another user's, where only its owner may
            os.utime(self._folder)
        for lock in self._held.values():
            lock.touch()
        self.queue.touch()

    def take(self, uuids: Sequence[str], count: int) -> dict[str, Holder | None] | None:
        """Lease `count` of these; None = done, else nothing is held and the answer says who has those not to be had.

        Those that are `unusable` are passed over.
        """
        taken: dict[str, SharedLock] = {}
        others: dict[str, Holder | None] = {}
        self.unusable = {}
        for uuid in uuids:
            if len(taken) == count:
                break
            try:
                lock = SharedLock(self._folder / _file_name(uuid))
            except OSError as problem:
                self.unusable[uuid] = problem
                continue
            if lock.lock(_LOOKED_AT_S):
                taken[uuid] = lock
            else:
                others[uuid] = lock.read()
                lock.close()
        if len(taken) < count:
            for lock in taken.values():
                lock.close()
            return others
        for lock in taken.values():
            lock.sign(dataclasses.replace(self._holder, since_unix_s=time.time()))
            lock.hand_down()  # to the worker: who kills the supervisor alone does not free what it works on
        self._held |= taken
        return None

    @property
    def held(self) -> tuple[str, ...]:
        """The UUIDs leased."""
        return tuple(self._held)


def handed_down() -> tuple[int, ...]:
    """Descriptors of the leases that this process, a worker, has of its supervisor."""
    return tuple(int(name) for name in os.listdir("/proc/self/fd") if _is_handed_down(name))  # noqa: PTH208


def _is_handed_down(descriptor: str) -> bool:
    try:
        is_lease = os.readlink(f"/proc/self/fd/{descriptor}").endswith(_END)  # noqa: PTH115
        return is_lease and os.get_inheritable(int(descriptor))
    except OSError:  # it is closed already, as that of a listing
        return False


def unusable_words(problem: OSError) -> str:
    """Of a device whose lease is no file that can be locked."""
    return f"cannot be leased: {problem}"


def lease_holders(
    folder: Path, uuids: Sequence[str], problems: dict[str, OSError] | None = None
) -> dict[str, Holder | None]:
    """Who holds a lease of which device now; None = it is held by somebody who did not sign.

    A file that is no lease, as somebody may have planted it, is one of the `problems`, or raised. Raises OSError.
    """
    found: dict[str, Holder | None] = {}
    for uuid in uuids:
        path = folder / _file_name(uuid)
        if not os.path.lexists(path):
            continue
        try:
            lock = SharedLock(path)
        except OSError as problem:
            if problems is None:
                raise
            problems[uuid] = problem
            continue
        if lock.is_held():
            found[uuid] = lock.read()
        lock.close()
    return found


def unseen_holders(folder: Path, uuids: Sequence[str], problems: dict[str, OSError]) -> dict[str, Holder | None]:
    """The same of all other devices than these, by the name of their file without its end."""
    seen = {_file_name(uuid) for uuid in uuids}
    names = sorted(name for name in os.listdir(folder) if name.endswith(_END) and name not in seen)  # noqa: PTH208
    uuids = [name.removesuffix(_END) for name in names]
    return lease_holders(folder, [uuid for uuid in uuids if is_uuid(uuid)], problems)


def _file_name(uuid: str) -> str:
    """Old drivers name MIG devices `MIG-GPU-.../1/0`."""
    if not is_uuid(uuid):
        raise SchemaError(f"not the UUID of a device: {uuid!r}")
    return f"{uuid.replace('/', '_')}{_END}"
