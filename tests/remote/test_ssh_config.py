"""Settings come from OpenSSH where it exists, and are refused rather than guessed where it does not."""

import getpass
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.remote.ssh_config import SshTarget, replace_tokens, resolve, split_paths
from tests.support.sshd import SshClientFiles


def configure(client: SshClientFiles, text: str) -> None:
    client.ssh_config.write_text(text)


@pytest.fixture
def no_openssh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def test_an_alias_is_resolved_with_all_its_settings(client: SshClientFiles, tmp_path: Path) -> None:
    configure(
        client,
        f"""
        Host gpu1
          HostName 10.1.2.3
          Port 2222
          User ann
          IdentityFile "{tmp_path}/my keys/%r_%h"
          CertificateFile {tmp_path}/cert.pub
          IdentitiesOnly yes
          IdentityAgent none
          HostKeyAlias Cluster-7
          UserKnownHostsFile "{tmp_path}/a b/kh" {tmp_path}/kh2
          GlobalKnownHostsFile none
          ConnectTimeout 7
        """,
    )
    assert resolve("gpu1") == SshTarget(
        alias="gpu1",
        hostname="10.1.2.3",
        port=2222,
        user="ann",
        identity_files=(tmp_path / "my keys" / "ann_10.1.2.3",),
        certificate_files=(tmp_path / "cert.pub",),
        identities_only=True,
        identity_agent=None,
        host_key_alias="cluster-7",  # OpenSSH lowers it
        user_known_hosts_files=(tmp_path / "a b" / "kh", tmp_path / "kh2"),
        global_known_hosts_files=(),
        connect_timeout_s=7.0,
    )
    assert resolve("gpu1").host_key_name == "cluster-7"


def test_what_the_user_types_wins_over_the_config(client: SshClientFiles) -> None:
    configure(client, "Host gpu1\n HostName 10.1.2.3\n Port 2222\n User ann\n")
    target = resolve("bob@gpu1:99")
    assert (target.hostname, target.port, target.user, target.host_key_name) == ("10.1.2.3", 99, "bob", "[10.1.2.3]:99")


