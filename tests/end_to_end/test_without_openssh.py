"""A laptop without OpenSSH: no `ssh` on PATH, so the ssh configuration is read by our own strict reader."""

import shutil
from pathlib import Path

from tests.support.laptop import Laptop
from tests.support.sshd import SshServer

TOOLS = ("sh", "cat", "wc", "mv", "rm", "mkdir", "dirname", "uname")


def path_without_ssh(folder: Path) -> str:
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return str(folder)


def test_a_real_host_and_the_demonstration(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    path = path_without_ssh(tmp_path / "bin")
    assert shutil.which("ssh", path=path) is None
    done = laptop.run("run", "selftest", "--host", "gpu1", PATH=path)
    assert done.code == 0, done.err
    shown = laptop.run("demo", PATH=path)
    assert shown.code == 0, shown.err
    assert shown.out.startswith("MIS-WIRED")
