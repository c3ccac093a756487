"""Facts of a host, as its probe saw them. Unknown is None, never 0."""

from typing import Literal

from remote_payload.schema.record import Record
from remote_payload.schema.slurm import SlurmFacts


class ProbeRequest(Record):
    """`probe`: look at the machine; `pythons` are the interpreters to examine, in order."""

    nonce: str
    root: str
    pythons: tuple[str, ...] = ()


class PythonFacts(Record):
    """One interpreter: its versions, or why it cannot be used. Versions are None where the package is absent."""

    path: str
    version: str | None = None
    torch: str | None = None
    torch_cuda: str | None = None
    """CUDA version torch was built with; None = CPU build or unknown."""
    safetensors: str | None = None
    sglang: str | None = None
    transformers: str | None = None
    problem: str | None = None


class GpuProcess(Record):
    """A compute process on a GPU, and its user where /proc tells."""

    pid: int | None
    """None = nvidia-smi did not tell, e.g. of a process of another container."""
    used_memory_bytes: int | None = None
    user: str | None = None
    command: str | None = None


class Gpu(Record):
    """One GPU, or one MIG device, by nvidia-smi."""

    index: int
    uuid: str
    name: str
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilization_percent: float | None = None
    driver: str | None = None
    processes: tuple[GpuProcess, ...] = ()
    mig_of: str | None = None
    """UUID of the GPU that this is a MIG device of; None = a whole GPU."""
    mig_devices: tuple[str, ...] = ()
    """UUIDs of its MIG devices; where there are some, it cannot be used as a whole."""


class HostFacts(Record):
    """What `hosts check` shows."""

    hostname: str
    user: str
    system: str
    """e.g. `Linux 6.8.0 x86_64`."""
    boot_id: str | None = None
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    time_unix_s: float
    """The host's clock when it answered; the laptop turns it into a skew."""
    root: str
    root_writable: bool
    root_problem: str | None = None
    root_noexec: bool | None = None
    root_filesystem: str | None = None
    disk_free_bytes: int | None = None
    inodes_free: int | None = None
    pythons: tuple[PythonFacts, ...] = ()
    gpu_answer: Literal["ok", "no_nvidia_smi", "hung", "failed"]
    gpu_problem: str | None = None
    gpus: tuple[Gpu, ...] = ()
    kill_user_processes: bool | None = None
    """logind's KillUserProcesses; None = no logind or unreadable."""
    linger: bool | None = None
    """Whether logind keeps this user's processes after logout."""
    login_shell: str | None = None
    slurm: SlurmFacts | None = None
    """None = no sbatch there."""
