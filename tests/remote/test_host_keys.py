"""No host, and no hop on the way to it, gets anything from us before its key is vouched for."""

import base64
import contextlib
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostKeyError
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.sshd import ServerOptions, SshClientFiles, SshServer, make_key, running_sshd


@pytest.fixture(scope="session")
def hop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with running_sshd(tmp_path_factory.mktemp("sshd") / "hop") as running:
        yield running


@pytest.fixture
def another_key(tmp_path: Path) -> str:
    """A public key that no server has, as `TYPE BASE64`."""
    return " ".join(make_key(tmp_path / "another", "ed25519").with_suffix(".pub").read_text().split()[:2])


def login(alias: str, *, accept_new: bool = False) -> bytes:
    with Link.open(resolve(alias), accept_new=accept_new) as link:
        return link.exec(["echo", "in"], deadline_s=60).stdout


def sessions(server: SshServer) -> int:
    return server.log.read_text().count("Accepted publickey")


def known(server: SshServer, key: str) -> str:
    return f"[127.0.0.1]:{server.port} {key}\n"


def test_a_known_key_lets_in(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server)
    assert login("gpu1") == b"in\n"


def test_an_unknown_key_is_refused_with_the_line_to_run(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server, trust=False)
    before = sessions(server)
    with pytest.raises(HostKeyError) as caught:
        login("gpu1")
    listed = subprocess.run(
        ["ssh-keygen", "-lf", server.host_keys[0]], check=True, capture_output=True, text=True
    ).stdout.split()[1]
    assert listed in caught.value.message
    assert f"127.0.0.1:{server.port}" in caught.value.message
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {client.known_hosts};" in (caught.value.hint or "")
    assert sessions(server) == before
    assert client.known_hosts.read_text() == ""


def test_the_line_to_run_is_right(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server, trust=False)
    with pytest.raises(HostKeyError) as caught:
        login("gpu1")
    command = (caught.value.hint or "").split("then: ")[1].split("; or give")[0]
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert login("gpu1") == b"in\n"


def test_a_changed_key_is_refused_even_with_accept_new(
    client: SshClientFiles, server: SshServer, another_key: str
) -> None:
    client.add_host("gpu1", server, trust=False)
    client.know("# first line\n" + known(server, another_key))
    before = sessions(server)
    for accept_new in (False, True):
        with pytest.raises(HostKeyError, match="is not the known one") as caught:
            login("gpu1", accept_new=accept_new)
    assert f"{client.known_hosts}:2" in caught.value.message
    assert caught.value.message.count("SHA256:") == 2
    assert sessions(server) == before
    command = (caught.value.hint or "").split("the old key: ")[1]
    assert command == f"ssh-keygen -R '[127.0.0.1]:{server.port}' -f {client.known_hosts}"
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    with pytest.raises(HostKeyError, match="is unknown"):
        login("gpu1")


def test_a_revoked_key_is_refused_although_known(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server)
    client.know(server.known_hosts_line(pattern="*", marker="@revoked"))
    for accept_new in (False, True):
        with pytest.raises(HostKeyError, match=r"is revoked at .*known_hosts:2"):
            login("gpu1", accept_new=accept_new)


