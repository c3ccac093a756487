"""Commands over a healthy link: exact argv, exact bytes, exact exit codes, whatever the login shell."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostError, HostNotReadyError, LinkLostError, NotFoundError, ProtocolError
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.patience import A_LONG_TIME, PATIENCE_S, Within, wait_for
from tests.support.sshd import ServerOptions, SshClientFiles, SshServer, closed_port, running_sshd

STRANGE = "a b'c\"d;e\nf$g\\h!i ü漢🚀 *~`%s"


@pytest.fixture
def link(client: SshClientFiles, server: SshServer) -> Iterator[Link]:
    client.add_host("gpu1", server)
    with Link.open(resolve("gpu1")) as opened:
        yield opened


def test_exec_tells_stdout_stderr_and_exit_code_apart(link: Link) -> None:
    result = link.exec(["sh", "-c", "echo out; echo err >&2; exit 7"], deadline_s=PATIENCE_S)
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 7)


def test_a_signal_is_an_unknown_exit_code_not_a_lost_link(link: Link) -> None:
    assert link.exec(["sh", "-c", "echo x; kill -9 $$"], deadline_s=PATIENCE_S).exit_code is None
    assert link.probe(PATIENCE_S)


def test_a_command_that_does_not_exist(link: Link) -> None:
    assert link.exec(["no-such-command"], deadline_s=PATIENCE_S).exit_code == 127


def test_stdin_of_all_sizes_comes_back(link: Link) -> None:
    for size in (0, 1, 31_999, 32_001, 1_000_000, 5_000_000):
        data = os.urandom(size)
        assert link.exec(["cat"], stdin=data, deadline_s=PATIENCE_S).stdout == data


def test_big_stdout_and_stderr_at_once(link: Link) -> None:
    script = "head -c 3000000 /dev/zero; head -c 30000000 /dev/zero >&2; echo; echo end >&2"
    result = link.exec(["sh", "-c", script], deadline_s=PATIENCE_S)
    assert len(result.stdout) == 3_000_001
    assert result.stderr.endswith(b"\0end\n")
    assert result.exit_code == 0


def test_a_command_that_does_not_read_its_stdin(link: Link) -> None:
    assert link.exec(["true"], stdin=bytes(8_000_000), deadline_s=PATIENCE_S).exit_code == 0
    assert link.probe(PATIENCE_S)


def test_the_environment_holds_no_terminal(link: Link) -> None:
    assert link.exec(["sh", "-c", "test -t 0 || test -t 1 || echo none"], deadline_s=PATIENCE_S).stdout == b"none\n"


def test_a_command_that_outlives_its_deadline(link: Link) -> None:
    with Within(), pytest.raises(LinkLostError, match=r"gpu1 \(.*\) was not done within 0.5 s while running `sh`"):
        link.exec(["sh", "-c", "while sleep 0.1; do echo alive; done"], deadline_s=0.5)


def test_many_sessions_leave_nothing_behind(link: Link) -> None:
    link.exec(["true"], deadline_s=PATIENCE_S)
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    for _ in range(30):
        link.exec(["true"], deadline_s=PATIENCE_S)
        with link.stream(["echo", "x"], silence_s=PATIENCE_S) as lines:
            next(lines)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before[0]
    # A watchdog that was told to stop does so when it is scheduled.
    wait_for(lambda: threading.active_count() <= before[1], "the ends of the threads")


def test_a_warm_command_takes_milliseconds(link: Link) -> None:
    link.exec(["true"], deadline_s=PATIENCE_S)
    fastest_s = 1.0
    for _ in range(100):  # a busy machine leaves one of them alone; all take longer when the protocol waits
        start = time.perf_counter()
        link.exec(["true"], deadline_s=PATIENCE_S)
        fastest_s = min(fastest_s, time.perf_counter() - start)
        if fastest_s < 0.03:
            break
    assert fastest_s < 0.03  # 45 ms and more when Nagle or a delayed acknowledgement is back


class TestStream:
    def test_lines_arrive_as_they_are_written(self, link: Link, tmp_path: Path) -> None:
        script = f"echo one; until test -e '{tmp_path}/go'; do sleep 0.05; done; printf 'two\\nth'; sleep 0.2\n"
        script += "printf 'ree\\n\\nlast'; echo err >&2; exit 3"
        with link.stream(["sh", "-c", script], silence_s=PATIENCE_S) as lines:
            assert next(lines) == b"one"  # the rest is not written before
            assert lines.exit_code is None
            (tmp_path / "go").touch()
            assert list(lines) == [b"two", b"three", b"", b"last"]
            assert lines.exit_code == 3
            assert lines.stderr_tail == b"err\n"

    def test_stdin_is_given_and_closed(self, link: Link) -> None:
        with link.stream(["cat"], stdin=b"a\nb\n", silence_s=PATIENCE_S) as lines:
            assert list(lines) == [b"a", b"b"]

    def test_closing_in_the_middle_leaves_the_link_usable(self, link: Link) -> None:
        with link.stream(["sh", "-c", f"echo x; sleep {A_LONG_TIME}"], silence_s=PATIENCE_S) as lines:
            assert next(lines) == b"x"
        assert list(lines) == []
        assert link.exec(["echo", "y"], deadline_s=PATIENCE_S).stdout == b"y\n"

    def test_a_slow_reader_is_no_silence(self, link: Link) -> None:
        script = "for i in 1 2 3; do echo $i; done"
        with link.stream(["sh", "-c", script], silence_s=0.5, first_byte_deadline_s=PATIENCE_S) as lines:
            got = []
            for line in lines:
                time.sleep(0.7)
                got.append(line)
        assert got == [b"1", b"2", b"3"]

    def test_silence_is_a_lost_link(self, link: Link) -> None:
        script = f"echo x; sleep {A_LONG_TIME}"
        with link.stream(["sh", "-c", script], silence_s=0.5, first_byte_deadline_s=PATIENCE_S) as lines:
            assert next(lines) == b"x"
            start = time.monotonic()
            with Within(), pytest.raises(LinkLostError, match=r"no sign of life for 0.5 s while running `sh`"):
                next(lines)
            assert time.monotonic() - start > 0.4
        with pytest.raises(LinkLostError):
            link.exec(["true"], deadline_s=PATIENCE_S)

    def test_a_pulse_on_stderr_is_no_silence(self, link: Link) -> None:
        script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.3; echo . >&2; done; echo x"
        with link.stream(["sh", "-c", script], silence_s=2) as lines:
            assert list(lines) == [b"x"]

    def test_the_first_byte_has_its_own_deadline(self, link: Link) -> None:
        with link.stream(["sh", "-c", "sleep 2; echo x"], silence_s=1.5, first_byte_deadline_s=PATIENCE_S) as lines:
            assert list(lines) == [b"x"]


class TestLoginShells:
    @pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish", "tcsh"])
    def test_everything_works(self, client: SshClientFiles, tmp_path: Path, shell: str) -> None:
        path = shutil.which(shell)
        if path is None:
            pytest.skip(f"{shell} is not installed here")
        with running_sshd(tmp_path / "gpu1", ServerOptions(login_shell=path)) as server:
            client.add_host("gpu1", server)
            with Link.open(resolve("gpu1")) as link:
                shown = link.exec(
                    [sys.executable, "-c", "import sys; print(ascii(sys.argv[1]))", STRANGE], deadline_s=PATIENCE_S
                )
                assert shown.stdout.decode().strip() == ascii(STRANGE)
                with link.stream(
                    ["sh", "-c", 'cat; printf "%s" "$1"', "x", STRANGE], stdin=b"in\n", silence_s=PATIENCE_S
                ) as lines:
                    assert b"\n".join(lines) == b"in\n" + STRANGE.encode()
                link.put_bytes(b"data", f"~/{STRANGE}/file")
                link.get_file(f"~/{STRANGE}/file", tmp_path / "got", size=4)
            assert (server.home / STRANGE / "file").read_bytes() == b"data"

    def test_a_start_up_file_that_prints(self, client: SshClientFiles, tmp_path: Path) -> None:
        noise = ServerOptions(login_shell="/bin/bash", bashrc="echo Welcome; echo 'to gpu1' >&2; printf half-a-line\n")
        with running_sshd(tmp_path / "gpu1", noise) as server:
            client.add_host("gpu1", server)
            with Link.open(resolve("gpu1")) as link:
                assert link.exec(["echo", "x"], deadline_s=PATIENCE_S).stdout.endswith(b"x\n")
                data = os.urandom(100_000)
                link.put_bytes(data, "~/file")
                link.get_file("~/file", tmp_path / "got", size=len(data))
            assert (tmp_path / "got").read_bytes() == data

    def test_an_account_without_a_shell(self, client: SshClientFiles, tmp_path: Path) -> None:
        nologin = shutil.which("nologin", path="/usr/sbin:/sbin:/usr/bin")
        if nologin is None:
            pytest.skip("no nologin here")
        with running_sshd(tmp_path / "gpu1", ServerOptions(login_shell=nologin)) as server:
            client.add_host("gpu1", server)
            with Link.open(resolve("gpu1")) as link:
                assert link.exec(["true"], deadline_s=PATIENCE_S).exit_code == 1
                with pytest.raises(HostNotReadyError, match="cannot store"):
                    link.put_bytes(b"x", "~/file")
                with pytest.raises(ProtocolError, match="did not send"):
                    link.get_file("~/file", tmp_path / "got", size=1)
            assert not (tmp_path / "got").exists()


class TestFiles:
    @pytest.mark.parametrize("size", [0, 1, 200_000, 5_000_000])
    def test_there_and_back(self, link: Link, server: SshServer, tmp_path: Path, size: int) -> None:
        data = os.urandom(size)
        link.put_bytes(data, f"{server.home}/a/b/{size}")
        assert (server.home / "a" / "b" / str(size)).read_bytes() == data
        assert (server.home / "a" / "b" / str(size)).stat().st_mode & 0o777 == 0o600
        link.get_file(f"{server.home}/a/b/{size}", tmp_path / "got", size=size)
        assert (tmp_path / "got").read_bytes() == data
        assert [file.name for file in tmp_path.iterdir() if "part" in file.name] == []

    def test_a_path_in_the_hosts_home(self, link: Link, server: SshServer) -> None:
        link.put_bytes(bytes(700_000), "~/sent")
        assert (server.home / "sent").read_bytes() == bytes(700_000)

    def test_a_file_is_replaced_whole(self, link: Link, server: SshServer) -> None:
        link.put_bytes(b"old and longer", "~/replaced")
        link.put_bytes(b"new", "~/replaced")
        assert (server.home / "replaced").read_bytes() == b"new"

    def test_a_missing_file(self, link: Link, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="no such file on gpu1"):
            link.get_file("~/not there", tmp_path / "got", size=1)
        assert list(tmp_path.glob("got*")) == []

    @pytest.mark.parametrize("claimed", [3, 5])
    def test_a_size_that_is_not_as_told(self, link: Link, tmp_path: Path, claimed: int) -> None:
        link.put_bytes(b"1234", "~/four")
        with pytest.raises(ProtocolError, match=f"must be {claimed} bytes long, found: 4"):
            link.get_file("~/four", tmp_path / "got", size=claimed)
        assert list(tmp_path.glob("got*")) == []
        assert link.probe(PATIENCE_S)

    def test_a_folder_that_cannot_be_written(self, link: Link) -> None:
        with pytest.raises(HostNotReadyError, match=r"cannot store /proc/nope/file \(1 bytes\): .*mkdir"):
            link.put_bytes(b"x", "/proc/nope/file")

    def test_a_host_that_cannot_hold_the_file(self, client: SshClientFiles, tmp_path: Path) -> None:
        """As a full disk: writing stops in the middle (here at the shell's file size limit)."""
        shell = tmp_path / "small_shell"
        shell.write_text('#!/bin/sh\nulimit -f 64\nexec /bin/sh "$@"\n')
        shell.chmod(0o755)
        with running_sshd(tmp_path / "gpu1", ServerOptions(login_shell=str(shell))) as server:
            client.add_host("gpu1", server)
            with Link.open(resolve("gpu1")) as link:
                with pytest.raises(HostNotReadyError, match=r"cannot store ~/d/big \(10000000 bytes\): .*[Ff]ile"):
                    link.put_bytes(bytes(10_000_000), "~/d/big")
                assert link.probe(PATIENCE_S)
            assert list((server.home / "d").iterdir()) == []


class TestProxyCommand:
    def test_it_carries_the_link(self, client: SshClientFiles, server: SshServer, tmp_path: Path) -> None:
        with running_sshd(tmp_path / "hop") as hop:
            client.add_host("hop", hop)
            client.add_host("gpu1", server, ProxyCommand=f"ssh -F '{client.ssh_config}' -W %h:%p hop")
            with Link.open(resolve("gpu1")) as link:
                data = os.urandom(1_000_000)
                assert link.exec(["cat"], stdin=data, deadline_s=PATIENCE_S).stdout == data
        children = subprocess.run(
            ["ps", "-o", "stat=,comm=", "--ppid", str(os.getpid())], check=True, capture_output=True, text=True
        )
        left = [row.split() for row in children.stdout.splitlines()]
        assert [name for state, name, *_ in left if state[0] == "Z" and name in {"ssh", "sh"}] == []
        assert "-W" not in children.stdout

    def test_one_that_fails_says_why(self, client: SshClientFiles, server: SshServer) -> None:
        client.add_host("gpu1", server, ProxyCommand="sh -c 'echo the tunnel is closed >&2; exit 1'")
        with pytest.raises(HostError, match=r"the ProxyCommand to gpu1 \(.*\) failed: the tunnel is closed"):
            Link.open(resolve("gpu1"))

    def test_the_key_is_still_verified(self, client: SshClientFiles, server: SshServer) -> None:
        client.add_host("gpu1", server, trust=False, ProxyCommand="sh -c 'cat >/dev/null'")
        with pytest.raises(HostError, match="no answer within 1 s"):
            Link.open(resolve("gpu1"), connect_timeout_s=1)


class TestNothingThere:
    def test_a_server_that_gives_no_sessions(self, client: SshClientFiles, tmp_path: Path) -> None:
        with running_sshd(tmp_path / "gpu1", ServerOptions(sshd_config="MaxSessions 0")) as server:
            client.add_host("gpu1", server)
            with Link.open(resolve("gpu1")) as link, pytest.raises(HostError, match="refused another session"):
                link.exec(["true"], deadline_s=PATIENCE_S)

    def test_a_server_without_an_algorithm_in_common(self, client: SshClientFiles, tmp_path: Path) -> None:
        options = ServerOptions(sshd_config="Ciphers chacha20-poly1305@openssh.com")
        with running_sshd(tmp_path / "gpu1", options) as server:
            client.add_host("gpu1", server)
            with pytest.raises(HostError, match=r"share no algorithm: .*ciphers"):
                Link.open(resolve("gpu1"))

    def test_a_closed_port(self, client: SshClientFiles, server: SshServer) -> None:
        with closed_port() as port:
            client.add_host("gpu1", server, port=port)
            with pytest.raises(HostError, match=rf"nothing answers at gpu1 \(.*127.0.0.1:{port}\): Connection refused"):
                Link.open(resolve("gpu1"))

    def test_an_unknown_name(self, client: SshClientFiles) -> None:
        with pytest.raises(HostError, match=r"the name 'no-such-host.invalid' is not known"):
            Link.open(resolve("no-such-host.invalid"))

    def test_a_name_that_cannot_be_looked_up(self, client: SshClientFiles) -> None:
        with pytest.raises(HostError):
            Link.open(resolve("a" * 70 + "ü.invalid"))

    @pytest.mark.parametrize("words", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
    def test_something_that_is_not_ssh(self, client: SshClientFiles, server: SshServer, words: bytes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client.add_host("gpu1", server, port=listener.getsockname()[1])
            accepted: list[socket.socket] = []

            def answer() -> None:
                accepted.append(listener.accept()[0])
                accepted[0].sendall(words)

            thread = threading.Thread(target=answer)
            thread.start()
            with Within(), pytest.raises(HostError):
                Link.open(resolve("gpu1"), connect_timeout_s=1)
            thread.join()
            accepted[0].close()

    def test_a_target_the_hop_cannot_reach(self, client: SshClientFiles, server: SshServer) -> None:
        client.add_host("hop", server)
        with closed_port() as port:
            client.add_host("far", server, port=port, ProxyJump="hop")
            with pytest.raises(HostError, match=rf"the hop before far \(.*:{port}\) could not reach it"):
                Link.open(resolve("far"))
