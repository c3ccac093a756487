"""Shares of a sweep over several hosts, told to a host: two that have the same points do not both begin."""

import dataclasses
import fcntl
import json
import threading
from pathlib import Path

import pytest

from remote_payload.frames import Send
from remote_payload.place import place_of
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import (
    EndFrame,
    Frame,
    RunSpec,
    RunState,
    SelftestJob,
    SweepJob,
    SweepPoint,
    SweepUnit,
    to_json,
)
from remote_payload.schema.group import TellFrame, TellRequest, ToldShare
from remote_payload.schema.sweep import SweepShare
from remote_payload.sweep import group_ledger
from tests.payload.rig import NONCE


def job_of(*points: str, baseline: str | None = None, resumes: str | None = None) -> SweepJob:
    """A share that measures these, each of them its own configuration; ids as another host has them do not matter."""
    every = [*points, *([] if baseline is None else [baseline])]
    return SweepJob(
        base_json=to_json(SelftestJob()),
        units=tuple(
            SweepUnit(unit_id=f"u{n}", block=0, changes_json="{}", points=(f"p{n}",)) for n in range(len(every))
        ),
        points=tuple(
            SweepPoint(point_id=f"p{n}", changes_json=json.dumps({"result_bytes": one}), is_baseline=one == baseline)
            for n, one in enumerate(every)
        ),
        resumes=resumes,
        share=SweepShare(group_id="n", number=1, hosts=("a", "b"), host_class="x"),
    )


def share(run_id: str, job: SweepJob, *, over: tuple[str, ...] = (), never_begun: tuple[str, ...] = ()) -> ToldShare:
    return ToldShare(
        group_id="n",
        run_id=run_id,
        host=f"host-of-{run_id}",
        destination="u@h:22 ~/x",
        job_json=to_json(job),
        over=over,
        never_begun=never_begun,
        told_by="me@laptop",
    )


def tell(root: Path, *shares: ToldShare, **more: tuple[str, ...]) -> TellFrame:
    sent: list[Frame] = []
    send: Send = sent.append
    group_ledger.tell(TellRequest(nonce=NONCE, root=str(root), group_id="n", shares=shares, **more), send)
    assert isinstance(sent[1], EndFrame)
    assert isinstance(sent[0], TellFrame)
    return sent[0]


def run_of(root: Path, run_id: str, job: SweepJob, phase: str | None) -> RunSpec:
    """A run of this host; it has begun unless `phase` is None."""
    spec = RunSpec(
        run_id=run_id,
        job_kind="sweep",
        job_json=to_json(job),
        python="python3",
        payload_sha256="p",
        environment={},
        launched_by="somebody@laptop",
        created_unix_s=1.0,
    )
    run = RunDir(root / "runs" / run_id)
    run.path.mkdir(parents=True)
    run.spec.write_text(to_json(spec))
    if phase is not None:
        run.state.write_text(to_json(RunState(run_id=run_id, sequence=1, phase=phase)))  # type: ignore[arg-type]
    return spec


