"""The kernel's out-of-memory killer, for real, in a control group of our own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.payload.rig import Rig, of_kind, wait_for

LIMIT_BYTES = 64 << 20


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory control group of 64 MiB, v2 or v1; takes root and a writable hierarchy."""
    v2, v1 = Path("/sys/fs/cgroup/cgroup.controllers"), Path("/sys/fs/cgroup/memory")
    try:
        if v2.exists() and "memory" in v2.read_text().split():
            group = v2.parent / "eagle3-test-oom"
            group.mkdir(exist_ok=True)
            (group / "memory.max").write_text(str(LIMIT_BYTES))
        else:
            group = v1 / "eagle3-test-oom"
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
    except OSError as error:
        pytest.skip(f"a control group of our own needs the right to make one: {error}")
    yield group
    wait_for(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_a_worker_killed_for_memory_is_told_from_one_killed_by_somebody(rig: Rig, small_group: Path) -> None:
    body = "time.sleep(0.1)\nblocks = []\nwhile True: blocks.append(bytearray(b'x') * (1 << 20))"
    spec = rig.spec("r1", python=rig.worker("w", body))
    enter = f'echo $$ > {small_group}/cgroup.procs; exec "$@"'
    shell = rig.root.parent / "python-in-group"
    shell.write_text(f'#!/bin/sh\nset -- {rig.python} "$@"\n{enter}\n')
    shell.chmod(0o755)
    rig.python = str(shell)
    final = of_kind(rig.launch(spec, follow=True), "state")[-1].state
    assert (final.phase, final.signal, final.failure.kind) == ("out_of_memory", "SIGKILL", "machine")
