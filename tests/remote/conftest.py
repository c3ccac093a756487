"""A laptop's SSH files and one good server, for every test of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sshd import SshClientFiles, SshServer, running_sshd


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A healthy sshd, shared by the session; tests that change a server start their own."""
    with running_sshd(tmp_path_factory.mktemp("sshd") / "gpu1") as running:
        yield running


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshClientFiles:
    """An empty ssh_config and known_hosts that the code under test uses instead of the user's own; no agent."""
    files = SshClientFiles(tmp_path / "laptop")
    monkeypatch.setenv("EAGLE3_REMOTE_SSH_CONFIG", str(files.ssh_config))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return files
