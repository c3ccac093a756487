"""The link breaks in every phase: each call ends in its time with LinkLostError or HostError, nothing half-written."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostError, LinkLostError
from orchestrator.remote import file_transfer
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.fault_proxy import FaultProxy
from tests.support.patience import A_LONG_TIME, PATIENCE_S, Within, wait_for
from tests.support.sshd import SshClientFiles, SshServer, running_sshd, session_pids

Break = Callable[[FaultProxy], None]
PARAMIKO_JOINS_S = 9  # its own close() waits for its thread ten seconds at a time
SILENCE_S = 14  # a transfer that waits for the end of `_SILENCE_S` takes longer
BREAKS = [pytest.param(FaultProxy.swallow, id="half-open"), pytest.param(FaultProxy.cut, id="reset")]


@pytest.fixture
def proxy(server: SshServer) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as running:
        yield running


@pytest.fixture(params=["direct", "through a hop"])
def link(
    request: pytest.FixtureRequest, client: SshClientFiles, server: SshServer, proxy: FaultProxy
) -> Iterator[Link]:
    """A link whose (first) connection runs through the proxy."""
    if request.param == "direct":
        client.add_host("gpu1", server, port=proxy.port)
    else:
        client.add_host("hop", server, port=proxy.port)
        client.add_host("gpu1", server, ProxyJump="hop")
    with Link.open(resolve("gpu1")) as opened:
        yield opened


def later(what: Callable[[], None], after_s: float = 0.3) -> threading.Timer:
    timer = threading.Timer(after_s, what)
    timer.start()
    return timer


def kill_sessions(server: SshServer) -> None:
    """All processes of them: for a plain user's login the first is the monitor alone, and the others would serve on."""
    for session in reversed(session_pids(server)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(session, signal.SIGKILL)


def words_of_processes() -> list[str]:
    """What every process of this machine was started with."""
    return subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("break_it", BREAKS)
def test_during_exec(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    timer = later(lambda: break_it(proxy))
    with Within(), pytest.raises(LinkLostError, match="gpu1"):
        link.exec(["sleep", A_LONG_TIME], deadline_s=1.5)
    timer.join()
    with Within(), pytest.raises(LinkLostError):
        link.exec(["true"], deadline_s=PATIENCE_S)


@pytest.mark.parametrize("break_it", BREAKS)
def test_before_exec(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    break_it(proxy)
    with Within(), pytest.raises(LinkLostError):
        link.exec(["true"], deadline_s=1)


@pytest.mark.parametrize("break_it", BREAKS)
def test_during_a_stream_no_half_line_comes_out(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    with link.stream(
        ["sh", "-c", f"printf 'one\\ntw'; sleep {A_LONG_TIME}"], silence_s=1.5, first_byte_deadline_s=PATIENCE_S
    ) as lines:
        assert next(lines) == b"one"
        timer = later(lambda: break_it(proxy))
        with Within(), pytest.raises(LinkLostError):
            list(lines)
        timer.join()
        assert lines.exit_code is None


@pytest.mark.parametrize("break_it", BREAKS)
def test_sending_a_lot_of_stdin(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    timer = later(lambda: break_it(proxy))
    script = f"sleep 0.6; cat >/dev/null; sleep {A_LONG_TIME}"
    with Within(), pytest.raises(LinkLostError):
        link.exec(["sh", "-c", script], stdin=bytes(30_000_000), deadline_s=2)
    timer.join()


@pytest.mark.parametrize("break_it", BREAKS)
def test_probe_tells_and_closes(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    assert link.probe(PATIENCE_S)
    break_it(proxy)
    with Within():
        assert not link.probe(1)
    with Within(PARAMIKO_JOINS_S):
        link.close()


def test_closing_a_half_open_link_with_full_buffers_does_not_block(link: Link, proxy: FaultProxy) -> None:
    data = bytes(20_000_000)
    with link.stream(["sh", "-c", "echo x; cat"], stdin=data, silence_s=0.5, first_byte_deadline_s=PATIENCE_S) as lines:
        assert next(lines) == b"x"
        proxy.swallow()
        with pytest.raises(LinkLostError):
            list(lines)
    with Within(PARAMIKO_JOINS_S):
        link.close()


@pytest.mark.parametrize("after_bytes", [100_000, 900_000])
def test_a_file_cut_on_its_way_up_is_not_there(
    link: Link, proxy: FaultProxy, server: SshServer, after_bytes: int
) -> None:
    target = server.home / f"cut{after_bytes}" / "file"
    proxy.cut_after(after_bytes)
    with Within(SILENCE_S), pytest.raises(LinkLostError):
        link.put_bytes(os.urandom(1_000_000), str(target))
    # The host may not even have begun: its session and the shell that writes the part come to their ends in their time.
    wait_for(lambda: not session_pids(server), "the ends of the sessions")
    wait_for(lambda: not any(str(target) in words for words in words_of_processes()), "the end of the shell")
    # A child that a busy host has not yet made a shell of is in neither list; it takes its part away as the others do.
    wait_for(lambda: not list(target.parent.glob("*")), "the part to be taken away")


@pytest.mark.parametrize("after_bytes", [100_000, 900_000])
def test_a_file_cut_on_its_way_down_leaves_nothing(
    link: Link, proxy: FaultProxy, server: SshServer, tmp_path: Path, after_bytes: int
) -> None:
    (server.home / "down").write_bytes(os.urandom(1_000_000))
    proxy.cut_after(after_bytes)
    with Within(SILENCE_S), pytest.raises(LinkLostError):
        link.get_file("~/down", tmp_path / "got", size=1_000_000)
    assert list(tmp_path.glob("got*")) == []


def test_a_file_into_a_half_open_link(
    link: Link, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_transfer, "_SILENCE_S", 1.0)
    proxy.swallow()
    with Within(), pytest.raises(LinkLostError, match="no sign of life for 1 s"):
        link.put_bytes(bytes(20_000_000), "~/swallowed")


def test_a_half_open_link_while_connecting(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    client.add_host("gpu1", server, port=proxy.port)
    proxy.swallow()
    with Within(), pytest.raises(HostError, match=r"gpu1 \(.*\) gave no answer within 1 s"):
        Link.open(resolve("gpu1"), connect_timeout_s=1)


def connect_and_run(alias: str) -> None:
    with Link.open(resolve(alias), connect_timeout_s=PATIENCE_S) as link:
        link.exec(["true"], deadline_s=PATIENCE_S)


def test_cut_while_connecting(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    """Inside the banner, the key exchange, the login and the start of a command."""
    client.add_host("gpu1", server, port=proxy.port)
    connect_and_run("gpu1")
    proxy.wait_until_idle()
    total = proxy.bytes_forwarded
    for percent in (0, 1, 10, 20, 40, 60, 70, 80, 90):
        proxy.cut_after(1 + total * percent // 100)
        with Within(), pytest.raises(HostError, match="gpu1"):
            connect_and_run("gpu1")
        proxy.wait_until_idle()


def test_cut_behind_the_hop_while_connecting(
    client: SshClientFiles, server: SshServer, proxy: FaultProxy, tmp_path: Path
) -> None:
    with running_sshd(tmp_path / "hop") as hop:
        client.add_host("hop", hop)
        client.add_host("far", server, port=proxy.port, ProxyJump="hop")
        connect_and_run("far")
        proxy.wait_until_idle()
        total = proxy.bytes_forwarded
        for percent in (0, 30, 60, 90):
            proxy.cut_after(1 + total * percent // 100)
            with Within(), pytest.raises(HostError, match="far"):
                connect_and_run("far")
            proxy.wait_until_idle()


def test_the_server_s_session_is_killed(client: SshClientFiles, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "gpu1") as own:
        client.add_host("gpu1", own)
        with Link.open(resolve("gpu1")) as link:
            link.exec(["true"], deadline_s=PATIENCE_S)
            timer = later(lambda: kill_sessions(own))
            with Within(), pytest.raises(LinkLostError):
                link.exec(["sleep", A_LONG_TIME], deadline_s=PATIENCE_S)
            timer.join()


def test_a_dead_address_is_given_up_in_time(client: SshClientFiles) -> None:
    client.ssh_config.write_text("Host dead\n HostName 192.0.2.1\n")  # TEST-NET-1: nobody answers, nobody refuses
    with Within(), pytest.raises(HostError, match=r"192\.0\.2\.1"):
        Link.open(resolve("dead"), connect_timeout_s=1)


def test_a_new_link_after_a_break(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    client.add_host("gpu1", server, port=proxy.port)
    with Link.open(resolve("gpu1")) as first:
        proxy.cut()
        assert not first.probe(PATIENCE_S)
    with Link.open(resolve("gpu1")) as second:
        assert second.exec(["echo", "back"], deadline_s=PATIENCE_S).stdout == b"back\n"