def test_a_bare_host_gets_the_defaults(client: SshClientFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    target = resolve("gpu9.example.org")
    assert (target.hostname, target.port, target.user) == ("gpu9.example.org", 22, getpass.getuser())
    assert target.identity_agent == "/run/agent"
    assert "id_ed25519" in {file.name for file in target.identity_files}
    assert "known_hosts" in {file.name for file in target.user_known_hosts_files}
    assert target.host_key_name == "gpu9.example.org"


def test_includes_and_matches_are_openssh_s(client: SshClientFiles, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Host gpu1\n User included\n")
    configure(client, f'Include {tmp_path}/more\nMatch exec "test %h = gpu2"\n Port 77\n')
    assert resolve("gpu1").user == "included"
    assert resolve("gpu2").port == 77
    assert resolve("gpu1").port == 22


def test_ipv6(client: SshClientFiles) -> None:
    target = resolve("ann@[::1]:2222")
    assert (target.hostname, target.port, target.address) == ("::1", 2222, "[::1]:2222")
    assert target.host_key_name == "[::1]:2222"


def test_jumps_are_dialled_in_order_each_with_its_own_settings(client: SshClientFiles) -> None:
    configure(
        client,
        """
        Host far
          ProxyJump outer,carl@inner:23
        Host outer
          HostName outer.example
          Port 2200
          User ann
          ProxyJump gate
        Host inner
          HostName inner.example
          ProxyJump ignored
        Host gate
          HostName gate.example
        """,
    )
    hops = [(hop.hostname, hop.port, hop.proxy_jump) for hop in resolve("far").proxy_jump]
    # `ssh -J outer inner`: the list replaces inner's own jump, while outer keeps its own.
    assert hops == [("gate.example", 22, ()), ("outer.example", 2200, ()), ("inner.example", 23, ())]
    assert [hop.user for hop in resolve("far").proxy_jump][1:] == ["ann", "carl"]


def test_a_jump_for_every_host_does_not_jump_to_itself(client: SshClientFiles) -> None:
    configure(client, "Host bastion\n HostName 10.0.0.1\nHost *\n ProxyJump bastion\n")
    assert [hop.hostname for hop in resolve("gpu1").proxy_jump] == ["10.0.0.1"]
    assert resolve("bastion").proxy_jump == ()


def test_a_loop_of_jumps_is_refused(client: SshClientFiles) -> None:
    configure(client, "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(UsageError, match="lead back to itself"):
        resolve("a")


def test_proxyjump_none_is_no_hop(client: SshClientFiles) -> None:
    configure(client, "Host gpu1\n ProxyJump none\nHost *\n ProxyJump bastion\n")
    assert resolve("gpu1").proxy_jump == ()


def test_a_proxycommand_gets_its_tokens(client: SshClientFiles) -> None:
    configure(client, "Host gpu1\n HostName 10.0.0.1\n Port 23\n User ann\n ProxyCommand nc -x %n %h %p # %r 100%%\n")
    assert resolve("gpu1").proxy_command == "nc -x gpu1 10.0.0.1 23 # ann 100%"


def test_openssh_s_refusal_is_passed_on(client: SshClientFiles) -> None:
    configure(client, "Host gpu1\n Prot 22\n")
    with pytest.raises(UsageError, match=r"(?i)bad configuration option: prot"):
        resolve("gpu1")


def test_a_hostname_of_the_config_cannot_be_an_option(client: SshClientFiles) -> None:
    configure(client, 'Host gpu1\n HostName "a;b"\n')
    with pytest.raises(UsageError, match="a;b"):
        resolve("gpu1")


def test_keys_named_by_the_caller_go_first(client: SshClientFiles, tmp_path: Path) -> None:
    configure(client, f"Host gpu1\n IdentityFile {tmp_path}/config_key\n")
    files = resolve("gpu1", identity_files=[tmp_path / "mine"]).identity_files
    assert files == (tmp_path / "mine", tmp_path / "config_key")


def test_an_unknown_token_is_refused() -> None:
    with pytest.raises(UsageError, match="%Z"):
        replace_tokens("/keys/%Z", {"h": "x"})


def test_paths_with_spaces_are_told_from_lists() -> None:
    assert split_paths("/a b/c /d ~/e") == ["/a b/c", "/d", "~/e"]
    assert split_paths('"/a b" /c') == ["/a b", "/c"]


@pytest.mark.usefixtures("no_openssh")
class TestWithoutOpenSsh:
    def test_the_same_settings_are_found(self, client: SshClientFiles, tmp_path: Path) -> None:
        configure(
            client,
            f"Host gpu1\n HostName 10.0.0.1\n Port 2222\n User ann\n IdentityFile {tmp_path}/k\n ProxyJump gate\n"
            f" UserKnownHostsFile {tmp_path}/kh\nHost gate\n HostName gate.example\n",
        )
        target = resolve("gpu1")
        assert (target.hostname, target.port, target.user) == ("10.0.0.1", 2222, "ann")
        assert target.identity_files == (tmp_path / "k",)
        assert target.user_known_hosts_files == (tmp_path / "kh",)
        assert [hop.hostname for hop in target.proxy_jump] == ["gate.example"]
        assert resolve("bob@gpu1:9").user == "bob"
        assert resolve("bob@gpu1:9").port == 9

    def test_defaults(self, client: SshClientFiles) -> None:
        target = resolve("gpu9")
        assert "known_hosts" in {file.name for file in target.user_known_hosts_files}
        assert target.identity_files

    def test_include_is_refused_by_place(self, client: SshClientFiles, tmp_path: Path) -> None:
        (tmp_path / "more").write_text("Host gpu1\n")
        configure(client, f"Host x\n\nInclude {tmp_path}/mo*\n")
        with pytest.raises(UsageError, match=r"`Include`, found at .*ssh_config:3"):
            resolve("gpu1")

    def test_an_include_of_nothing_does_no_harm(self, client: SshClientFiles, tmp_path: Path) -> None:
        configure(client, f"Include {tmp_path}/nothing/*.conf\nHost gpu1\n Port 44\n")
        assert resolve("gpu1").port == 44

    @pytest.mark.parametrize(
        "criterion", ["localnetwork 10.0.0.0/8", "tagged x", "host gpu1 version 9", "!sessiontype x"]
    )
    def test_a_match_it_cannot_judge_is_refused(self, client: SshClientFiles, criterion: str) -> None:
        configure(client, f"Match {criterion}\n User root\n")
        with pytest.raises(UsageError, match="cannot judge `Match"):
            resolve("gpu1")
