"""Telling that a run is over: a real HTTP receiver, programs on PATH, and what goes wrong with each."""

import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator import notifying
from orchestrator.config import NotifyConfig, read
from orchestrator.errors import ConfigError
from orchestrator.notifying import NotToldError, notify, post
from orchestrator.records import RunHost, RunRecord
from orchestrator.store import Store
from orchestrator.store.telling import MOST_TRIES, claim, untold
from remote_payload.schema import Failure, RunSpec, RunState, SelftestJob, to_json

STATE = RunState(
    run_id="night-1",
    sequence=5,
    phase="failed",
    started_unix_s=1000.0,
    finished_unix_s=1000.0 + 3 * 3600 + 125,
    exit_code=1,
    failure=Failure(kind="job", message="asked to fail"),
)
SPEC = RunSpec(
    run_id="night-1",
    job_kind="selftest",
    job_json=to_json(SelftestJob()),
    python="/usr/bin/python3",
    payload_sha256="0" * 64,
    environment={"TOKEN_PLACE": "do not tell"},
    launched_by="somebody@laptop",
    created_unix_s=1.0,
)
RECORD = RunRecord(host=RunHost(name="gpu1", destination="gpu1", root="/r"), spec=SPEC, state=STATE)
TEXT = "selftest night-1 on gpu1: failed after 3 h 2 min: asked to fail"


