"""`top`: the host's GPUs, who holds which, who waits."""

import dataclasses
from typing import Literal

from remote_payload.schema.host import Gpu, GpuProcess
from remote_payload.schema.record import Record, require
from remote_payload.schema.waiting import LEASES, Holder


class TopRequest(Record):
    """`leases` is the folder of the leases on this host."""

    nonce: str
    root: str
    leases: str = LEASES

    def __post_init__(self) -> None:
        require(self.leases.startswith("/"), f"`leases` must be an absolute path, found: {self.leases!r}")


class GpuUse(Record):
    """One device: what nvidia-smi says, whose lease it is, who uses it all the same."""

    gpu: Gpu
    leased: bool = False
    holder: Holder | None = None
    """None = not leased, or by somebody who did not sign."""
    strays: tuple[GpuProcess, ...] = ()
    """Processes on a leased device outside the tree of the run that holds it: somebody else's, or in a container."""
    hidden: bool = False
    """Whether of some of its processes nobody can tell whose they are: this host hides other users' processes."""
    why_not_free: str | None = None
    """Whoever leases it; `cannot be leased: ...` where its lease is no file that can be locked; None = it is free."""


class TopFacts(Record):
    """The host at one moment."""

    hostname: str
    time_unix_s: float
    gpu_answer: Literal["ok", "no_nvidia_smi", "hung", "failed"]
    gpu_problem: str | None = None
    gpus: tuple[GpuUse, ...] = ()
    unseen: dict[str, Holder | None] = dataclasses.field(default_factory=dict)
    """Leases of devices that nvidia-smi does not tell of, as where it fails, by the name of their file."""
    unusable: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why a file of theirs is no lease, as somebody may have planted it, by its name."""
    queue: tuple[Holder, ...] = ()
    """Who waits for GPUs, first first."""
    unsigned: int = 0
    """How many stand in the queue besides, who did not say who they are."""
    passed_over: tuple[str, ...] = ()
    """What lies among the tickets of the queue and does not count, a sentence each."""
    lease_problem: str | None = None
    """Why leases and queue could not be read."""
