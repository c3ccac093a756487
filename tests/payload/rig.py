"""A host's root in a temporary folder, and the laptop's part: building requests, running verbs, reading frames."""

import base64
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.remote.payload import build_payload
from remote_payload import leftovers, processes
from remote_payload.rundir import RunDir
from remote_payload.schema import (
    CancelRequest,
    ChunkFrame,
    Cursor,
    FollowRequest,
    Frame,
    LaunchRequest,
    RunSpec,
    RunState,
    SchemaError,
    SelftestJob,
    StatusRequest,
    frame_from_json,
    from_json,
    to_json,
)
from tests.support.patience import wait_for

NONCE = "nonce-0123456789"
Request = LaunchRequest | FollowRequest | CancelRequest | StatusRequest | Any


class Rig:
    def __init__(self, root: Path, python: str = sys.executable) -> None:
        self.root = root
        self.python = python
        payload = build_payload()
        self.sha256 = payload.sha256
        self.pyz = root / "payloads" / f"{payload.sha256}.pyz"
        self.pyz.parent.mkdir(parents=True)
        self.pyz.write_bytes(payload.data)

    def spec(self, run_id: str, job: SelftestJob | None = None, **changes: Any) -> RunSpec:
        spec = RunSpec(
            run_id=run_id,
            job_kind="selftest",
            job_json=to_json(job or SelftestJob()),
            python=self.python,
            payload_sha256=self.sha256,
            environment={},
            launched_by="somebody@laptop",
            created_unix_s=1.0,
        )
        return dataclasses.replace(spec, **changes)

    def launch_request(
        self, spec: RunSpec, *, follow: bool = False, secrets: dict[str, str] | None = None
    ) -> LaunchRequest:
        return LaunchRequest(nonce=NONCE, root=str(self.root), spec=spec, follow=follow, secrets=secrets or {})

    def start(self, verb: str, request: Request | bytes, **options: Any) -> "subprocess.Popen[bytes]":
        child = subprocess.Popen(
            [self.python, "-I", "-S", str(self.pyz), verb],
            stdin=subprocess.PIPE,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            **options,
        )
        assert child.stdin
        child.stdin.write(request if isinstance(request, bytes) else to_json(request).encode())
        child.stdin.close()
        child.stdin = None
        return child

    def call(self, verb: str, request: Request | bytes, *, exit_code: int = 0, **options: Any) -> list[Frame]:
        with self.start(verb, request, **options) as child:
            stdout, stderr = child.communicate(timeout=60)
        assert (child.returncode, stderr) == (exit_code, b"")
        return frames_in(stdout)

    def launch(self, spec: RunSpec, **options: Any) -> list[Frame]:
        exit_code = options.pop("exit_code", 0)
        return self.call("launch", self.launch_request(spec, **options), exit_code=exit_code)

    def follow(self, run_id: str, *, cursor: Cursor | None = None, **changes: Any) -> list[Frame]:
        request = FollowRequest(nonce=NONCE, root=str(self.root), run_id=run_id, cursor=cursor or Cursor(), **changes)
        return self.call("follow", request)

    def cancel(self, run_id: str, grace_s: float = 5.0) -> Any:
        (frame,) = self.call("cancel", CancelRequest(nonce=NONCE, root=str(self.root), run_id=run_id, grace_s=grace_s))
        return frame.answer  # type: ignore[union-attr]

    def status(self, run_id: str | None = None) -> Any:
        (frame,) = self.call("status", StatusRequest(nonce=NONCE, root=str(self.root), run_id=run_id))
        return frame.answer  # type: ignore[union-attr]

    def run(self, run_id: str) -> RunDir:
        return RunDir(self.root.resolve() / "runs" / run_id)

    def state(self, run_id: str) -> RunState:
        return from_json(RunState, self.run(run_id).state.read_text())

    def worker(self, name: str, body: str) -> str:
        """A program to name as the spec's `python`; it ignores the payload. `RUN` is the run directory."""
        script = self.root.parent / name
        prelude = "import os, signal, subprocess, sys, time\nfrom pathlib import Path\nRUN = Path(sys.argv[-1])\n"
        script.write_text(f"#!{sys.executable} -uIS\n{prelude}{body}")
        script.chmod(0o755)
        return str(script)

    def running(self, run_id: str) -> RunState:
        """Wait until the worker runs."""
        wait_for(lambda: self.run(run_id).state.exists() and self.state(run_id).phase != "starting")
        return self.state(run_id)

    def alive(self, run_id: str) -> tuple[int, ...]:
        return processes.marked(str(self.run(run_id).path))

    def clean_up(self) -> None:
        for path in (self.root / "runs").glob("*"):
            state = path / "state.json"
            with contextlib.suppress(OSError, SchemaError):
                found = from_json(RunState, state.read_bytes())
                if found.supervisor_pid and found.supervisor_start_ticks:
                    processes.send_signal(found.supervisor_pid, found.supervisor_start_ticks, signal.SIGKILL)
            while left := leftovers.alive(RunDir(path.resolve())):
                processes.signal_all(left, signal.SIGKILL)
                time.sleep(0.01)


def frames_in(stdout: bytes) -> list[Frame]:
    lead = f"{NONCE} "
    return [frame_from_json(line[len(lead) :]) for line in stdout.decode().splitlines() if line.startswith(lead)]


def of_kind(frames: list[Frame], kind: str) -> list[Any]:
    return [frame for frame in frames if frame.kind == kind]


def stream(frames: list[Frame], name: str, start: int = 0) -> bytes:
    """The bytes of one stream, which must come without a hole or an overlap."""
    data = b""
    for frame in frames:
        if isinstance(frame, ChunkFrame) and frame.stream == name:
            assert frame.offset == start + len(data)
            data += base64.b64decode(frame.data_base64)
    return data


def fill(path: Path, leave_bytes: int = 0) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - leave_bytes))


def is_alive(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def command_lines() -> list[bytes]:
    """Of every process that is alive all through the look."""
    lines = []
    for pid in processes.all_pids():
        with contextlib.suppress(OSError):
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return lines


def raw(request: Request, **changes: Any) -> bytes:
    """The request's JSON with top-level keys replaced, also by what no record would take."""
    return json.dumps({**json.loads(to_json(request)), **changes}).encode()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
