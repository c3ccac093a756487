"""The kernel's out-of-memory kills in this process's control group, cgroup v2 and v1, counted.

Source: kernel documentation, admin-guide/cgroup-v2 (`memory.events`, field `oom_kill`) and cgroup-v1/memory
(`memory.oom_control`, field `oom_kill`, since 4.13).
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class OomKills:
    """Processes that the kernel killed for memory; None = cannot tell."""

    group: int | None
    """In our control group (v2: and below)."""
    host: int | None

    def since(self, before: "OomKills") -> "OomKills":
        """What was added after `before`."""
        return OomKills(group=_risen(before.group, self.group), host=_risen(before.host, self.host))


UNKNOWN_OOM_KILLS = OomKills(group=None, host=None)


def count_oom_kills() -> OomKills:
    """The counters as they stand: of our group since it was made, of the host since boot."""
    return OomKills(group=group_oom_kills(), host=host_oom_kills())


def _risen(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def group_oom_kills() -> int | None:
    """Processes of our control group (v2: and of those below) that the kernel killed for memory; None = cannot tell."""
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, path in groups:
        if "memory" in controllers.split(","):
            return _count(_folders(mounts, "cgroup", path, "memory"), "memory.oom_control")
    for _, controllers, path in groups:
        if not controllers:
            return _count(_folders(mounts, "cgroup2", path, None), "memory.events")
    return None


def host_oom_kills() -> int | None:
    """The same for the whole host, since boot; None = cannot tell."""
    return _read_field(Path("/proc/vmstat"), "oom_kill")


def _folders(mounts: list[list[str]], kind: str, group: str, controller: str | None) -> list[Path]:
    """Where the group may be mounted; a container often mounts its own group as the top."""
    found = []
    for fields in mounts:
        dash = fields.index("-")
        if fields[dash + 1] != kind or (controller and controller not in fields[dash + 3].split(",")):
            continue
        top, mount = fields[3], Path(fields[4])
        below = group[len(top) :] if top != "/" and group.startswith(top) else group
        found += [mount / below.lstrip("/"), mount]
    return found


def _count(folders: list[Path], name: str) -> int | None:
    for folder in folders:
        count = _read_field(folder / name, "oom_kill")
        if count is not None:
            return count
    return None


def _read_field(path: Path, field: str) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(" ")
        if key == field and value.isdigit():
            return int(value)
    return None