def test_hashed_and_wildcard_lines_let_in(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", client.known_hosts], check=True, capture_output=True)
    assert client.known_hosts.read_text().startswith("|1|")
    assert login("gpu1") == b"in\n"
    client.known_hosts.write_text(server.known_hosts_line(pattern=f"[127.0.0.*]:{server.port}"))
    assert login("gpu1") == b"in\n"
    client.known_hosts.write_text(server.known_hosts_line(pattern=f"*,!127.0.0.1,![127.0.0.1]:{server.port}"))
    with pytest.raises(HostKeyError, match="is unknown"):
        login("gpu1")


def test_odd_lines_hide_nothing_and_are_reported(client: SshClientFiles, server: SshServer, another_key: str) -> None:
    client.know(f"nonsense\n@cert-authority *.example.org {another_key}\n@revoked other {another_key}\n")
    client.add_host("gpu1", server)
    with Link.open(resolve("gpu1")) as link:
        assert link.warnings == (f"{client.known_hosts}:1 is skipped: fewer fields than `hosts type key`",)


def test_host_key_alias_is_the_name_asked_for(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server, trust=False, HostKeyAlias="cluster")
    with pytest.raises(HostKeyError, match="no line for cluster") as caught:
        login("gpu1")
    assert "gpu1 (it asks, and writes the key under cluster)" in (caught.value.hint or "")
    client.know(server.known_hosts_line(pattern="cluster"))
    assert login("gpu1") == b"in\n"


def test_strict_host_key_checking_off_in_the_config_changes_nothing(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server, trust=False, StrictHostKeyChecking="no")
    with pytest.raises(HostKeyError):
        login("gpu1")


def test_accept_new_lets_in_and_writes_down(client: SshClientFiles, server: SshServer) -> None:
    client.add_host("gpu1", server, trust=False)
    client.known_hosts.write_text("# no newline at the end")
    with Link.open(resolve("gpu1"), accept_new=True) as link:
        (news,) = link.news
        assert link.exec(["echo", "in"], deadline_s=60).stdout == b"in\n"
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", f"{server.host_keys[0]}.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert fingerprint in news
    assert str(client.known_hosts) in news
    with Link.open(resolve("gpu1"), accept_new=True) as link:
        assert link.news == ()
    assert login("gpu1") == b"in\n"
    assert client.known_hosts.read_text() == f"# no newline at the end\n{server.known_hosts_line()}"


def test_accept_new_makes_the_file_and_its_folder_private(client: SshClientFiles, server: SshServer) -> None:
    file = client.folder / "new" / "known_hosts"
    client.add_host("gpu1", server, trust=False, UserKnownHostsFile=f'"{file}"')
    assert login("gpu1", accept_new=True) == b"in\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_known_type_is_asked_for(tmp_path: Path, client: SshClientFiles) -> None:
    with running_sshd(tmp_path / "many", ServerOptions(host_keys=("ed25519", "ecdsa", "rsa"))) as many:
        client.add_host("gpu1", many, trust=False)
        for index in range(3):
            client.known_hosts.write_text(many.known_hosts_line(index=index))
            assert login("gpu1") == b"in\n"


class TestThroughAHop:
    def test_both_known(self, client: SshClientFiles, server: SshServer, hop: SshServer) -> None:
        client.add_host("hop", hop)
        client.add_host("far", server, ProxyJump="hop")
        before = sessions(hop)
        assert login("far") == b"in\n"
        assert sessions(hop) == before + 1

    @pytest.mark.parametrize("wrong", ["hop", "far"])
    @pytest.mark.parametrize("how", ["unknown", "changed", "revoked"])
    def test_a_wrong_key_on_either(
        self, client: SshClientFiles, server: SshServer, hop: SshServer, another_key: str, wrong: str, how: str
    ) -> None:
        culprit = hop if wrong == "hop" else server
        client.add_host("hop", hop, trust=wrong != "hop")
        client.add_host("far", server, trust=wrong != "far", ProxyJump="hop")
        if how == "changed":
            client.know(known(culprit, another_key))
        elif how == "revoked":
            client.know(culprit.known_hosts_line(marker="@revoked"))
        logins = sessions(hop), sessions(server)
        with pytest.raises(HostKeyError) as caught:
            login("far")
        assert f"{wrong} (" in caught.value.message
        assert f"127.0.0.1:{culprit.port}" in caught.value.message
        assert (sessions(hop), sessions(server)) == (logins[0] + (wrong == "far"), logins[1])

    def test_the_line_to_run_scans_from_the_hop(
        self, client: SshClientFiles, server: SshServer, hop: SshServer
    ) -> None:
        client.add_host("hop", hop)
        client.add_host("far", server, trust=False, ProxyJump="hop")
        with pytest.raises(HostKeyError) as caught:
            login("far")
        command = (caught.value.hint or "").split("then: ")[1].split("; or give")[0]
        assert command.startswith("ssh -F ")
        subprocess.run(["sh", "-c", command], check=True, capture_output=True, timeout=60)
        assert login("far") == b"in\n"

    def test_two_hops(self, client: SshClientFiles, server: SshServer, hop: SshServer, tmp_path: Path) -> None:
        with running_sshd(tmp_path / "second") as second:
            client.add_host("first", hop)
            client.add_host("second", second, trust=False)
            client.add_host("far", server, ProxyJump="first,second")
            with pytest.raises(HostKeyError, match=r"the key of second \(.*\) is unknown") as caught:
                login("far")
            assert f" first ssh-keyscan -p {second.port} 127.0.0.1 >> " in (caught.value.hint or "")
            client.know(second.known_hosts_line())
            assert login("far") == b"in\n"
            assert sessions(second) == 1
            client.known_hosts.write_text(hop.known_hosts_line() + second.known_hosts_line())
            with pytest.raises(HostKeyError, match=r"the key of far \(.*\) is unknown") as caught:
                login("far")
            assert f" second -J first ssh-keyscan -p {server.port} 127.0.0.1 >> " in (caught.value.hint or "")

    def test_accept_new_holds_for_both_but_never_for_a_changed_hop(
        self, client: SshClientFiles, server: SshServer, hop: SshServer, another_key: str
    ) -> None:
        client.add_host("hop", hop, trust=False)
        client.add_host("far", server, trust=False, ProxyJump="hop")
        assert login("far", accept_new=True) == b"in\n"
        assert client.known_hosts.read_text() == hop.known_hosts_line() + server.known_hosts_line()
        client.known_hosts.write_text(known(hop, another_key))
        with pytest.raises(HostKeyError, match="is not the known one"):
            login("far", accept_new=True)


class TestCertificateAuthority:
    @contextlib.contextmanager
    def certified(self, tmp_path: Path, *options: str, kind: str = "ed25519") -> Iterator[SshServer]:
        """A server with a host certificate made with `options` of ssh-keygen."""
        ca = make_key(tmp_path / "ca", "ed25519")
        folder = tmp_path / "certified"
        folder.mkdir()
        key = make_key(folder / f"host_0_{kind}", kind)
        subprocess.run(
            ["ssh-keygen", "-q", "-s", ca, "-I", "gpu1", *options, key.with_suffix(".pub")],
            check=True,
            capture_output=True,
        )
        certificate = folder / f"host_0_{kind}-cert.pub"
        config = f'HostCertificate "{certificate}"'
        with running_sshd(folder, ServerOptions(host_keys=(kind,), sshd_config=config)) as running:
            yield running

    def authority_line(self, tmp_path: Path, hosts: str = "*") -> str:
        return f"@cert-authority {hosts} {(tmp_path / 'ca.pub').read_text()}"

    @pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
    def test_its_certificate_lets_in(self, tmp_path: Path, client: SshClientFiles, kind: str) -> None:
        with self.certified(tmp_path, "-h", "-n", "127.0.0.1,other", kind=kind) as server:
            client.add_host("gpu1", server, trust=False)
            client.know(self.authority_line(tmp_path))
            assert login("gpu1") == b"in\n"

    def test_it_lets_in_although_an_old_plain_key_is_known(
        self, tmp_path: Path, client: SshClientFiles, another_key: str
    ) -> None:
        with self.certified(tmp_path, "-h", "-n", "127.0.0.1") as server:
            client.add_host("gpu1", server, trust=False)
            client.know(self.authority_line(tmp_path))
            client.know(server.known_hosts_line())
            assert login("gpu1") == b"in\n"

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (("-h", "-n", "gpu2"), "its certificate is for gpu2"),
            (("-n", "127.0.0.1"), "not a host's"),
            (("-h", "-n", "127.0.0.1", "-V", "20200101:20200102"), "not valid today"),
            (("-h", "-n", "127.0.0.1", "-V", "20990101:20990102"), "not valid today"),
        ],
    )
    def test_a_certificate_that_does_not_hold(
        self, tmp_path: Path, client: SshClientFiles, options: tuple[str, ...], reason: str
    ) -> None:
        with self.certified(tmp_path, *options) as server:
            client.add_host("gpu1", server, trust=False)
            client.know(self.authority_line(tmp_path))
            with pytest.raises(HostKeyError, match=reason):
                login("gpu1")

    def test_another_authority(self, tmp_path: Path, client: SshClientFiles, another_key: str) -> None:
        with self.certified(tmp_path, "-h", "-n", "127.0.0.1") as server:
            client.add_host("gpu1", server, trust=False)
            client.know(f"@cert-authority * {another_key}\n")
            with pytest.raises(HostKeyError, match="signed by another authority"):
                login("gpu1")
            client.known_hosts.write_text(self.authority_line(tmp_path, hosts="*.example.org"))
            with pytest.raises(HostKeyError, match="is unknown"):
                login("gpu1")

    def test_a_revoked_authority(self, tmp_path: Path, client: SshClientFiles) -> None:
        with self.certified(tmp_path, "-h", "-n", "127.0.0.1") as server:
            client.add_host("gpu1", server, trust=False)
            client.know(self.authority_line(tmp_path))
            client.know(f"@revoked * {(tmp_path / 'ca.pub').read_text()}")
            with pytest.raises(HostKeyError, match="authority itself is revoked"):
                login("gpu1")

    def test_a_host_without_a_certificate(self, client: SshClientFiles, server: SshServer, another_key: str) -> None:
        client.add_host("gpu1", server, trust=False)
        client.know(f"@cert-authority * {another_key}\n")
        with pytest.raises(HostKeyError, match="the host shows a plain key, no certificate"):
            login("gpu1")

    def test_a_forged_certificate(self, tmp_path: Path, client: SshClientFiles) -> None:
        with self.certified(tmp_path, "-h", "-n", "127.0.0.1") as first:
            good = (first.folder / "host_0_ed25519-cert.pub").read_text().split()
        raw = base64.b64decode(good[1])
        assert raw.count(b"127.0.0.1") == 1
        forged = base64.b64encode(raw.replace(b"127.0.0.1", b"127.0.0.2")).decode()
        (first.folder / "host_0_ed25519-cert.pub").write_text(f"{good[0]} {forged} forged\n")
        config = f'HostCertificate "{first.folder}/host_0_ed25519-cert.pub"'
        with running_sshd(first.folder, ServerOptions(sshd_config=config)) as server:
            client.add_host("gpu1", server, trust=False)
            client.know(self.authority_line(tmp_path))
            with pytest.raises(HostKeyError):
                login("gpu1")
        shutil.rmtree(first.folder)
