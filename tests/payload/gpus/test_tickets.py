"""The queue against files that somebody laid into it: all users of a host may write there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remote_payload.gpus.shared_lock import SharedLock, shared_folder
from remote_payload.gpus.tickets import LOCK, Queue, queue_of
from remote_payload.schema.waiting import Holder


def queue(folder: Path, run_id: str) -> Queue:
    holder = Holder(run_id=run_id, user="ann", uid=os.getuid(), pid=os.getpid(), since_unix_s=1.0, gpus=1)
    return Queue(shared_folder(folder), holder)


def runs(places: tuple[Holder | None, ...]) -> list[str | None]:
    return [None if who is None else who.run_id for who in places]


@contextmanager
def planted(folder: Path, name: str, *, claims: str | None = None) -> Iterator[SharedLock]:
    lock = SharedLock(folder / "queue" / name)
    assert lock.try_lock()
    if claims is not None:
        lock.sign(Holder(run_id=claims, user="ann", uid=os.getuid(), pid=1, since_unix_s=1.0, gpus=1))
    yield lock
    lock.close()


def test_a_ticket_that_nobody_gave_a_number_is_passed_over_and_told(tmp_path: Path) -> None:
    first, second = queue(tmp_path, "first"), queue(tmp_path, "second")
    name = f"{0:020d}-{os.getuid()}-1"
    foreseen = f"{1:020d}-{os.getuid()}-{os.getpid()}"
    with planted(tmp_path, name, claims="planted"), planted(tmp_path, foreseen):
        assert first.before() == ()  # also to a run that does not queue up
        first.draw()
        second.draw()
        assert (first.before(), runs(second.before())) == ((), ["first"])
        words = [f"'{one}', a file of uid {os.getuid()}, has a number that was never given" for one in (name, foreseen)]
        assert second.passed_over == tuple(words)
        told = queue_of(tmp_path)
        assert [place.holder.run_id for place in told.places if place.holder] == ["first", "second"]
        assert told.passed_over == second.passed_over


def test_numbers_go_up_though_the_queue_was_empty(tmp_path: Path) -> None:
    ours = queue(tmp_path, "ours")
    numbers = []
    for _ in range(3):
        ours.draw()
        numbers += [path.name.partition("-")[0] for path in (tmp_path / "queue").iterdir()]
        ours.leave()
    assert [int(number) for number in numbers] == [1, 2, 3]


def test_a_given_number_is_its_owners_and_its_files_alone(tmp_path: Path) -> None:
    ours, other = queue(tmp_path, "ours"), queue(tmp_path, "other")
    ours.draw()
    name = next((tmp_path / "queue").iterdir()).name
    ours.leave()
    assert other.before() == ()
    with planted(tmp_path, name), planted(tmp_path, f"{1:020d}-{os.getuid() + 1}-1"), planted(tmp_path, "x\033[2J"):
        assert other.before() == ()
    uid = os.getuid()
    assert set(other.passed_over) == {
        f"'{1:020d}-{uid + 1}-1', a file of uid {uid}, is no ticket",
        f"'{name}', a file of uid {uid}, has a number that was never given",
        f"'x\\x1b[2J', a file of uid {uid}, is no ticket",
    }


def test_a_forged_register_puts_nobody_before_those_who_wait(tmp_path: Path) -> None:
    ours, later = queue(tmp_path, "ours"), queue(tmp_path, "later")
    ours.draw()
    name = f"{0:020d}-{os.getuid()}-1"
    with planted(tmp_path, name, claims="planted") as lock:
        (tmp_path / LOCK).write_text(f"1\n{name} {lock.inode}\n")
        assert ours.before() == ()  # and it writes itself in again
        later.draw()
        assert runs(later.before()) == ["planted", "ours"]


def test_a_spoilt_register_loses_no_place(tmp_path: Path) -> None:
    first, second, third = (queue(tmp_path, name) for name in ("first", "second", "third"))
    first.draw()
    second.draw()
    (tmp_path / LOCK).write_bytes(b"\xff" * 10 + b"9" * 5000 + b"\n" * 3)
    assert runs(second.before()) == ["first"]
    assert first.before() == ()
    third.draw()
    assert runs(third.before()) == ["first", "second"]


def test_with_a_second_name_of_the_lock_the_queue_goes_on(tmp_path: Path) -> None:
    """Anybody can give it one; then nothing is written into it."""
    first, second = queue(tmp_path, "first"), queue(tmp_path, "second")
    (tmp_path / LOCK).touch()
    os.link(tmp_path / LOCK, tmp_path / "another name")
    first.draw()
    second.draw()
    assert (first.before(), (tmp_path / LOCK).read_text()) == ((), "")
    assert runs(second.before()) == ["first"]


def test_who_signs_for_another_user_is_shown_as_nobody(tmp_path: Path) -> None:
    liar = Queue(
        shared_folder(tmp_path),
        Holder(run_id="r", user="root", uid=os.getuid() + 1, pid=1, since_unix_s=1.0, gpus=1),
    )
    liar.draw()
    assert [place.holder for place in queue_of(tmp_path).places] == [None]
