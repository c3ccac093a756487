"""The link breaks in every phase: each call ends in its time with LinkLostError or HostError, nothing half-written."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostError, LinkLostError
from orchestrator.remote import file_transfer
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.fault_proxy import FaultProxy
from tests.support.sshd import SshClientFiles, SshServer, running_sshd, session_pids

Break = Callable[[FaultProxy], None]
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


class Within:
    """Asserts that a block took no longer than it may."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.start = time.monotonic()

    def __exit__(self, *_: object) -> None:
        assert time.monotonic() - self.start < self.seconds


@pytest.mark.parametrize("break_it", BREAKS)
def test_during_exec(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    timer = later(lambda: break_it(proxy))
    with Within(4), pytest.raises(LinkLostError, match="gpu1"):
        link.exec(["sleep", "8"], deadline_s=2)
    timer.join()
    with Within(1), pytest.raises(LinkLostError):
        link.exec(["true"], deadline_s=30)


@pytest.mark.parametrize("break_it", BREAKS)
def test_before_exec(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    break_it(proxy)
    with Within(3), pytest.raises(LinkLostError):
        link.exec(["true"], deadline_s=1)


@pytest.mark.parametrize("break_it", BREAKS)
def test_during_a_stream_no_half_line_comes_out(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    with link.stream(["sh", "-c", "printf 'one\\ntw'; sleep 8"], silence_s=1.5) as lines:
        assert next(lines) == b"one"
        timer = later(lambda: break_it(proxy))
        with Within(4), pytest.raises(LinkLostError):
            list(lines)
        timer.join()
        assert lines.exit_code is None


@pytest.mark.parametrize("break_it", BREAKS)
def test_sending_a_lot_of_stdin(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    timer = later(lambda: break_it(proxy))
    with Within(5), pytest.raises(LinkLostError):
        link.exec(["sh", "-c", "sleep 0.6; cat >/dev/null; sleep 8"], stdin=bytes(30_000_000), deadline_s=2)
    timer.join()


@pytest.mark.parametrize("break_it", BREAKS)
def test_probe_tells_and_closes(link: Link, proxy: FaultProxy, break_it: Break) -> None:
    assert link.probe(5)
    break_it(proxy)
    with Within(3):
        assert not link.probe(1)
    with Within(1):
        link.close()


def test_closing_a_half_open_link_with_full_buffers_does_not_block(link: Link, proxy: FaultProxy) -> None:
    with link.stream(["sh", "-c", "echo x; cat"], stdin=bytes(20_000_000), silence_s=0.5) as lines:
        assert next(lines) == b"x"
        proxy.swallow()
        with pytest.raises(LinkLostError):
            list(lines)
    with Within(1):
        link.close()


@pytest.mark.parametrize("after_bytes", [100_000, 900_000])
def test_a_file_cut_on_its_way_up_is_not_there(
    link: Link, proxy: FaultProxy, server: SshServer, after_bytes: int
) -> None:
    target = server.home / f"cut{after_bytes}" / "file"
    proxy.cut_after(after_bytes)
    with Within(5), pytest.raises(LinkLostError):
        link.put_bytes(os.urandom(1_000_000), str(target))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and list(target.parent.glob("*")):
        time.sleep(0.02)  # the host notices the cut and removes its part
    assert list(target.parent.glob("*")) == []


@pytest.mark.parametrize("after_bytes", [100_000, 900_000])
def test_a_file_cut_on_its_way_down_leaves_nothing(
    link: Link, proxy: FaultProxy, server: SshServer, tmp_path: Path, after_bytes: int
) -> None:
    (server.home / "down").write_bytes(os.urandom(1_000_000))
    proxy.cut_after(after_bytes)
    with Within(5), pytest.raises(LinkLostError):
        link.get_file("~/down", tmp_path / "got", size=1_000_000)
    assert list(tmp_path.glob("got*")) == []


def test_a_file_into_a_half_open_link(
    link: Link, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_transfer, "_SILENCE_S", 1.0)
    proxy.swallow()
    with Within(4), pytest.raises(LinkLostError, match="no sign of life for 1 s"):
        link.put_bytes(bytes(20_000_000), "~/swallowed")


def test_a_half_open_link_while_connecting(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    client.add_host("gpu1", server, port=proxy.port)
    proxy.swallow()
    with Within(4), pytest.raises(HostError, match=r"gpu1 \(.*\) gave no answer within 1 s"):
        Link.open(resolve("gpu1"), connect_timeout_s=1)


def connect_and_run(alias: str) -> None:
    with Link.open(resolve(alias), connect_timeout_s=3) as link:
        link.exec(["true"], deadline_s=3)


def test_cut_while_connecting(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    """Inside the banner, the key exchange, the login and the start of a command."""
    client.add_host("gpu1", server, port=proxy.port)
    connect_and_run("gpu1")
    proxy.wait_until_idle()
    total = proxy.bytes_forwarded
    for percent in (0, 1, 10, 20, 40, 60, 70, 80, 90):
        proxy.cut_after(1 + total * percent // 100)
        with Within(4), pytest.raises(HostError, match="gpu1"):
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
            with Within(4), pytest.raises(HostError, match="far"):
                connect_and_run("far")
            proxy.wait_until_idle()


def test_the_server_s_session_is_killed(client: SshClientFiles, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "gpu1") as own:
        client.add_host("gpu1", own)
        with Link.open(resolve("gpu1")) as link:
            link.exec(["true"], deadline_s=5)
            (session,) = session_pids(own)[:1]
            timer = later(lambda: os.kill(session, 9))
            with Within(3), pytest.raises(LinkLostError):
                link.exec(["sleep", "8"], deadline_s=20)
            timer.join()


def test_a_dead_address_is_given_up_in_time(client: SshClientFiles) -> None:
    client.ssh_config.write_text("Host dead\n HostName 192.0.2.1\n")  # TEST-NET-1: nobody answers, nobody refuses
    with Within(3), pytest.raises(HostError, match=r"192\.0\.2\.1"):
        Link.open(resolve("dead"), connect_timeout_s=1)


def test_a_new_link_after_a_break(client: SshClientFiles, server: SshServer, proxy: FaultProxy) -> None:
    client.add_host("gpu1", server, port=proxy.port)
    with Link.open(resolve("gpu1")) as first:
        proxy.cut()
        assert not first.probe(2)
    with Link.open(resolve("gpu1")) as second:
        assert second.exec(["echo", "back"], deadline_s=5).stdout == b"back\n"
