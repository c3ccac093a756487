"""Keys, agents and certificates; never a password, never a prompt."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from orchestrator.errors import AuthenticationError, HostKeyError
from orchestrator.remote.authentication import KeyLogin
from orchestrator.remote.host_key_policy import HostKeyPolicy
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.sshd import ServerOptions, SshClientFiles, SshServer, make_key, running_sshd


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    """The socket of a real ssh-agent that holds nothing yet."""
    sock = str(tmp_path / "agent.sock")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL)
    while not answers(sock):  # the socket's file is there a moment before anybody listens on it
        assert process.poll() is None
        time.sleep(0.005)
    yield sock
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def answers(sock: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(sock) == 0


def add_to_agent(agent: str, *keys: Path) -> None:
    subprocess.run(
        ["ssh-add", "-q", *keys], check=True, capture_output=True, env={**os.environ, "SSH_AUTH_SOCK": agent}
    )


def login(alias: str) -> bytes:
    with Link.open(resolve(alias)) as link:
        return link.exec(["echo", "in"], deadline_s=60).stdout


def lock(key: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-P", "", "-f", key], check=True, capture_output=True)
    return key


def test_a_refused_key_names_what_was_tried(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger", "ed25519")
    client.add_host("gpu1", server, IdentityFile=str(stranger))
    with pytest.raises(AuthenticationError) as caught:
        login("gpu1")
    assert str(stranger) in caught.value.message
    assert f"127.0.0.1:{server.port}" in caught.value.message
    assert "gpu1 -v` shows" in (caught.value.hint or "")


def test_no_key_at_all(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    client.add_host("gpu1", server, IdentityFile=str(tmp_path / "missing"))
    with pytest.raises(AuthenticationError, match="no key, none was found") as caught:
        login("gpu1")
    assert "`ssh-keygen`" in (caught.value.hint or "")
    assert "ssh-copy-id" in (caught.value.hint or "")


def test_a_locked_key_without_agent_says_ssh_add(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    locked = lock(make_key(tmp_path / "locked", "ed25519"))
    client.add_host("gpu1", server, IdentityFile=str(locked))
    with pytest.raises(AuthenticationError, match="locked by a passphrase") as caught:
        login("gpu1")
    assert f"ssh-add '{locked}'" in (caught.value.hint or "")


@pytest.mark.parametrize("content", ["", "not a key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "\x00\xff"])
def test_a_file_that_is_no_key(client: SshClientFiles, server: SshServer, tmp_path: Path, content: str) -> None:
    (tmp_path / "broken").write_text(content)
    client.add_host("gpu1", server, IdentityFile=str(tmp_path / "broken"))
    with pytest.raises(AuthenticationError, match=r"unusable: .*broken"):
        login("gpu1")


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_every_kind_of_key(client: SshClientFiles, tmp_path: Path, kind: str) -> None:
    key = make_key(tmp_path / "mine", kind)
    options = ServerOptions(authorized_keys=[key.with_suffix(".pub").read_text().strip()])
    with running_sshd(tmp_path / "gpu1", options) as server:
        client.add_host("gpu1", server, IdentityFile=str(key))
        assert login("gpu1") == b"in\n"


def test_a_locked_key_in_the_agent_lets_in(
    client: SshClientFiles, server: SshServer, tmp_path: Path, agent: str
) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(server.user_key.read_bytes())
    copy.chmod(0o600)
    add_to_agent(agent, copy)
    lock(copy)
    copy.with_suffix(".pub").write_bytes(server.user_key.with_suffix(".pub").read_bytes())
    client.add_host("gpu1", server, IdentityFile=str(copy), IdentityAgent=agent, IdentitiesOnly="yes")
    assert login("gpu1") == b"in\n"


def test_an_identity_file_may_be_the_public_key_of_one_in_the_agent(
    client: SshClientFiles, server: SshServer, tmp_path: Path, agent: str
) -> None:
    add_to_agent(agent, server.user_key)
    public = tmp_path / "token.pub"
    public.write_bytes(server.user_key.with_suffix(".pub").read_bytes())
    client.add_host("gpu1", server, IdentityFile=str(public), IdentityAgent=agent)
    assert login("gpu1") == b"in\n"


def test_no_login_to_a_host_whose_key_was_not_judged(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server)
    target = resolve("gpu1")
    policy = HostKeyPolicy.for_target(target, (), accept_new=False)
    with socket.create_connection((target.hostname, target.port)) as sock, paramiko.Transport(sock) as transport:
        transport.start_client(timeout=60)
        with pytest.raises(HostKeyError, match="was not verified before the login"):
            KeyLogin(target, policy).authenticate(transport)
        assert not transport.is_authenticated()


def test_identities_only_keeps_the_agent_s_other_keys_out(
    client: SshClientFiles, server: SshServer, tmp_path: Path, agent: str
) -> None:
    add_to_agent(agent, server.user_key)
    stranger = make_key(tmp_path / "stranger", "ed25519")
    client.add_host("closed", server, IdentityFile=str(stranger), IdentityAgent=agent, IdentitiesOnly="yes")
    client.add_host("open", server, IdentityFile=str(stranger), IdentityAgent=agent, IdentitiesOnly="no")
    with pytest.raises(AuthenticationError):
        login("closed")
    assert login("open") == b"in\n"


def test_nine_agent_keys_do_not_use_up_the_server_s_patience(
    client: SshClientFiles, server: SshServer, tmp_path: Path, agent: str
) -> None:
    add_to_agent(agent, *(make_key(tmp_path / f"key{number}", "ed25519") for number in range(9)))
    client.add_host("gpu1", server, IdentityAgent=agent, IdentitiesOnly="no")
    assert login("gpu1") == b"in\n"
    client.add_host("gpu2", server, IdentityFile=str(tmp_path / "missing"), IdentityAgent=agent, IdentitiesOnly="no")
    with pytest.raises(AuthenticationError, match="the server hung up, perhaps after too many keys"):
        login("gpu2")


def test_a_dead_agent_is_no_agent(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    client.add_host("gpu1", server, IdentityAgent=str(tmp_path / "gone.sock"))
    assert login("gpu1") == b"in\n"


@pytest.mark.parametrize("beside", [True, False])
def test_a_user_certificate(client: SshClientFiles, tmp_path: Path, beside: bool) -> None:
    ca = make_key(tmp_path / "ca", "ed25519")
    key = make_key(tmp_path / "mine", "ed25519")
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(
        ["ssh-keygen", "-q", "-s", ca, "-I", "me", "-n", user, key.with_suffix(".pub")], check=True, capture_output=True
    )
    certificate = tmp_path / "mine-cert.pub"
    extra = {}
    if not beside:
        certificate = certificate.rename(tmp_path / "elsewhere.pub")
        extra = {"CertificateFile": str(certificate)}
    options = ServerOptions(sshd_config=f'TrustedUserCAKeys "{ca}.pub"')
    with running_sshd(tmp_path / "gpu1", options) as server:
        client.add_host("gpu1", server, IdentityFile=str(key), **extra)
        assert login("gpu1") == b"in\n"
        certificate.unlink()
        with pytest.raises(AuthenticationError):
            login("gpu1")


def test_a_server_that_wants_more_than_a_key(client: SshClientFiles, tmp_path: Path) -> None:
    config = "AuthenticationMethods publickey,password\nPasswordAuthentication yes"
    with running_sshd(tmp_path / "gpu1", ServerOptions(sshd_config=config)) as server:
        client.add_host("gpu1", server)
        with pytest.raises(AuthenticationError, match="after the key it also wants password"):
            login("gpu1")


def test_a_refusal_on_the_hop_names_the_hop(client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "hop") as hop:
        client.add_host("hop", hop, IdentityFile=str(make_key(tmp_path / "stranger", "ed25519")))
        client.add_host("far", server, ProxyJump="hop")
        with pytest.raises(AuthenticationError, match=r"^hop \("):
            login("far")
