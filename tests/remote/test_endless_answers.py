"""Hosts that send more than they should: bounded in bytes, and no slower for it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.errors import ProtocolError
from orchestrator.remote import file_transfer, verbs
from orchestrator.remote.link import Link
from orchestrator.remote.session_channel import SessionChannel
from orchestrator.remote.ssh_config import resolve
from orchestrator.remote.verbs import Installed
from orchestrator.remote.watchdog import Watchdog
from remote_payload.schema import StatusRequest
from tests.support.sshd import SshClientFiles, SshServer


@pytest.fixture
def link(client: SshClientFiles, server: SshServer) -> Iterator[Link]:
    client.add_host("gpu1", server)
    with Link.open(resolve("gpu1")) as opened:
        yield opened


ENDLESS_FILE = 'printf "\\n%s 10\\n" "$1"; exec yes'
ENDLESS_NOISE = "exec yes"


@pytest.mark.parametrize(("script", "words"), [(ENDLESS_FILE, "found: more"), (ENDLESS_NOISE, "instead of /big")])
def test_a_host_that_sends_more_than_it_announced(link: Link, tmp_path: Path, script: str, words: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()

    def lying(argv: Sequence[str], stdin: Iterable[bytes], watchdog: Watchdog) -> SessionChannel:
        nonce = argv[-1]
        return link._session(["sh", "-c", script, "get", nonce], stdin, watchdog)

    with pytest.raises(ProtocolError, match=words):
        file_transfer.get(lying, link._connection, "/big", folder / "big", 10)
    assert list(folder.iterdir()) == []


def test_noise_that_never_becomes_an_answer(link: Link, server: SshServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "NOISE_S", 0.5)
    python = server.home / "talker"
    python.write_text("#!/bin/sh\nwhile echo noise; do sleep 0.01; done\n")
    python.chmod(0o700)
    payload = server.home / "root" / "payloads" / "x.pyz"
    payload.parent.mkdir(parents=True)
    payload.touch()
    installed = Installed(python=str(python), root=str(server.home / "root"), sha256="x")
    request = StatusRequest(nonce="0" * 32, root=installed.root)
    with pytest.raises(ProtocolError, match="none of it is the answer of `status`"):
        list(verbs.call(link, installed, "status", request, 0.5))


def test_a_very_long_line_arrives_whole_and_soon(link: Link) -> None:
    start = time.monotonic()
    with link.stream(["sh", "-c", "head -c 48000000 /dev/zero; echo; echo next"], silence_s=60) as lines:
        long, last = list(lines)
    assert (len(long), last) == (48_000_000, b"next")
    assert time.monotonic() - start < 60  # minutes where every chunk copies all that came before it
