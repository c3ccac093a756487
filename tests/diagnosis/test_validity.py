import dataclasses

import pytest

from orchestrator.compare.extract_bench import Judged, LoadKey
from orchestrator.compare.served import served_figures
from orchestrator.diagnosis.validity import judge_loads
from remote_payload.schema.bench import BenchResult, RequestSample, Snapshot
from remote_payload.schema.bench_machine import MachineSample
from tests.support.made_bench import made_paired, made_server

SPEC: LoadKey = ("spec", 1, None)
PLAIN: LoadKey = ("plain", 1, None)
BEGAN = 1767323045.0


def judged(
    made: tuple[BenchResult, tuple[RequestSample, ...]], machine: tuple[MachineSample, ...] = ()
) -> dict[LoadKey, Judged]:
    result, requests = made
    return dict(judge_loads(result, requests, served_figures(result, requests), machine))


def sample(throttle: str, *, at: float = 1.0, utilization: float = 0.9) -> MachineSample:
    return MachineSample(time_unix_s=BEGAN + at, gpu=2, sm_clock_mhz=1500.0, throttle=throttle, utilization=utilization)


def test_a_sound_run_has_nothing_against_it() -> None:
    found = judged(made_paired(), (sample("0x0000000000000004"), sample("0x0000000000000000"), sample("Not Active")))
    assert set(found) == {SPEC, PLAIN}
    assert all(one == Judged() for one in found.values())


@pytest.mark.parametrize(
    ("bits", "words"), [("0x0000000000000008", "hardware slowdown"), ("0x40", "heat"), ("0xa0", "power brake")]
)
def test_a_gpu_that_was_slowed_down_voids_what_it_worked_on(bits: str, words: str) -> None:
    found = judged(made_paired(), (sample(bits),))
    assert any(f"GPU 2 was slowed down while it was measured: {words}" in text for text in found[SPEC].invalid)
    assert judged(made_paired(), (sample(bits, at=-5.0),))[SPEC].invalid == ()
    assert judged(made_paired(), (sample(bits, utilization=0.1),))[SPEC].invalid == ()


def test_other_peoples_traffic_voids_the_load_it_came_with() -> None:
    result, requests = made_paired()
    ours = sum(item.completion_tokens or 0 for item in requests if item.point == 0)
    before, after = (Snapshot(time_s=0.0, generation_tokens=tokens) for tokens in (10.0, 10.0 + 2 * ours))
    points = (dataclasses.replace(result.points[0], before=before, after=after), *result.points[1:])
    found = judged((dataclasses.replace(result, points=points), requests))
    assert "somebody else used the server" in found[SPEC].invalid[0]
    assert found[PLAIN].invalid == ()


def test_random_tokens_and_contradictions_are_warnings() -> None:
    result, requests = made_paired()
    workload = dataclasses.replace(result.workload, form="random")
    odd = dataclasses.replace(requests[0], broken_identities=("sum(histogram) = 42, verify steps = 43",))
    found = judged((dataclasses.replace(result, workload=workload), (odd, *requests[1:])))
    assert any("random tokens" in text for text in found[SPEC].warnings)
    assert any("contradict each other" in text for text in found[SPEC].warnings)
    assert found[SPEC].invalid == ()


def test_simulated_acceptance_is_no_measurement_of_a_drafter_and_leaves_plain_decoding_alone() -> None:
    result, requests = made_paired()
    told = dataclasses.replace(result, sglang=dataclasses.replace(result.sglang, simulates_acceptance=True))
    found = judged((told, requests))
    assert found[SPEC].invalid == ("acceptance is simulated: neither the accept length nor the speed is the drafter's",)
    assert found[PLAIN].invalid == ()
    servers = (made_server("spec", runs={"SGLANG_SIMULATE_ACC_LEN": 2.5}), made_server("plain"))
    known = judged(made_paired(servers=servers))
    assert "(SGLANG_SIMULATE_ACC_LEN=2.5)" in known[SPEC].invalid[0]
    unset = dataclasses.replace(result, sglang=dataclasses.replace(result.sglang, simulates_acceptance=False))
    assert judged((unset, requests))[SPEC].invalid == ()
