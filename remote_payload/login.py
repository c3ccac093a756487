"""What systemd's logind does to a user's processes when the user logs out. Source: logind.conf(5), loginctl(1)."""

from collections.abc import Sequence
from pathlib import Path

CONFIGURATION = tuple(Path(top) / "systemd" for top in ("/usr/lib", "/usr/local/lib", "/run", "/etc"))
"""Folders in rising precedence."""
LINGER_FOLDER = Path("/var/lib/systemd/linger")


def kills_user_processes(folders: Sequence[Path] = CONFIGURATION, running: Path = Path("/run/systemd")) -> bool | None:
    """The KillUserProcesses setting (its default is no); None = this host does not run logind."""
    if not (running / "seats").exists() and not (running / "users").exists():
        return None
    answer = False
    for file in _files(folders):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip() == "KillUserProcesses":
                answer = value.strip().lower() in ("yes", "true", "on", "1", "y", "t")
    return answer


def _files(folders: Sequence[Path]) -> list[Path]:
    """The last main file, then the drop-ins by name; a later folder's replaces an earlier one's of that name."""
    main = [folder / "logind.conf" for folder in folders if (folder / "logind.conf").is_file()]
    drop_ins = {file.name: file for folder in folders for file in (folder / "logind.conf.d").glob("*.conf")}
    return main[-1:] + [drop_ins[name] for name in sorted(drop_ins)]


def lingers(user: str, folder: Path = LINGER_FOLDER) -> bool | None:
    """Whether this user's processes are kept after logout; None = unknown (no logind)."""
    if not folder.parent.exists():
        return None
    return (folder / user).exists()
