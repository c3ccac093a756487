"""A host's shell and payload that are not as they should be: mended where that can be done, else said as it is."""

import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.config import HostConfig
from orchestrator.errors import HostNotReadyError
from orchestrator.remote import session as session_module
from orchestrator.remote.payload import build_payload
from orchestrator.remote.session import HostSession
from orchestrator.updates import Note, Update
from remote_payload.bytecode import bytecode_folder, make_bytecode
from remote_payload.schema import StatusAnswer, StatusFrame, StatusRequest
from tests.support.sshd import ServerOptions, SshClientFiles, SshServer, running_sshd

SHA256 = build_payload().sha256


@contextmanager
def opened(client: SshClientFiles, server: SshServer, root: str) -> Iterator[tuple[HostSession, list[str]]]:
    client.add_host("gpu1", server)
    told: list[str] = []

    def tell(update: Update) -> None:
        assert isinstance(update, Note)
        told.append(f"{update.name}: {update.text}")

    with HostSession("gpu1", HostConfig(ssh="gpu1", root=root), tell) as session:
        yield session, told


def status(session: HostSession) -> StatusAnswer:
    request = StatusRequest(nonce="nonce-0123456789", root=session.host.root)
    return session.ask("status", request, StatusFrame, 30.0).answer


@pytest.fixture
def root(tmp_path: Path, client: SshClientFiles, server: SshServer) -> Path:
    """A warm root: the payload and its compiled sources are there."""
    with opened(client, server, str(tmp_path / "root")) as (session, _):
        assert status(session).states == ()
    make_bytecode(pyz(tmp_path / "root"), bytecode_folder(pyz(tmp_path / "root")))
    return tmp_path / "root"


def pyz(root: Path) -> Path:
    return root / "payloads" / f"{SHA256}.pyz"


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def empty_a_compiled_source(path: Path) -> None:
    for found in bytecode_folder(path).rglob("status*"):
        found.write_bytes(b"")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:1000]),
    "empty": lambda path: path.write_bytes(b""),
    "another program": lambda path: path.write_text("print('evil')"),
    "folder": replace_by_folder,
    "compiled": empty_a_compiled_source,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_payload_is_mended(
    client: SshClientFiles, server: SshServer, root: Path, damage: Callable[[Path], object]
) -> None:
    damage(pyz(root))
    with opened(client, server, str(root)) as (session, told):
        assert status(session).states == ()
        request = StatusRequest(nonce="nonce-0123456789", root=str(root))
        assert [frame.kind for frame in session.frames("status", request, 30.0)] == ["status"]
    assert pyz(root).read_bytes() == build_payload().data
    assert [path for path in bytecode_folder(pyz(root)).rglob("status*") if not path.stat().st_size] == []
    assert [line for line in told if "shipped" in line or "mended" in line], told


def test_frames_mend_as_well(client: SshClientFiles, server: SshServer, root: Path) -> None:
    pyz(root).write_bytes(b"")
    with opened(client, server, str(root)) as (session, told):
        request = StatusRequest(nonce="nonce-0123456789", root=str(root))
        assert [frame.kind for frame in session.frames("status", request, 30.0)] == ["status"]
    assert any("damaged on the host, mended" in line for line in told)


def test_a_payload_that_vanishes_is_the_hosts_fault(
    client: SshClientFiles, server: SshServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "ship", lambda *_: pyz(root).unlink(missing_ok=True))  # as if something cleaned
    with opened(client, server, str(root)) as (session, _):
        session.installed()
        pyz(root).unlink()
        with pytest.raises(HostNotReadyError, match="vanishes"):
            status(session)
        request = StatusRequest(nonce="nonce-0123456789", root=str(root))
        with pytest.raises(HostNotReadyError, match="vanishes"):
            list(session.frames("status", request, 30.0))


def test_a_root_that_ends_in_a_newline(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    root = f"{tmp_path}/root\n"
    with opened(client, server, root) as (session, _):
        request = StatusRequest(nonce="nonce-0123456789", root=root)
        assert [frame.kind for frame in session.frames("status", request, 30.0)] == ["status"]
    assert pyz(Path(root)).exists()


@pytest.mark.parametrize("bashrc", ["unset HOME\n", "export HOME=\n"])
def test_without_home_the_passwd_tells_it_to_shell_and_python_alike(
    client: SshClientFiles, tmp_path: Path, bashrc: str
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    name = f".eagle3-remote-test-{os.getpid()}"
    home = Path(pwd.getpwuid(os.getuid()).pw_dir) / name
    try:
        with (
            running_sshd(tmp_path / "gpu2", ServerOptions(login_shell=bash, bashrc=bashrc)) as server,
            opened(client, server, f"~/{name}") as (session, _),
        ):
            assert session.facts().root == os.path.realpath(home)
        assert pyz(home).exists()
        assert not Path("/", name).exists() or home == Path("/", name)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("echo This account is not available; exit 1", "exit code 1): This account is not available"),
        ("echo go away >&2; exit 3", "exit code 3): go away"),
        ("exit 0", "exit code 0): no message"),
        ("kill -9 $$", "ended by a signal): no message"),
    ],
)
def test_a_shell_that_runs_nothing_is_named(client: SshClientFiles, tmp_path: Path, shell: str, words: str) -> None:
    script = tmp_path / "shell"
    script.write_text(f"#!/bin/sh\n{shell}\n")
    script.chmod(0o755)
    with (
        running_sshd(tmp_path / "gpu2", ServerOptions(login_shell=str(script))) as server,
        opened(client, server, "~/root") as (session, _),
    ):
        with pytest.raises(HostNotReadyError) as refused:
            session.installed()
        assert refused.value.message.startswith("the login shell of gpu1 (")
        assert f"did not run a command ({words}" in refused.value.message


def test_a_shell_that_runs_nothing_any_more_is_named_too(client: SshClientFiles, tmp_path: Path) -> None:
    script = tmp_path / "shell"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    with (
        running_sshd(tmp_path / "gpu2", ServerOptions(login_shell=str(script))) as server,
        opened(client, server, "~/root") as (session, _),
    ):
        session.use("/usr/bin/python3")  # as remembered from an earlier run
        with pytest.raises(HostNotReadyError, match="did not run a command"):
            status(session)
