"""Leases and queue between real processes: the kernel frees what a killed holder had, and the first is served first."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_payload.gpus.leases import Leases, lease_holders
from remote_payload.gpus.shared_lock import SharedLock, shared_folder
from remote_payload.gpus.tickets import queue_of
from remote_payload.schema.waiting import Holder

HOLDER = """
import os, sys, time
from pathlib import Path
from remote_payload.gpus.leases import Leases
from remote_payload.schema.waiting import Holder
holder = Holder(run_id=sys.argv[2], user="ann", uid=os.getuid(), pid=1, since_unix_s=1.0, gpus=1)
leases = Leases(Path(sys.argv[1]), holder)
if sys.argv[3:]:
    assert leases.take(sys.argv[3:], len(sys.argv[3:])) is None
else:
    leases.queue.draw()
print("ready", flush=True)
time.sleep(600)
"""


def holder(run_id: str) -> Holder:
    return Holder(run_id=run_id, user="ann", uid=os.getuid(), pid=os.getpid(), since_unix_s=1.0, gpus=1)


class Others:
    """Other processes that hold leases or stand in the queue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, run_id: str, *uuids: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", HOLDER, str(self.folder), run_id, *uuids]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return child

    def kill(self, child: "subprocess.Popen[bytes]") -> None:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdout:
            child.stdout.close()


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Others]:
    made = Others(tmp_path / "leases")
    yield made
    for child in made.children:
        made.kill(child)


def test_a_lease_is_held_until_its_holder_is_gone_however_it_went(others: Others) -> None:
    first = others.start("one", "GPU-0", "GPU-1")
    ours = Leases(others.folder, holder("ours"))
    told = ours.take(["GPU-0", "GPU-1", "GPU-2"], 2)
    assert told is not None
    assert {uuid: who.run_id for uuid, who in told.items() if who} == {"GPU-0": "one", "GPU-1": "one"}
    assert list(ours.held) == []
    assert set(lease_holders(others.folder, ["GPU-0", "GPU-1", "GPU-2", "GPU-9"])) == {"GPU-0", "GPU-1"}
    others.kill(first)
    assert ours.take(["GPU-0", "GPU-1", "GPU-2"], 2) is None
    assert list(ours.held) == ["GPU-0", "GPU-1"]
    ours.close()
    assert lease_holders(others.folder, ["GPU-0", "GPU-1"]) == {}


def test_nothing_is_held_when_there_are_too_few(tmp_path: Path) -> None:
    ours, other = (Leases(tmp_path / "leases", holder(name)) for name in ("ours", "other"))
    assert ours.take(["GPU-0"], 2) == {}
    assert other.take(["GPU-0"], 1) is None


def test_who_came_first_is_first_and_a_killed_one_loses_its_place(others: Others) -> None:
    first, second = others.start("one"), others.start("two")
    ours = Leases(others.folder, holder("ours"))
    assert [who.run_id for who in ours.queue.before() if who] == ["one", "two"]
    ours.queue.draw()
    last = others.start("last")
    assert [who.run_id for who in ours.queue.before() if who] == ["one", "two"]
    assert [one.holder.run_id for one in queue_of(others.folder).places if one.holder] == ["one", "two", "ours", "last"]
    others.kill(first)
    assert [who.run_id for who in ours.queue.before() if who] == ["two"]
    others.kill(second)
    assert ours.queue.before() == ()
    others.kill(last)
    ours.queue.leave()
    assert queue_of(others.folder).places == ()


def test_a_dead_ticket_is_cleared_by_the_next_who_looks(others: Others) -> None:
    others.kill(others.start("one"))
    ours = Leases(others.folder, holder("ours"))
    assert ours.queue.before() == ()
    assert list((others.folder / "queue").iterdir()) == []


