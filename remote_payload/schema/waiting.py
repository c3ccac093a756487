"""What a run waits for before its worker starts - on the host, so the laptop may be off - and who holds which GPU."""

from remote_payload import rundir
from remote_payload.schema.record import Record, require, require_finite

LEASES = "/var/tmp/eagle3-remote-leases"  # noqa: S108 - shared by every user of the host, on a local disk, sticky
"""Not in /dev/shm: logind's RemoveIPC takes a user's files there away with the last session, and with them the lock."""

LEASED = "EAGLE3_LEASED_GPUS"
"""Environment variable of a worker: the UUIDs of the devices that were leased for it."""
DEVICES = (LEASED, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""What a lease sets."""


class Waiting(Record):
    """Everything named here has to hold before the worker starts."""

    start_unix_s: float | None = None
    """By the host's clock."""
    start_local: str | None = None
    """`HH:MM` (the next one) or `YYYY-MM-DDTHH:MM` in the host's own time zone, instead of `start_unix_s`."""
    after: tuple[str, ...] = ()
    """Runs of this host that must have ended, however they ended."""
    gpus: int = 0
    """GPUs to lease, 0 = none; 1 may be a MIG device."""
    min_free_bytes: int | None = None
    """Memory that each of them must have free."""
    when_free: bool = False
    """Wait in the host's queue until they are free; False: give up at once where they are not."""
    longest_s: float | None = None
    """Longest wait for GPUs, seconds; None = without end."""
    leases: str = LEASES
    """Folder of the leases, the same for every user of the host."""

    def __post_init__(self) -> None:
        require_finite(start_unix_s=self.start_unix_s, longest_s=self.longest_s)
        require(self.start_unix_s is None or self.start_local is None, "a start is told once")
        require(0 <= self.gpus <= 1024, f"`gpus` must be 0..1024, found: {self.gpus}")
        require(self.min_free_bytes is None or self.min_free_bytes > 0, "`min_free_bytes` must be positive")
        require(self.longest_s is None or self.longest_s >= 0, "`longest_s` must not be negative")
        require(self.gpus > 0 or not (self.when_free or self.min_free_bytes), "free GPUs are asked for with `gpus`")
        require(self.when_free or self.longest_s is None, "`longest_s` belongs to `when_free`")
        require(self.leases.startswith("/"), f"`leases` must be an absolute path, found: {self.leases!r}")
        for run_id in self.after:
            named = rundir.RUN_ID_PATTERN.fullmatch(run_id) is not None
            require(named, f"`after` must hold ids of runs, found: {run_id!r}")


class Holder(Record):
    """Who holds a lease or stands in the queue; written by the holder, so believed for showing only."""

    run_id: str
    user: str
    uid: int
    pid: int
    """The run's supervisor."""
    since_unix_s: float
    gpus: int
    min_free_bytes: int | None = None