FIRST = (share("n.h1", job_of("1", "2", baseline="0")), share("n.h2", job_of("3", "4", baseline="0")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tell(tmp_path, *FIRST)
    run_of(tmp_path, "n.h1", job_of("1", "2", baseline="0"), "succeeded")
    return tmp_path


def test_every_host_is_told_of_all_shares_and_says_which_are_its_own(root: Path) -> None:
    found = tell(root)
    assert [one.run_id for one in found.shares] == ["n.h1", "n.h2"]
    assert found.here == ("n.h1",)
    assert all(one.told_unix_s > 1e9 for one in found.shares)
    brief = tell(root, known=("n.h1",))
    assert ([one.run_id for one in brief.shares], brief.here) == (["n.h2"], ("n.h1",))
    assert tell(root, *FIRST).shares == found.shares  # told twice, as after a broken link
    assert (root / "groups/n.jsonl").stat().st_mode & 0o777 == 0o600


def test_of_two_laptops_that_move_the_same_the_second_is_refused(root: Path) -> None:
    over = ("n.h1", "n.h2")
    tell(root, share("n.h3-aa", job_of("3", "4", resumes="n.h2"), over=over))
    for points in (("4",), ("3", "4")):
        with pytest.raises(Refusal, match=r"share `n.h3-aa` on host-of-n.h3-aa \(u@h:22\) has the same points; me@lap"):
            tell(root, share("n.h3-bb", job_of(*points, resumes="n.h2"), over=over))
    assert len(tell(root).shares) == 3
    tell(root, share("n.h3-cc", job_of("1", resumes="n.h1"), over=over))  # other points
    tell(root, share("n.h4-dd", job_of("4"), over=(*over, "n.h3-aa")))  # what became of the third is known to this one


def test_plain_decoding_is_each_hosts_own(root: Path) -> None:
    tell(root, share("n.h3-aa", job_of("3", baseline="0"), over=("n.h2",)))
    tell(root, share("n.h3-bb", job_of("4", baseline="0"), over=("n.h2",)))


def test_what_was_taken_back_is_free_again(root: Path) -> None:
    tell(root, share("n.h3-aa", job_of("3"), over=("n.h2",)))
    tell(root, withdrawn=("n.h3-aa",))
    assert [one.run_id for one in tell(root, share("n.h3-bb", job_of("3"), over=("n.h2",))).shares][-1] == "n.h3-bb"


def test_a_share_that_was_held_for_never_begun_does_not_begin_later(root: Path) -> None:
    moved = job_of("3", resumes="n.h2")
    tell(root, share("n.h3-aa", moved, over=("n.h2",)))
    spec = run_of(root, "n.h3-aa", moved, None)
    # Seen nowhere a moment ago, and here it is.
    second = share("n.h4-bb", job_of("3", resumes="n.h2"), over=("n.h2", "n.h3-aa"), never_begun=("n.h3-aa",))
    with pytest.raises(Refusal, match=r"share `n.h3-aa` began here, and has the same"):
        tell(root, second)
    RunDir(root / "runs/n.h3-aa").spec.unlink()
    tell(root, second)
    with pytest.raises(Refusal, match=r"share `n.h4-bb` on .* has the same points"):
        group_ledger.enter(moved, spec, root / "runs")


def test_what_runs_here_is_not_moved_whoever_says_that_it_is_over(root: Path) -> None:
    run_of(root, "n.h2", job_of("3", "4", baseline="0"), None)
    with pytest.raises(Refusal, match=r"sweep `n.h2` still measures"):
        tell(root, share("n.h3-aa", job_of("4"), over=("n.h1", "n.h2")))


def test_one_share_gone_on_with_by_itself_counts_as_well(root: Path) -> None:
    alone = job_of("2", resumes="n.h1")
    group_ledger.enter(alone, run_of(root, "sweep-x", alone, "succeeded"), root / "runs")
    with pytest.raises(Refusal, match=r"share `sweep-x` here has the same points; somebody@laptop"):
        tell(root, share("n.h3-aa", job_of("2"), over=("n.h1", "n.h2")))
    further = job_of("2", resumes="sweep-x")
    group_ledger.enter(further, run_of(root, "sweep-y", further, "succeeded"), root / "runs")  # knows n.h1 by sweep-x
    tell(root, share("n.h3-aa", job_of("2"), over=("sweep-y",)))


def test_a_confirmation_measures_the_points_afresh(root: Path) -> None:
    again = dataclasses.replace(job_of("1"), confirms="n.h1")
    group_ledger.enter(again, run_of(root, "sweep-c", again, None), root / "runs")
    assert len(tell(root).shares) == 2


def test_a_new_sweep_by_the_name_of_one_that_is_gone_begins_anew(root: Path) -> None:
    other = (share("n.h1", job_of("1", "3")), share("n.h2", job_of("2")))
    with pytest.raises(Refusal, match=r"n.h"):
        tell(root, *other)
    RunDir(root / "runs/n.h1").spec.unlink()
    (root / "runs/n.h1/state.json").unlink()
    (root / "runs/n.h1").rmdir()
    assert [one.job_json for one in tell(root, *other).shares] == [one.job_json for one in other]


def test_what_gc_took_away_has_begun_all_the_same(root: Path) -> None:
    spec = run_of(root, "n.h2", job_of("3", "4", baseline="0"), "succeeded")
    group_ledger.note_gone(spec, root / "runs")
    assert tell(root).gone == ()  # it is here yet
    RunDir(root / "runs/n.h2").spec.unlink()
    assert tell(root).gone == ("n.h2",)
    with pytest.raises(Refusal, match=r"share `n.h2` began here, and has the same points"):
        tell(root, share("n.h3-aa", job_of("3"), over=("n.h1", "n.h2"), never_begun=("n.h2",)))
    other = dataclasses.replace(spec, job_json=to_json(dataclasses.replace(job_of("1"), share=None)))
    group_ledger.note_gone(other, root / "runs")  # of one host alone
    assert tell(root).gone == ("n.h2",)


def test_half_a_line_that_a_power_cut_left_is_passed_over(root: Path) -> None:
    path = root / "groups/n.jsonl"
    with path.open("a") as file:
        file.write(path.read_text()[:50])
    tell(root, share("n.h3-aa", job_of("3"), over=("n.h2",)))
    assert [one.run_id for one in tell(root).shares] == ["n.h1", "n.h2", "n.h3-aa"]


def test_of_many_at_once_one_is_taken_in(root: Path) -> None:
    over, ends = ("n.h2",), []

    def one(number: int) -> None:
        try:
            tell(root, share(f"n.h3-{number}", job_of("3"), over=over))
            ends.append(True)
        except Refusal:
            ends.append(False)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == [False] * 7 + [True]


def test_a_root_has_one_word_and_another_root_another(tmp_path: Path) -> None:
    words: list[str | None] = []
    threads = [threading.Thread(target=lambda: words.append(place_of(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*words}) == 1
    assert tell(tmp_path).place == words[0]
    (tmp_path / "place").write_text("")  # a power cut
    renewed = place_of(tmp_path)
    assert renewed not in (None, words[0])
    (tmp_path / "other").mkdir()
    assert place_of(tmp_path / "other") not in (None, renewed)
    assert place_of(tmp_path / "nowhere") is None


def test_what_was_told_goes_only_while_nobody_tells_more(root: Path) -> None:
    path = root / "groups/n.jsonl"
    before_s = path.stat().st_mtime
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        late = threading.Thread(target=lambda: tell(root, share("n.h3-aa", job_of("3"), over=("n.h2",))))
        late.start()  # it may wait for the lock of a file that goes
        path.unlink()
    late.join()
    assert [one.run_id for one in tell(root).shares] == ["n.h3-aa"]
    with pytest.raises(Refusal, match="somebody goes on with it just now: n"):
        group_ledger.take_away(root, "n", before_s - 1)
    group_ledger.take_away(root, "n", path.stat().st_mtime)
    assert not path.exists()