def test_looking_takes_no_lease_away(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    ours = Leases(folder, holder("ours"))
    assert ours.take(["GPU-0"], 1) is None
    for _ in range(20):
        assert list(lease_holders(folder, ["GPU-0"])) == ["GPU-0"]
    assert Leases(folder, holder("other")).take(["GPU-0"], 1) is not None


def test_the_folder_and_its_files_are_for_all_users_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Leases(tmp_path / "leases", holder("ours")).take(["GPU-0"], 1)
    finally:
        os.umask(before)
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in (tmp_path / "leases").iterdir()}
    assert modes == {"queue": "0o1777", "GPU-0.lease": "0o666"}
    assert oct((tmp_path / "leases").stat().st_mode & 0o7777) == "0o1777"


def test_planted_files_are_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = shared_folder(tmp_path / "leases")
    (folder / "link.lease").symlink_to(victim)
    os.mkfifo(folder / "fifo.lease")
    for name in ("link", "fifo"):
        with pytest.raises(OSError, match=r"plain file|symbolic links|Too many levels"):
            SharedLock(folder / f"{name}.lease")
    assert victim.read_text() == "precious"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="mode 1777"):
        shared_folder(tmp_path / "dangling")


def test_a_file_of_several_names_is_locked_and_never_written(tmp_path: Path) -> None:
    """Anybody can make another name of a lock; nobody must be locked out by that, nor a planted file be overwritten."""
    folder = shared_folder(tmp_path / "leases")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o640)
    os.link(victim, folder / "GPU-0.lease")
    ours = Leases(folder, holder("ours"))
    ours.queue.draw()
    os.link(folder / "queue.lock", tmp_path / "another name")
    assert ours.queue.before() == ()
    assert ours.take(["GPU-0"], 1) is None
    assert lease_holders(folder, ["GPU-0"]) == {"GPU-0": None}  # held, by somebody who did not sign
    assert Leases(folder, holder("other")).take(["GPU-0"], 1) is not None
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("precious", 0o640)


def test_what_is_in_use_is_seen_to_be(tmp_path: Path) -> None:
    """Those who clean temporary folders go by times, of weeks and months."""
    folder = tmp_path / "leases"
    ours, waiting = Leases(folder, holder("ours")), Leases(folder, holder("waiting"))
    ours.take(["GPU-0"], 1)
    waiting.queue.draw()
    used = [folder, folder / "queue", folder / "GPU-0.lease", *(folder / "queue").iterdir()]
    for path in used:
        os.utime(path, (1.0, 1.0))
    ours.touch()
    waiting.touch()
    assert [path for path in used if path.stat().st_mtime < 1e9] == []


def test_a_lock_whose_file_was_cleaned_away_is_not_believed(tmp_path: Path) -> None:
    ours = SharedLock(tmp_path / "GPU-0.lease")
    (tmp_path / "GPU-0.lease").unlink()
    assert not ours.try_lock()
    other = SharedLock(tmp_path / "GPU-0.lease")
    assert other.try_lock()
    ours.close()
    other.close()


@pytest.mark.parametrize("uuid", ["../GPU-0", "", "GPU 0", "a" * 200])
def test_a_name_that_is_no_uuid(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(ValueError, match="not the UUID"):
        Leases(tmp_path / "leases", holder("ours")).take([uuid], 1)


def test_a_planted_link_costs_its_own_device_alone(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases", holder("r1"))
    (tmp_path / "leases" / "GPU-a.lease").symlink_to("/etc/passwd")
    assert leases.take(["GPU-a"], 1) == {}
    assert "GPU-a.lease" in str(leases.unusable["GPU-a"])
    assert leases.take(["GPU-a", "GPU-b"], 1) is None
    assert leases.held == ("GPU-b",)
    (tmp_path / "leases" / "GPU-c.lease").symlink_to(tmp_path / "nowhere")
    problems: dict[str, OSError] = {}
    told = lease_holders(tmp_path / "leases", ["GPU-a", "GPU-b", "GPU-c"], problems)
    assert [uuid for uuid, who in told.items() if who and who.run_id == "r1"] == ["GPU-b"]
    assert list(problems) == ["GPU-a", "GPU-c"]
    leases.close()
