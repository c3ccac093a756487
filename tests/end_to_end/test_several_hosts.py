"""A sweep over three machines that lose power, cable and laptop: every point is accounted for, and none is lost."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.laptop import Laptop
from tests.support.netns_hosts import NetHost, network, why_not
from tests.support.patience import wait_for

pytestmark = [pytest.mark.infra, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]
POINTS, CRASHING = 42, 4


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[NetHost]]:
    with network(tmp_path, 3) as made:
        yield made


def introduced(laptop: Laptop, hosts: list[NetHost]) -> Laptop:
    for alias, host in zip("abc", hosts, strict=True):
        host.introduce(laptop, alias)
    return laptop


def write_sweep(folder: Path, points: int, seconds: float, crashing: int = 0) -> str:
    """Points of the selftest; so many of them crash."""
    lines = [f'[sweep]\njob = "selftest"\n[sweep.base]\nduration_s = {seconds}\n']
    every = points // crashing if crashing else points + 1
    lines += [
        f"[[sweep.points]]\nresult_bytes = {n + 1}\nfail = {str(n % every == every - 1).lower()}\n"
        for n in range(points)
    ]
    path = folder / "sweep.toml"
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def phase_of(host: NetHost, share: str) -> str:
    state = host.home / ".eagle3-remote/runs" / share / "state.json"
    return str(json.loads(state.read_text())["phase"]) if state.exists() else "none"


def ledger_of(host: NetHost, share: str) -> list[dict[str, Any]]:
    path = host.home / ".eagle3-remote/runs" / share / "result/units.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measured_on(host: NetHost, share: str) -> int:
    return sum(one["end"] == "measured" for line in ledger_of(host, share) for one in line["points"])


def told(laptop: Laptop, *arguments: str) -> dict[str, Any]:
    return laptop.run("sweep", *arguments, "--json").objects[-1]


def test_the_laptop_is_gone_and_a_tenth_crashes(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    first = introduced(new_laptop("first"), hosts)
    file = write_sweep(tmp_path, POINTS, 0.05, CRASHING)
    launched = first.run("sweep", "run", file, "--host", "a,b,c", "--detach", "--run-id", "night")
    assert (launched.code, launched.out) == (0, "night\n"), launched.err
    first.close()
    for number, host in enumerate(hosts, start=1):
        wait_for(lambda host=host, number=number: phase_of(host, f"night.h{number}") == "succeeded", "a share", 90)
    other = introduced(new_laptop("other"), hosts)
    followed = other.run("sweep", "follow", "night", "--host", "a,b,c")
    assert followed.code == 20, followed.err
    assert f"sweep night: {CRASHING} of {POINTS} points are not measured" in followed.err
    assert followed.out.count("selftest was asked to fail") == CRASHING
    found = told(other, "report", "night")
    assert (found["phase"], found["planned"]) == ("over", POINTS)
    assert (found["counts"]["measured"], found["counts"]["failed"]) == (POINTS - CRASHING, CRASHING)
    assert [share["planned"] for share in found["shares"]] == [14, 14, 14]
    settings = Counter(one["settings"]["result_bytes"] for share in found["shares"] for one in share["points"])
    assert settings == Counter(range(1, POINTS + 1))  # each once, on one host
    assert other.run("runs", "list", "--tag", "night").out.count(".u00") == POINTS
    explained = first.run("explain", "night", "--json").objects
    assert [one["run_id"] for one in explained] == ["night.h1", "night.h2", "night.h3"]


def test_a_power_cut_a_move_and_a_reboot(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    laptop = introduced(new_laptop("laptop"), hosts)
    b = hosts[1]
    file = write_sweep(tmp_path, 15, 1.5)
    assert laptop.run("sweep", "run", file, "--host", "a,b,c", "--detach", "--run-id", "night").code == 0
    wait_for(lambda: measured_on(b, "night.h2") >= 1, "the first point of b")
    assert laptop.run("sweep", "status", "night").code == 0  # now the laptop knows of it
    b.cut_power()
    on_disk = measured_on(b, "night.h2")

    silent = laptop.run("sweep", "status", "night")
    assert silent.code == 17, silent.err
    assert "b does not answer, night.h2 as it was told last, 2" in silent.out
    wait_for(
        lambda: {phase_of(hosts[0], "night.h1"), phase_of(hosts[2], "night.h3")} == {"succeeded"}, "the others", 60
    )
    collected = laptop.run("sweep", "collect", "night")
    assert (collected.code, "b does not answer, night.h2" in collected.out) == (17, True), collected.err
    home = json.loads(laptop.run("runs", "list", "--tag", "night", "--json").out)
    assert sum(".u" in one["run_id"] for one in home["runs"]) >= 10, home  # of the hosts that answer all came
    refused = laptop.run("sweep", "resume", "night", "--host", "a")
    assert refused.code == 15, refused.err
    assert "may still measure their shares: night.h2 on b" in refused.err
    assert "--host-is-dead b" in refused.err
    moved = laptop.run("sweep", "resume", "night", "--host", "a", "--host-is-dead", "b")
    assert moved.code == 0, moved.err  # b is dead, and nobody misses it: all is measured
    assert "b is said to be dead" in moved.out
    b.plug()
    b.boot()
    found = told(laptop, "status", "night")
    assert (found["counts"]["measured"], found["planned"]) == (15, 15)
    share = next(one for one in found["shares"] if one["run_id"] == "night.h2")
    assert (share["phase"], share["problem"], share["dead"]) == ("lost", None, False)
    assert share["counts"]["measured"] == on_disk
    (moved_to,) = (one["run_id"] for one in found["shares"] if one["run_id"].startswith("night.h4-"))
    again = [one["settings"]["result_bytes"] for one in found["measured_twice"]]
    assert len(again) == on_disk - (5 - measured_on(hosts[0], moved_to))  # what b had told was not run again


def test_two_laptops_do_not_both_move_what_a_dead_host_left(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    """Each to a host of its own that the other does not know, at the same moment; one of them never saw the share."""
    a, b, c = hosts
    first, other = new_laptop("first"), new_laptop("other")
    a.introduce(first, "a")
    b.introduce(first, "b")
    a.introduce(other, "a")
    c.introduce(other, "b")  # its `b` is another machine
    c.introduce(other, "c")
    file = write_sweep(tmp_path, 6, 2.0)
    assert first.run("sweep", "run", file, "--host", "a,b", "--detach", "--run-id", "night").code == 0
    b.cut_power()
    assert measured_on(b, "night.h2") == 0
    heard = other.run("sweep", "status", "night", "--host", "a")
    assert "share 2 of 2, launched on `b`: none of the hosts asked has it" in heard.out, heard.err
    whole = other.run("sweep", "status", "night")
    assert (whole.code, "another root than the one that has night.h2" in whole.err) == (17, True), whole.err

    both = [
        laptop.start("sweep", "resume", "night", "--host", taker, "--host-is-dead", "b", "--detach")
        for laptop, taker in ((first, "a"), (other, "c"))
    ]
    ends = [laptop.finish(process) for laptop, process in zip((first, other), both, strict=True)]
    (lost,) = (end for end in ends if end.code)
    told = {15: ("has the same points", "may still measure", "still runs"), 5: ("nothing is left",)}  # 5: it is done
    assert any(words in lost.err for words in told[lost.code]), lost.err
    followed = other.run("sweep", "follow", "night", "--host", "a,c")
    assert followed.code == 0, followed.err
    runs = [path for host in (a, c) for path in (host.home / ".eagle3-remote/runs").glob("night.h*.u*")]
    asked = [json.loads(json.loads((path / "spec.json").read_text())["job_json"]) for path in runs]
    assert sorted(one["result_bytes"] for one in asked) == [1, 2, 3, 4, 5, 6]  # each once
    third = new_laptop("third")
    cancelled = first.run("sweep", "cancel", "night")
    is_on_c = ends[0].code != 0  # which this laptop cannot dial, and says so
    assert (cancelled.code, "eagle3.toml is called `c`" in cancelled.err) == (17 if is_on_c else 0, is_on_c), (
        cancelled.err
    )
    a.introduce(third, "a")
    over = third.run("sweep", "resume", "night", "--host", "a", "--host-is-dead", "b")
    assert over.code in (5, 15), over.err  # nothing is left, or the one who took it is not known here


def test_a_reboot_and_going_on_where_it_was(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    laptop = introduced(new_laptop("laptop"), hosts)
    c = hosts[2]
    file = write_sweep(tmp_path, 9, 1.0)
    assert laptop.run("sweep", "run", file, "--host", "a,b,c", "--detach", "--run-id", "night").code == 0
    wait_for(lambda: measured_on(c, "night.h3") >= 1, "the first point of c")
    c.cut_power()
    c.plug()
    c.boot()
    answers = laptop.run("sweep", "resume", "night", "--host", "a", "--host-is-dead", "c")
    assert (answers.code, "`c` answers" in answers.err) == (2, True)
    went_on = laptop.run("sweep", "resume", "night")
    assert went_on.code == 0, went_on.err
    found = told(laptop, "status", "night")
    assert (found["counts"]["measured"], found["planned"], found["measured_twice"]) == (9, 9, [])
    last = found["shares"][-1]
    assert (last["run_id"][:9], last["host"]) == ("night.h4-", "c")
    assert last["planned"] == 3 - found["shares"][2]["counts"]["measured"]


def test_a_cut_cable_and_a_half_open_link(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    laptop = introduced(new_laptop("laptop"), hosts)
    a, b, c = hosts
    file = write_sweep(tmp_path, 9, 1.0)
    assert laptop.run("sweep", "run", file, "--host", "a,b,c", "--detach", "--run-id", "night").code == 0
    process = laptop.start("sweep", "follow", "night")
    wait_for(lambda: b.sessions() and a.sessions() and c.sessions(), "the three connections")
    a.unplug()
    assert b.stop_sessions()
    time.sleep(6)  # longer than a dial may take, so that it has been tried in vain
    a.plug()
    done = laptop.finish(process)
    assert done.code == 0, done.err
    assert "night.h1: a: " in done.err
    found = told(laptop, "report", "night")
    assert (found["counts"]["measured"], found["planned"]) == (9, 9)
    assert all(
        sum(1 for line in ledger_of(host, f"night.h{n}") if line["finished_unix_s"]) == 3
        for n, host in enumerate(hosts, 1)
    )
    # One connection a host, but where it had to be made again.
    assert sum("Accepted publickey" in line for line in (c.folder / "sshd.log").read_text().splitlines()) <= 3


def test_hosts_that_are_down_at_the_start_and_at_the_launch(
    hosts: list[NetHost], new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    laptop = introduced(new_laptop("laptop"), hosts)
    b, c = hosts[1], hosts[2]
    b.cut_power()
    file = write_sweep(tmp_path, 4, 0.0)
    begun = laptop.run("sweep", "run", file, "--host", "c,b,a", "--run-id", "night", "--at", "2099-01-01", "--detach")
    assert begun.code == 2, begun.err  # a mistake is said, and nothing is written down
    done = laptop.run("sweep", "run", file, "--host", "c,b,a", "--run-id", "night", "--detach")
    assert done.code == 0, done.err
    assert "b is left out, the others measure all points: " in done.err
    # As if this laptop had been ended between writing it down and launching the second share.
    wait_for(lambda: phase_of(c, "night.h2") == "succeeded", "the share of c")
    shutil.rmtree(c.home / ".eagle3-remote/runs")
    shutil.rmtree(laptop.store / "runs/night.h2")
    c.cut_power()
    refused = laptop.run("sweep", "resume", "night", "--host", "a")
    assert refused.code == 15, refused.err  # it may have been launched: nobody knows
    c.plug()
    c.boot()
    told_now = laptop.run("sweep", "status", "night")
    assert (told_now.code, "night.h2 was never launched on c" in told_now.out) == (17, True), told_now.err
    fewer = laptop.run("sweep", "run", file, "--host", "b,a", "--run-id", "night")
    assert (fewer.code, "`c` has a share of it" in fewer.err) == (15, True), fewer.err
    alone = laptop.run("sweep", "run", file, "--host", "a", "--run-id", "night")
    assert (alone.code, "a sweep over several hosts has this id" in alone.err) == (15, True), alone.err
    again = laptop.run("sweep", "run", file, "--host", "c,b,a", "--run-id", "night")
    assert again.code == 0, again.err  # split once: b takes no part now either
    found = told(laptop, "report", "night")
    assert [(share["host"], share["planned"]) for share in found["shares"]] == [("a", 2), ("c", 2)]
    assert found["counts"]["measured"] == found["planned"] == 4
