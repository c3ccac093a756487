"""Points split among hosts: each on one, with its own plain decoding, evenly by cost, the same whoever asks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.config import Config
from orchestrator.sweep.classes import host_class
from orchestrator.sweep.file import SweepFile, from_table
from orchestrator.sweep.plan import cost_of
from orchestrator.sweep.points import Point
from orchestrator.sweep.shares import rest, shared_out, split
from orchestrator.sweeping import planning
from remote_payload.schema import Gpu, HostFacts

BENCH: dict[str, Any] = {"job": "bench", "base": {"model": "/m", "draft": "/d", "eagle_topk": 1}}


def points_of(table: dict[str, Any]) -> tuple[SweepFile, tuple[Point, ...]]:
    file = from_table(table, "s.toml")
    return file, planning.wanted(file, {}, Config(), "gpu1").expanded.points


@given(
    steps=st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True),
    users=st.lists(st.sampled_from([1, 2, 8, 32]), min_size=1, max_size=3, unique=True),
    lengths=st.lists(st.sampled_from([64, 256, 1024]), min_size=1, max_size=3, unique=True),
    hosts=st.integers(1, 6),
)
def test_every_point_is_on_one_host_and_its_plain_decoding_beside_it(
    steps: list[int], users: list[int], lengths: list[int], hosts: int
) -> None:
    grid = {"num_steps": steps, "max_new_tokens": lengths, "concurrency": users}
    derive = [{"set": "num_draft_tokens", "to": "num_steps + 1"}]
    file, points = points_of({**BENCH, "grid": grid, "derive": derive})
    shares = split(file, points, hosts)
    assert shares == split(file, points, hosts)
    spread = [point for share in shares for point in share if not point.is_baseline]
    assert sorted(map(id, spread)) == sorted(id(point) for point in points if not point.is_baseline)
    for share in shares:
        plain = {rest(point.changes) for point in share if point.is_baseline}
        assert plain == {rest(point.changes) for point in share if not point.is_baseline}
        places = [points.index(point) for point in share]
        assert places == sorted(places)  # in the file's order
    homes = {point.configuration: at for at, share in enumerate(shares) for point in share if not point.is_baseline}
    for at, share in enumerate(shares):  # all loads of a configuration share its start
        assert all(homes[point.configuration] == at for point in share if not point.is_baseline)


@given(costs=st.lists(st.floats(0, 1e6), max_size=40), hosts=st.integers(1, 8))
def test_no_host_has_more_than_its_part_and_the_dearest(costs: list[float], hosts: int) -> None:
    given_to = shared_out(costs, [()] * len(costs), {}, hosts)
    sums = [sum(cost for cost, host in zip(costs, given_to, strict=True) if host == one) for one in range(hosts)]
    assert max(sums) <= sum(costs) / hosts + max(costs, default=0.0) + 1e-6
    if len(costs) >= hosts and len(set(costs)) == 1:
        counted = [given_to.count(one) for one in range(hosts)]
        assert max(counted) - min(counted) <= 1  # also where nothing costs anything


def test_what_needs_the_same_plain_decoding_goes_together_where_that_is_cheaper() -> None:
    # Four points of cost 1, two of each model; plain decoding of a model costs 10.
    assert shared_out([1, 1, 1, 1], [["x"], ["x"], ["y"], ["y"]], {"x": 10.0, "y": 10.0}, 2) == (0, 0, 1, 1)


def test_the_dear_ones_are_spread() -> None:
    table = {**BENCH, "baseline": False, "grid": {"max_new_tokens": [10, 1000, 20, 900], "concurrency": [1]}}
    file, points = points_of(table)
    shares = split(file, points, 2)
    assert [[point.changes["max_new_tokens"] for point in share] for share in shares] == [[1000], [10, 20, 900]]
    assert cost_of(points[1].job) > 40 * cost_of(points[0].job)


def facts(gpus: tuple[Gpu, ...] = (), answer: Any = "ok", **more: Any) -> HostFacts:
    told = {"hostname": "h", "user": "u", "system": "Linux 6.8.0 x86_64", "cpu_count": 16, "time_unix_s": 0.0} | more
    return HostFacts(**told, root="/r", root_writable=True, gpu_answer=answer, gpus=gpus)


def gpu(index: int, name: str = "NVIDIA H200", **more: Any) -> Gpu:
    return Gpu(index=index, uuid=f"GPU-{index}", name=name, memory_total_bytes=143771 * 2**20, **more)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (facts((gpu(0), gpu(1))), "2 x NVIDIA H200 (143771 MiB)"),
        (facts((gpu(1, "B"), gpu(0, "A"))), "1 x A (143771 MiB), 1 x B (143771 MiB)"),
        (facts((gpu(0, mig_devices=("MIG-1",)), gpu(1, "MIG 1g", mig_of="GPU-0"))), "1 x MIG 1g (143771 MiB)"),
        (facts(answer="no_nvidia_smi"), "CPU alone (16 x, x86_64)"),
        (facts(answer="ok", cpu_count=None), "CPU alone (unknown, x86_64)"),
        (facts(answer="hung"), None),
        (facts(answer="failed"), None),
    ],
)
def test_the_class_of_a_host(found: HostFacts, words: str | None) -> None:
    assert host_class(found) == words
