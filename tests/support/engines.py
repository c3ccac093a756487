"""Stand-ins for the programs of a host's clockwork: small scripts on PATH that keep what they are given in a folder."""

import os
from pathlib import Path

_CRONTAB = """\
#!/bin/sh
echo "$@" >> {folder}/crontab.calls
case "$1" in
-l) [ -f {folder}/crontab ] && exec cat {folder}/crontab; echo "no crontab for somebody" >&2; exit 1;;
-) cat > {folder}/crontab.new; mv {folder}/crontab.new {folder}/crontab;;
-r) rm {folder}/crontab;;
esac
"""
_SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> {folder}/systemctl.calls
"""


def made(folder: Path, name: str, text: str) -> Path:
    """A program of that name in `folder/bin`; `{folder}` in its text is the folder."""
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    program = programs / name
    program.write_text(text.replace("{folder}", str(folder)))
    program.chmod(0o755)
    return program


def crontab_at(folder: Path) -> Path:
    """A crontab(1) whose table is the file that is returned."""
    made(folder, "crontab", _CRONTAB)
    return folder / "crontab"


def systemctl_at(folder: Path) -> Path:
    """A systemctl(1) that does whatever it is told; returned is the file of what it was told."""
    made(folder, "systemctl", _SYSTEMCTL)
    return folder / "systemctl.calls"


def environment(folder: Path, **more: str) -> dict[str, str]:
    """With the stand-ins first on PATH, and no system program of the same name where there is no stand-in."""
    for name in ("crontab", "systemctl", "loginctl"):
        if not (folder / "bin" / name).exists():
            made(folder, name, f'#!/bin/sh\necho "{name}: not on this host" >&2\nexit 5\n')
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), **more}
