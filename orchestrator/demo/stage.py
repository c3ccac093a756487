"""The stage of the demonstration: a host on loopback with the bundled drafter, its config wired as in the story."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.demo.wiring import DRAFTER, STATES, STORY_IDS
from orchestrator.errors import HostError, HostNotReadyError

DATA = Path(__file__).parent / "data"
ALIAS = "demo"
START_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What the demonstration runs on; the paths are the host's."""

    ssh_config: Path
    host: str
    settings: dict[str, object]
    """Settings of the standalone job."""


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Put the bundled data on a host made in `folder`, serve it while the block lasts.

    Raises HostNotReadyError when the embedded server cannot start (asyncssh missing, no free port).
    """
    home = folder / "home"
    shutil.copytree(DATA, home / "story")
    miswire(home / "story" / DRAFTER)
    server = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.demo.server", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        _await_ready(server)
        yield Stage(ssh_config=folder / "ssh_config", host=ALIAS, settings=_settings(home / "story"))
    finally:
        assert server.stdin is not None
        server.stdin.close()  # the server ends when its standard input does
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        for pipe in (server.stdout, server.stderr):
            if pipe is not None:
                pipe.close()
        _await_quiet(home / ".eagle3-remote" / "payloads")


def miswire(draft: Path) -> None:
    """Let the drafter's config declare what serving feeds it in the story: three states that are not its own."""
    path = draft / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = list(STORY_IDS)
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def _await_ready(server: "subprocess.Popen[bytes]") -> None:
    assert server.stdout is not None
    assert server.stderr is not None
    late = threading.Timer(START_S, server.kill)
    late.start()
    try:
        line = server.stdout.readline()
    finally:
        late.cancel()
    if line.startswith(b"ready "):
        return
    said = server.stderr.read().decode(errors="replace").strip().splitlines()
    if said and "asyncssh" in said[-1] and "No module" in said[-1]:
        raise HostNotReadyError("the demonstration needs asyncssh", hint="pip install 'eagle3-remote[demo]'")
    raise HostError(f"the embedded server did not start: {said[-1] if said else 'no message'}")


def _await_quiet(payloads: Path) -> None:
    """Wait for the compiling of the payload that goes on in the background, so that the folder can be removed."""
    until = time.monotonic() + START_S
    while any(payloads.glob(".*.tmp")) and time.monotonic() < until:
        time.sleep(0.05)


def _settings(story: Path) -> dict[str, object]:
    return {
        "draft": str(story / DRAFTER),
        "target": str(story / "target"),
        "rows": str(story / "rows"),
        "merged": str(story / "merged.jsonl"),
        "states": list(STATES),
    }
