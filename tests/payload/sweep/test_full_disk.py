"""A sweep whose disk fills up: it goes on or ends as such, and nothing that was written is half of anything."""

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_payload.refusal import is_disk_full
from tests.payload.rig import Rig, fill, wait_for
from tests.payload.sweep.test_sweep import asked, ends, launch, sweep_of

ROOM_BYTES = 3_000_000


@pytest.fixture
def full_rig(tmp_path: Path) -> Iterator[Rig]:
    """A root on a file system of its own with not much room."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES},mode=0700", "tmpfs", str(mount)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"a small disk needs the right to mount: {made.stderr.strip()}")
    rig = Rig(mount / "root")
    yield rig
    rig.clean_up()
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def require_whole(rig: Rig) -> None:
    """Every record reads, every line is a line, every manifest tells of the files that are there."""
    for path in (rig.root / "runs").rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        if path.suffix == ".jsonl" and path.stat().st_size:
            assert path.read_bytes().endswith(b"\n"), path
            for line in path.read_bytes().splitlines():
                json.loads(line)
        assert not path.name.endswith(".tmp"), path
    for manifest in (rig.root / "runs").glob("*/result/manifest.json"):
        told = {file["name"]: file["size_bytes"] for file in json.loads(manifest.read_bytes())["files"]}
        assert all((manifest.parent / name).stat().st_size == size for name, size in told.items())


def test_a_result_that_does_not_fit_fails_its_unit_alone(full_rig: Rig) -> None:
    sizes = (10, 2 * ROOM_BYTES, 20)
    launch(full_rig, sweep_of(*({"result_bytes": size} for size in sizes)), follow=True)
    attempts, phase = asked(full_rig)
    assert (phase, ends(attempts)) == ("succeeded", [("p0", "measured"), ("p1", "failed"), ("p2", "measured")])
    assert attempts[1].failure is not None
    assert (attempts[1].failure.kind, "eagle3-remote gc" in str(attempts[1].failure.hint)) == ("disk_full", True)
    assert not (full_rig.run("s1.u1.0").result / "selftest.bin").exists()
    require_whole(full_rig)


@pytest.mark.infra
def test_two_results_in_a_row_that_do_not_fit_end_it(full_rig: Rig) -> None:
    sizes = (10, 2 * ROOM_BYTES, 2 * ROOM_BYTES, 20)
    launch(full_rig, sweep_of(*({"result_bytes": size} for size in sizes)), follow=True)
    attempts, phase = asked(full_rig)
    assert (phase, [one.phase for one in attempts]) == ("failed", ["succeeded", "failed", "failed"])
    failure = full_rig.state("s1").failure
    assert failure is not None
    assert failure.kind == "disk_full"


@pytest.mark.infra
@pytest.mark.parametrize("leave_bytes", [0, 30_000])
def test_a_disk_that_fills_up_ends_it_and_what_was_measured_is_whole(full_rig: Rig, leave_bytes: int) -> None:
    """Whether not one file more fits, or a few of a run's: the same."""
    launch(full_rig, sweep_of({}, {"duration_s": 1.0}, {}, {}))
    wait_for(full_rig.run("s1.u1.0").path.exists)
    full_rig.running("s1.u1.0")
    fill(full_rig.root / "filler", leave_bytes)
    full_rig.follow("s1")
    attempts, phase = asked(full_rig)
    failure = full_rig.state("s1").failure
    assert phase == "failed"
    assert failure is not None
    assert failure.kind == "disk_full"
    assert ends(attempts)[0] == ("p0", "measured")
    assert "lost" not in {one.phase for one in attempts}
    require_whole(full_rig)
    (full_rig.root / "filler").unlink()
    left = [{}, {}, {}]
    launch(full_rig, sweep_of(*left), follow=True, run_id="s2")
    assert {end for _, end in ends(asked(full_rig, "s2")[0])} == {"measured"}


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    """As a full disk cuts a write short, so does a limit on the size of files."""
    code = (
        "import resource, signal, sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\n"
        "from remote_payload.event_log import EventLog; from remote_payload.schema import Event\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); log = EventLog(Path(sys.argv[1]))\n"
        "log.report(Event(time_unix_s=1.0, kind='note', name='whole'))\n"
        "size = Path(sys.argv[1]).stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))\n"
        "try: log.report(Event(time_unix_s=2.0, kind='note', name='cut'))\n"
        "except OSError: print('said so')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "log.report(Event(time_unix_s=3.0, kind='note', name='next'))\n"
    )
    path, checkout = tmp_path / "events.jsonl", Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(checkout)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "said so\n"
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["whole", "next"]


def test_a_quota_is_a_full_disk() -> None:
    assert is_disk_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