class Receiver:
    """An HTTP server that keeps what it is sent and answers with the codes it was given, the last one again."""

    def __init__(self, codes: list[int], location: str = "", pause_s: float = 0.0) -> None:
        self.bodies: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                time.sleep(pause_s)
                self.send_response(codes[min(len(receiver.bodies), len(codes)) - 1])
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/T0P-S3CRET"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def make(*codes: int, **more: Any) -> Receiver:
        made.append(Receiver(list(codes), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.begin(RECORD)
    return store


def program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_webhook_is_told_once(
    store: Store, receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = receiver(200)
    monkeypatch.setenv("PAGER", there.address)
    config = NotifyConfig(webhook="PAGER")
    assert notify(RECORD, store, config) == ()
    assert notify(RECORD, store, config) == ()
    (body,) = there.bodies
    assert (body["text"], body["phase"], body["exit_code"], body["told_by"]) == (TEXT, "failed", 1, "laptop")
    assert "do not tell" not in json.dumps(body)


def test_one_that_is_out_of_order_is_asked_again(tmp_path: Path, receiver: Callable[..., Receiver]) -> None:
    """As a program of its own, whose log nobody has set up: nothing is said of it."""
    there = receiver(503, 500, 204)
    program = f"from orchestrator.notifying import post; post({there.address!r}, b'{{}}')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(there.bodies) == 3


@pytest.mark.parametrize(
    ("codes", "asked", "words"),
    [
        ((403,), 1, "the address refuses it: HTTP 403"),
        ((500,), 3, "the address refuses it: HTTP 500"),
        ((302,), 1, "wants to send us elsewhere, and that is not followed: HTTP 302"),
        ((307,), 1, "wants to send us elsewhere, and that is not followed: HTTP 307"),
    ],
)
def test_one_that_does_not_take_it(
    receiver: Callable[..., Receiver], codes: tuple[int, ...], asked: int, words: str
) -> None:
    elsewhere = receiver(200)
    there = receiver(*codes, location=elsewhere.address)
    with pytest.raises(NotToldError) as caught:
        post(there.address, b"{}")
    assert words in str(caught.value)
    assert "S3CRET" not in str(caught.value)
    assert (len(there.bodies), elsewhere.bodies) == (asked, [])


def test_one_that_is_silent(receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "ANSWER_S", 0.2)
    monkeypatch.setattr(notifying, "TRIES", 1)
    there = receiver(200, pause_s=1.0)
    with pytest.raises(NotToldError, match="no answer that is HTTP: TimeoutError"):
        post(there.address, b"{}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://127.0.0.1:1/T0P-S3CRET", "nobody answers: "),
        ("file:///etc/T0P-S3CRET", "expected an http or https address, found one of: file"),
        ("T0P-S3CRET", "expected an http or https address, found one of: nothing"),
        ("http://[T0P-S3CRET", "expected an http or https address, found none"),
        ("http://a b/T0P-S3CRET", "no answer that is HTTP: InvalidURL"),
    ],
)
def test_addresses_that_lead_nowhere(address: str, words: str) -> None:
    with pytest.raises(NotToldError) as caught:
        post(address, b"{}")
    assert words in str(caught.value)
    assert "S3CRET" not in str(caught.value)


def test_a_command_gets_the_ending_and_its_own_words(store: Store, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = (str(program(tmp_path, "tell", f'cat > {told}; echo "$1" >> {told}')), "a $(false) 'b'")
    assert notify(RECORD, store, NotifyConfig(command=command)) == ()
    ending, word = told.read_text().splitlines()
    assert (json.loads(ending)["text"], word) == (TEXT, "a $(false) 'b'")


def test_the_desktop(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    program(tmp_path, "notify-send", f'printf "%s\\n" "$@" > {told}')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert notify(RECORD, store, NotifyConfig(desktop=True)) == ()
    assert told.read_text().splitlines() == ["--app-name=eagle3-remote", "eagle3-remote: night-1 failed", TEXT]


def test_macos_is_told_by_its_own_script(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    program(tmp_path, "osascript", f'printf "%s\\n" "$@" > {told}')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("sys.platform", "darwin")
    assert notify(RECORD, store, NotifyConfig(desktop=True)) == ()
    assert told.read_text().splitlines()[-2:] == ["eagle3-remote: night-1 failed", TEXT]


def test_every_way_that_fails_is_a_sentence_and_the_others_go_on(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Callable[..., Receiver]
) -> None:
    there = receiver(200)
    monkeypatch.setenv("PAGER", there.address)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NOWHERE", raising=False)
    config = NotifyConfig(desktop=True, command=("/no/such/program",), webhook="PAGER", apprise="NOWHERE")
    assert notify(RECORD, store, config) == (
        "the end of night-1 could not be told by desktop: this laptop has no notify-send",
        "the end of night-1 could not be told by command: `/no/such/program` cannot be run: [Errno 2] No such file or "
        "directory: '/no/such/program'",
        "the end of night-1 could not be told by apprise: the environment variable that holds the address is not set: "
        "NOWHERE",
    )
    assert len(there.bodies) == 1


def test_a_command_that_hangs_may_have_told_and_is_not_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "LONGEST_S", 0.2)
    (problem,) = notify(RECORD, store, NotifyConfig(command=("sleep", "60")))
    assert problem.endswith("`sleep` took longer than 0 s")
    assert notify(RECORD, store, NotifyConfig(command=("sleep", "60"))) == ()
    (told,) = untold(store.run_dir("night-1"))
    assert told == "its end was not told by command: `sleep` took longer than 0 s; not tried again"


def test_what_failed_is_told_when_the_end_is_seen_next_and_what_told_is_not(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Callable[..., Receiver]
) -> None:
    monkeypatch.setattr(notifying, "FIRST_PAUSE_S", 0.001)
    there, run, tries, up = receiver(200), store.run_dir("night-1"), tmp_path / "tries", tmp_path / "up"
    monkeypatch.setenv("PAGER", there.address)
    body = f"echo x >> {tries}; [ -e {up} ]"
    config = NotifyConfig(command=(str(program(tmp_path, "tell", body)),), webhook="PAGER")
    (problem,) = notify(RECORD, store, config)
    assert problem.endswith("tell` ended with exit code 1")
    assert tries.read_text() == "x\n" * notifying.TRIES
    (told,) = untold(run)
    assert told.endswith("ended with exit code 1; tried again when `attach` or `collect` sees the end")
    up.touch()
    assert notify(RECORD, store, config) == ()
    assert notify(RECORD, store, config) == ()
    assert (untold(run), tries.read_text()) == ((), "x\n" * (notifying.TRIES + 1))
    assert len(there.bodies) == 1


def test_it_is_not_tried_for_ever(store: Store) -> None:
    config = NotifyConfig(command=("/no/such/program",))
    ends = [len(notify(RECORD, store, config)) for _ in range(MOST_TRIES + 2)]
    assert ends == [1] * MOST_TRIES + [0, 0]
    assert untold(store.run_dir("night-1"))[0].endswith("; not tried again")


def test_what_another_process_is_at_or_an_older_version_told_is_left_to_it(store: Store, tmp_path: Path) -> None:
    run, told = store.run_dir("night-1"), tmp_path / "told"
    config = NotifyConfig(command=(str(program(tmp_path, "tell", f"touch {told}")),))
    assert claim(store.home, run, ("command",)) == ("command",)
    assert notify(RECORD, store, config) == ()
    (run.path / "told.json").write_text('{"told_unix_s": 1700000000}\n')
    assert notify(RECORD, store, config) == ()
    assert not told.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise(
    store: Store,
    receiver: Callable[..., Receiver],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    there = receiver(200, 500)
    monkeypatch.setenv("PAGERS", there.address.replace("http://", "json://"))
    assert notify(RECORD, store, NotifyConfig(apprise="PAGERS")) == ()
    body = there.bodies[0]
    assert (body["title"], body["message"]) == ("eagle3-remote: night-1 failed", TEXT)
    (store.run_dir("night-1").path / "told.json").unlink()
    (problem,) = notify(RECORD, store, NotifyConfig(apprise="PAGERS"))
    assert problem.endswith("apprise could not deliver it everywhere")
    assert capfd.readouterr() == ("", "")


def test_nobody_is_told_of_a_run_that_goes_on(store: Store, tmp_path: Path) -> None:
    going = RunRecord(host=RECORD.host, spec=SPEC, state=RunState(run_id="night-1", sequence=1, phase="running"))
    told = tmp_path / "told"
    config = NotifyConfig(command=(str(program(tmp_path, "tell", f"touch {told}")),))
    assert notify(going, store, config) == ()
    assert not told.exists()
    assert notify(RECORD, store, config) == ()
    assert told.exists()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('webhook = "https://hooks.example/T0P-S3CRET"', "`webhook` must be the name of an environment variable"),
        ('desktop = "yes"', "`notify`: desktop: expected bool"),
        ('command = [""]', "`command` must hold words"),
        ('mail = "me"', "mail: unknown key; allowed: desktop, command, webhook, apprise"),
    ],
)
def test_a_table_that_is_wrong(tmp_path: Path, table: str, words: str) -> None:
    path = tmp_path / "eagle3.toml"
    path.write_text(f"[notify]\n{table}\n")
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert words in str(caught.value)
    assert "S3CRET" not in str(caught.value)


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of a server whose answer comes a byte at a time, and never to its end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                for byte in itertools.cycle(b"HTTP/1.1 200 OK slowly "):
                    connection.send(bytes((byte,)))
                    if over.wait(0.1):
                        return

        over = threading.Event()
        thread = threading.Thread(target=drip)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        over.set()
        thread.join()


def test_an_answer_that_only_drips_keeps_nobody(store: Store, dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "LONGEST_S", 0.5)
    monkeypatch.setenv("PAGER", dripping)
    begun_s = time.monotonic()
    (problem,) = notify(RECORD, store, NotifyConfig(webhook="PAGER"))
    assert problem == "the end of night-1 could not be told by webhook: it took longer than 0 s"
    assert time.monotonic() - begun_s < 5


def test_a_password_in_an_address_is_refused_in_words() -> None:
    with pytest.raises(NotToldError) as caught:
        post("http://somebody:s3cret@127.0.0.1:1/", b"{}")
    assert "without user and password" in str(caught.value)
    assert "s3cret" not in str(caught.value)
