"""`probe`: the facts of this host for `hosts check` and the preflight."""

import os
import platform
import pwd
import time
from pathlib import Path

from remote_payload import login, processes, storage
from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.gpus.facts import look_at_gpus
from remote_payload.pythons import examine, likely_pythons
from remote_payload.schema import HostFacts, ProbeFrame, ProbeRequest
from remote_payload.slurm.facts import slurm_facts


def probe(request: ProbeRequest, send: Send) -> None:
    """Answer with a ProbeFrame. Nothing stays written: a nameless file tries the disk."""
    root = absolute_root(request.root)
    pythons = examine(request.pythons or likely_pythons(os.environ, Path(os.path.expanduser("~"))))
    gpus = look_at_gpus()
    disk = storage.look_at(root)
    memory = _memory()
    user, shell = _me()
    system = platform.uname()
    send(
        ProbeFrame(
            facts=HostFacts(
                hostname=system.node,
                user=user,
                system=f"{system.system} {system.release} {system.machine}",
                boot_id=processes.boot_id(),
                cpu_count=len(os.sched_getaffinity(0)),
                memory_total_bytes=memory.get("MemTotal"),
                memory_available_bytes=memory.get("MemAvailable"),
                root=str(root),
                root_writable=disk.problem is None,
                root_problem=disk.problem,
                root_noexec=disk.noexec,
                root_filesystem=disk.filesystem,
                disk_free_bytes=disk.free_bytes,
                inodes_free=disk.inodes_free,
                pythons=pythons,
                gpu_answer=gpus.answer,
                gpu_problem=gpus.problem,
                gpus=gpus.gpus,
                kill_user_processes=login.kills_user_processes(),
                linger=login.lingers(user),
                login_shell=shell,
                slurm=slurm_facts(),
                time_unix_s=time.time(),
            )
        )
    )


def _me() -> tuple[str, str | None]:
    """Name and login shell; a container's user often stands in no passwd."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        return str(os.getuid()), None
    return entry.pw_name, entry.pw_shell or None


def _memory() -> dict[str, int]:
    """/proc/meminfo in bytes; empty where it cannot be read."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    fields = (line.replace(":", " ").split() for line in lines)
    return {name: int(value) * 1024 for name, value, *unit in fields if unit == ["kB"]}
