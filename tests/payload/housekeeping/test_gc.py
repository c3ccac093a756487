"""What `gc` takes away and what it never touches, by the built payload on real folders."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_payload.housekeeping.inventory import runs_below
from remote_payload.housekeeping.living import Living
from remote_payload.rundir import RunDir
from remote_payload.schema import SelftestJob
from remote_payload.schema.housekeeping import HomeGroup
from remote_payload.schema.waiting import Waiting
from tests.payload.housekeeping.made_root import DAY_S, MadeRoot, allocated, going
from tests.payload.rig import Rig, fill, frames_in, of_kind, wait_for


@pytest.fixture
def made(rig: Rig) -> MadeRoot:
    return MadeRoot(rig, time.time())


def test_a_dry_run_says_what_goes_and_frees_and_takes_nothing(made: MadeRoot) -> None:
    old = made.run("old", age_days=31, size_bytes=100_000)
    made.run("young", age_days=29)
    items, totals = made.gc(older_than_s=30 * DAY_S)
    assert going(items) == {"old"}
    assert (items["old"].reason, items["young"].reason) == ("ended too long ago", "within the limits")
    assert items["old"].frees_bytes == items["old"].size_bytes == allocated(old.path) > 100_000
    assert items["old"].ended_unix_s == pytest.approx(made.now_s - 31 * DAY_S)
    assert totals.removed_bytes == 0
    assert totals.before_bytes >= items["old"].size_bytes + items["young"].size_bytes
    assert made.names() == {"old", "young"}
    assert not (made.rig.root / "trash").exists()


def test_what_goes_is_gone_and_nothing_else(made: MadeRoot) -> None:
    made.run("old", size_bytes=50_000)
    made.run("young", age_days=1)
    items, totals = made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (items["old"].removed, items["young"].removed) == (True, False)
    assert totals.removed_bytes == items["old"].frees_bytes > 50_000
    assert totals.disk_free_bytes is not None
    assert made.names() == {"young"}
    assert list((made.rig.root / "trash").iterdir()) == []


def test_without_a_limit_no_run_goes(made: MadeRoot) -> None:
    made.run("old")
    items, _ = made.gc(apply=True)
    assert (going(items), items["old"].reason) == (set(), "no limit was given")
    assert made.names() == {"old"}


def test_the_newest_stay_and_all_others_go(made: MadeRoot) -> None:
    for days in (1, 2, 3, 4):
        made.run(f"r{days}", age_days=days)
    items, _ = made.gc(keep_newest=2)
    assert going(items) == {"r3", "r4"}
    assert items["r1"].reason == "among the newest 2"
    assert going(made.gc(keep_newest=3, older_than_s=0.5 * DAY_S)[0]) == {"r4"}


def test_the_oldest_go_until_the_size_fits(made: MadeRoot) -> None:
    for days in (1, 2, 3):
        made.run(f"r{days}", age_days=days, size_bytes=1_000_000)
    items, totals = made.gc(max_bytes=10**9)
    assert going(items) == set()
    items, _ = made.gc(max_bytes=totals.before_bytes - 500_000)
    assert going(items) == {"r3"}
    items, _ = made.gc(apply=True, max_bytes=totals.before_bytes - 1_500_000)
    assert going(items) == {"r2", "r3"}
    assert made.names() == {"r1"}


def test_what_lives_or_cannot_be_told_stays_whatever_is_asked(made: MadeRoot) -> None:
    rig = made.rig
    rig.launch(rig.spec("going", SelftestJob(duration_s=600)))
    rig.running("going")
    damaged, claimed = made.run("damaged"), made.run("claimed")
    damaged.state.write_text("{}")
    claimed.spec.unlink()
    held = made.run("held")
    marked = made.run("marked")
    child = subprocess.Popen(["sleep", "600"], env={"EAGLE3_RUN_DIR": str(marked.path)})
    with held.heartbeat.open("w") as beat:
        fcntl.flock(beat, fcntl.LOCK_EX)
        items, _ = made.gc(apply=True, older_than_s=0.0, uncollected=True)
    child.kill()
    child.wait()
    words = {name: items[name].reason for name in ("going", "damaged", "claimed", "held", "marked")}
    alive = "processes of it are alive"
    assert words == {
        "going": "is not over",
        "damaged": "cannot be read",
        "claimed": "claimed and never started",
        "held": alive,
        "marked": alive,
    }
    assert made.names() == set(words)
    assert rig.sha256 not in going(items)


def test_what_a_run_on_its_way_needs_stays(made: MadeRoot) -> None:
    for name in ("awaited", "resumed", "free"):
        made.run(name)
    rig = made.rig
    rig.launch(rig.spec("waiter", waiting=Waiting(start_unix_s=time.time() + 600, after=("awaited",))))
    items, _ = made.gc(older_than_s=0.0)
    assert going(items) == {"resumed", "free"}
    assert (items["awaited"].reason, items["awaited"].detail) == ("a run that is not over needs it", "waiter")
    rig.cancel("waiter")
    assert "awaited" in going(made.gc(older_than_s=0.0)[0])


def test_a_run_whose_rows_another_takes_over_stays(made: MadeRoot) -> None:
    rig = made.rig
    made.run("half")
    python = rig.worker("slow", "time.sleep(600)")
    job = '{"kind": "standalone", "draft": "/d", "rows": "/r", "resume": "half"}'
    rig.launch(rig.spec("whole", job_kind="standalone", job_json=job, python=python))
    rig.running("whole")
    items, _ = made.gc(older_than_s=0.0)
    assert (items["half"].goes, items["half"].detail) == (False, "whole")


def test_what_is_not_at_home_stays_unless_it_is_asked_for(made: MadeRoot) -> None:
    made.run("elsewhere", at_home=False)
    made.run("home")
    partly = made.run("partly", phase="failed", at_home=False)
    made.home.append(type(made.home[0])(run_id="partly", created_unix_s=1.0, whole=False))
    made.run("namesake", at_home=False)
    made.home.append(type(made.home[0])(run_id="namesake", created_unix_s=2.0, whole=True))
    items, _ = made.gc(older_than_s=0.0)
    assert going(items) == {"home"}
    assert "--uncollected" in items["elsewhere"].reason
    partly.manifest.unlink()  # it left nothing that could be brought home
    assert going(made.gc(older_than_s=0.0)[0]) == {"home", "partly"}
    assert going(made.gc(older_than_s=0.0, uncollected=True)[0]) == {"elsewhere", "home", "partly", "namesake"}


def test_a_sweep_goes_whole_or_not_at_all(made: MadeRoot) -> None:
    made.sweep("night", 3)
    made.sweep("kept", 2)
    made.home = [one for one in made.home if one.run_id != "kept.u0001.0"]
    items, _ = made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (items["night"].kind, items["night"].runs, items["night"].removed) == ("sweep", 4, True)
    assert (items["kept"].goes, items["kept"].detail) == (False, "its unit kept.u0001.0")
    assert made.names() == {"kept", "kept.u0000.0", "kept.u0001.0"}


def test_a_share_that_goes_is_not_one_that_never_began(made: MadeRoot) -> None:
    made.sweep("night.h1", 1, job={"share": {"group_id": "night", "number": 1, "hosts": ["a"], "host_class": "x"}})
    ledger = made.rig.root / "groups/night.jsonl"
    ledger.parent.mkdir()
    ledger.touch()
    made.gc(older_than_s=30 * DAY_S)
    assert ledger.read_text() == ""
    made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (made.names(), '"gone":"night.h1"' in ledger.read_text()) == (set(), True)
    made.groups = (HomeGroup(group_id="night", is_over=True),)
    assert "night" not in going(made.gc(older_than_s=30 * DAY_S)[0])  # so much later only


def test_what_was_told_of_a_group_goes_by_its_age_once_the_group_is_over(made: MadeRoot) -> None:
    def told(group_id: str, age_days: float = 100) -> Path:
        ledger = made.rig.root / f"groups/{group_id}.jsonl"
        ledger.parent.mkdir(exist_ok=True)
        ledger.write_text("{}\n")
        os.utime(ledger, (made.now_s - age_days * DAY_S,) * 2)
        return ledger

    for group_id in ("over", "onward", "elsewhere", "again"):
        told(group_id)
    told("young", age_days=1)
    job = {"share": {"group_id": "again", "number": 1, "hosts": ["a"], "host_class": "x"}, "resumes": "again.h1"}
    made.sweep("alone", 0, job=job, age_days=1)
    names = ("over", "onward", "again", "young")
    made.groups = tuple(HomeGroup(group_id=name, is_over=name != "onward") for name in names)
    items, _ = made.gc(older_than_s=30 * DAY_S)
    assert (going(items), items["over"].kind, items["over"].runs) == ({"over"}, "group", 0)
    assert items["again"].detail == "alone"
    assert "elsewhere" in going(made.gc(older_than_s=30 * DAY_S, uncollected=True)[0])
    assert "over" not in going(made.gc(older_than_s=0.0, kinds=["run"])[0])
    assert going(made.gc(keep_newest=1)[0]) == {"over", "young"}  # a group is none of the newest
    items, totals = made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (items["over"].removed, totals.removed_bytes > 0) == (True, True)
    assert {path.stem for path in (made.rig.root / "groups").iterdir()} == {"onward", "elsewhere", "again", "young"}


def test_a_unit_that_another_sweep_goes_on_with_stays(made: MadeRoot) -> None:
    made.sweep("night", 3)
    unit = {"unit_id": "u0000", "block": 0, "changes_json": "{}", "points": ["p"], "adopt": "night.u0001.0"}
    done = {"point_id": "q", "block": 0, "run_id": "night.u0002.0"}
    made.sweep("again", 1, job={"units": [unit], "done": [done]}, age_days=1)
    items, _ = made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (items["night"].runs, items["night"].removed) == (2, True)
    assert items["night.u0001.0"].detail == items["night.u0002.0"].detail == "again"
    assert made.names() == {"night.u0001.0", "night.u0002.0", "again", "again.u0000.0"}
    made.gc(apply=True, older_than_s=0.5 * DAY_S)  # nobody needs them when `again` goes
    assert made.names() == set()


def test_a_sweep_that_another_goes_on_with_stays(made: MadeRoot) -> None:
    """Its folder says who goes on with it: gone, a second one would measure the same points."""
    made.sweep("night", 2)
    made.sweep("again", 1, job={"resumes": "night", "units": []}, age_days=1)
    items, _ = made.gc(apply=True, older_than_s=30 * DAY_S)
    assert (items["night"].goes, items["night"].detail) == (False, "again")
    assert {"night", "night.u0000.0", "night.u0001.0"} <= made.names()
    made.gc(apply=True, older_than_s=0.5 * DAY_S)
    assert made.names() == set()


def test_only_the_kinds_that_are_asked_for(made: MadeRoot) -> None:
    made.sweep("night", 1)
    made.run("r1")
    assert going(made.gc(older_than_s=0.0, kinds=("run",))[0]) == {"r1"}
    assert going(made.gc(older_than_s=0.0, kinds=("sweep",))[0]) == {"night"}


def test_payloads_that_nobody_needs_go_with_what_was_compiled(made: MadeRoot) -> None:
    payloads = made.rig.root / "payloads"
    (made.rig.root / "schedules" / "nightly").mkdir(parents=True)
    hashes = {name: (name * 64)[:64] for name in "abcdef"}
    for name, sha in hashes.items():
        (payloads / f"{sha}.pyz").write_bytes(b"zip")
        (payloads / f"{sha}.cpython-312").mkdir()
        for path in (payloads / f"{sha}.pyz", payloads / f"{sha}.cpython-312"):
            os.utime(path, (made.now_s - DAY_S,) * 2)
        assert name in sha
    os.utime(payloads / f"{hashes['b']}.pyz")  # shipped this moment, by another laptop
    (made.rig.root / "schedules" / "nightly" / "spec").write_text(f"run {hashes['c']}.pyz\n")
    user = subprocess.Popen(["sh", "-c", "sleep 600; :", f"/x/{hashes['d']}.pyz"])
    broken = made.run("broken")
    broken.state.unlink()
    broken.spec.write_text(f'{{"payload_sha256": "{hashes["e"]}", ')
    items, _ = made.gc(apply=True)
    user.kill()
    user.wait()
    assert going(items) == {hashes["a"], hashes["f"]}
    details = {name: items[hashes[name]].detail for name in "cde"}
    assert details == {"c": "a schedule", "d": "a process", "e": "run broken"}
    assert items[made.rig.sha256].detail == "this version of the tool"
    left = {path.name[0] for path in payloads.iterdir() if path.name[:64] in hashes.values()}
    assert left == set("bcde")


def test_hard_links_are_counted_once_and_free_nothing_while_another_name_is_left(
    made: MadeRoot, tmp_path: Path
) -> None:
    one = made.run("one", size_bytes=1_000_000)
    os.link(one.result / "data", one.result / "again")
    items, totals = made.gc(older_than_s=0.0)
    assert 1_000_000 <= items["one"].frees_bytes == items["one"].size_bytes < 1_100_000
    assert totals.before_bytes < 2_000_000
    os.link(one.result / "data", tmp_path / "elsewhere")
    items, _ = made.gc(older_than_s=0.0)
    assert items["one"].frees_bytes < 100_000
    assert items["one"].size_bytes >= 1_000_000


def test_links_lead_nowhere(made: MadeRoot, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "weights").write_bytes(b"1")
    run = made.run("linked")
    (run.path / "out").symlink_to(precious)
    (made.rig.root / "runs" / "moved").symlink_to(precious)
    (made.rig.root / "payloads" / f"{'a' * 64}.pyz").symlink_to(precious / "weights")
    os.utime(made.rig.root / "payloads" / f"{'a' * 64}.pyz", (1.0, 1.0), follow_symlinks=False)
    items, _ = made.gc(apply=True, older_than_s=0.0)
    assert items["linked"].removed
    assert items["moved"].reason.startswith("is a link")
    assert (precious / "weights").read_bytes() == b"1"
    assert made.names() == {"moved"}


def test_odd_things_in_a_run_go_or_are_told(made: MadeRoot) -> None:
    odd, deep = made.run("odd"), made.run("deep")
    os.mkfifo(odd.path / "pipe")
    (odd.path / "dangling").symlink_to("/nowhere")
    (odd.path / os.fsdecode(b"\xff\n\x1b[31m")).write_bytes(b"1")
    with (odd.path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    made.rig.root.joinpath("trash").mkdir()
    made.rig.root.joinpath("trash", os.fsdecode(b"\xfe")).write_bytes(b"1")
    made.rig.root.joinpath("runs", "file").write_bytes(b"1")
    folder = os.open(deep.path, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    items, totals = made.gc(apply=True, older_than_s=0.0)
    assert items["odd"].removed
    assert totals.before_bytes < 1 << 30  # what a sparse file takes
    assert items["file"].reason == "cannot be read"
    assert (items["deep"].removed, "too many" in items["deep"].detail) == (False, True)
    assert made.names() == {"file"}
    subprocess.run(["rm", "-r", str(made.rig.root / "trash")], check=True)


def test_a_folder_of_runs_that_lies_elsewhere_is_refused(made: MadeRoot, tmp_path: Path) -> None:
    made.run("old")
    (made.rig.root / "runs").rename(tmp_path / "elsewhere")
    (made.rig.root / "runs").symlink_to(tmp_path / "elsewhere")
    (error,) = of_kind(made.rig.call("gc", made.request(apply=True, older_than_s=0.0), exit_code=1), "error")
    assert "is a link" in error.message
    assert (tmp_path / "elsewhere" / "old").is_dir()


def test_a_broken_gc_is_finished_by_the_next(made: MadeRoot) -> None:
    made.sweep("night", 3)
    runs, trash = made.rig.root / "runs", made.rig.root / "trash"
    trash.mkdir()
    (runs / "night").rename(trash / ".gone+sweep+night+1.0")  # then the power went
    (runs / "night.u0000.0").rename(runs / ".gone+run+night.u0000.0+1.1")
    made.home = []
    items, _ = made.gc()
    assert {(item.kind, item.name) for item in items.values() if item.goes} == {
        ("leftover", "night"),
        ("leftover", "night.u0000.0"),
    }
    items, _ = made.gc(apply=True)
    assert items["night"].runs == 2
    assert (list(runs.iterdir()), list(trash.iterdir())) == ([], [])


def test_a_gc_that_is_killed_leaves_whole_runs_and_the_next_one_ends_it(made: MadeRoot) -> None:
    made.sweep("night", 40)
    runs = made.rig.root / "runs"
    files = {path.name for path in (runs / "night").iterdir()}
    child = made.rig.start("gc", made.request(apply=True, older_than_s=0.0))
    wait_for(lambda: len(list(runs.iterdir())) < 25)
    child.kill()
    child.communicate()
    for path in runs.glob("[!.]*"):
        assert {one.name for one in path.iterdir()} == files
    assert not (runs / "night").exists()  # the first to go, and nobody takes the rest for a sweep
    made.home = []
    items, _ = made.gc(apply=True)
    assert {item.reason for item in items.values() if item.kind == "leftover"} <= {"a `gc` that broke left it"}
    assert made.names() == set()
    assert list((made.rig.root / "trash").iterdir()) == []


def test_two_at_once_take_everything_once(made: MadeRoot) -> None:
    for number in range(60):
        made.run(f"r{number}", size_bytes=1000)
    request = made.request(apply=True, older_than_s=0.0)
    both = [made.rig.start("gc", request) for _ in range(2)]
    told = [child.communicate(timeout=60) for child in both]
    assert [child.returncode for child in both] == [0, 0]
    assert [err for _, err in told] == [b"", b""]
    for out, _ in told:
        items = [item for frame in of_kind(frames_in(out), "gc") for item in frame.items if item.goes]
        assert [item.name for item in items if not item.removed] == []
    assert made.names() == set()


def test_what_another_takes_while_it_is_looked_at_is_no_run_any_more(tmp_path: Path) -> None:
    for name in ("gone", "stays"):
        (tmp_path / "runs" / name).mkdir(parents=True)

    def tick() -> None:
        shutil.rmtree(tmp_path / "runs" / "gone", ignore_errors=True)

    assert set(runs_below(tmp_path, Living(run_dirs=frozenset(), payloads=frozenset()), tick)) == {"stays"}


def test_a_launch_meets_a_whole_run_or_none(made: MadeRoot) -> None:
    """Who holds the claim of a run is not robbed of it."""
    run = made.run("again")
    with run.claim.open("r+") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        items, _ = made.gc(apply=True, older_than_s=0.0)
        assert (items["again"].removed, "just now" in items["again"].detail) == (False, True)
    items, _ = made.gc(apply=True, older_than_s=0.0)
    assert items["again"].removed
    final = made.rig.launch(made.rig.spec("again"), follow=True)[-1]
    assert final.kind == "end"
    assert made.rig.state("again").phase == "succeeded"


def test_on_a_full_disk(small_disk: Path) -> None:
    rig = Rig(small_disk / "root")
    made = MadeRoot(rig, time.time())
    made.run("old", size_bytes=60_000)
    fill(small_disk / "filler")
    items, totals = made.gc(apply=True, older_than_s=0.0)
    assert items["old"].removed
    assert totals.disk_free_bytes is not None
    assert totals.disk_free_bytes >= 60_000
    assert made.names() == set()


@pytest.fixture
def open_root() -> Iterator[MadeRoot]:
    """A root that another user reaches."""
    if os.geteuid():
        pytest.skip("another user's folders need root")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield MadeRoot(Rig(Path(folder) / "root", "/usr/bin/python3"), time.time())


def test_another_users_folders_are_told_and_left(open_root: MadeRoot) -> None:
    made, root = open_root, open_root.rig.root
    made.run("mine")
    sealed, theirs, mixed = made.run("sealed"), made.run("theirs"), made.run("mixed")
    (sealed.path / "cache" / "deep").mkdir(parents=True)
    (mixed.path / "cache").mkdir()
    subprocess.run(["chown", "-R", "65534", str(root)], check=True)
    subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
    (sealed.path / "cache").chmod(0o500)  # as read-only caches are
    for path in (theirs.path, mixed.path / "cache"):
        os.chown(path, 1, 1)
    items, _ = made.gc(apply=True, older_than_s=0.0, user=65534, extra_groups=[])
    assert items["mine"].removed
    assert items["sealed"].removed
    assert items["theirs"].reason == "belongs to another user"
    assert (items["mixed"].goes, "is in it" in items["mixed"].detail) == (False, True)
    assert made.names() == {"theirs", "mixed"}


def test_another_file_system_inside_a_run_is_not_emptied(made: MadeRoot) -> None:
    run: RunDir = made.run("mounted")
    mount = run.path / "cache"
    mount.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(mount)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a mount needs root: {done.stderr.strip()}")
    try:
        (mount / "precious").write_bytes(b"1")
        items, _ = made.gc(apply=True, older_than_s=0.0)
        assert (items["mounted"].goes, "another file system" in items["mounted"].detail) == (False, True)
        assert (mount / "precious").exists()
    finally:
        subprocess.run(["umount", str(mount)], check=True)
