"""The machine of a served benchmark in words."""

import dataclasses

from orchestrator.report.bench_machine import machine_lines
from remote_payload.schema.bench_machine import MachineSample
from tests.support.made_bench import made_bench, made_paired


def test_what_each_gpu_did_and_why_it_could_not_do_more() -> None:
    result = dataclasses.replace(made_paired()[0], gpus=("NVIDIA H200",))
    samples = [
        MachineSample(
            time_unix_s=float(second),
            gpu=0,
            sm_clock_mhz=1980.0 - 10 * second,
            power_w=600.0 + second,
            temperature_c=60.0,
            memory_used_bytes=100 << 30,
            utilization=0.9,
            throttle="0x44" if second == 2 else "0x04",
        )
        for second in range(3)
    ]
    host, gpu = machine_lines(result, [*samples, MachineSample(time_unix_s=0.0, gpu=None, load_1min=1.0)])
    assert host == ("machine", "2 CPUs, GPUs: NVIDIA H200, 4 samples")
    assert gpu == (
        "GPU 0",
        "SM clock 1960 / 1970 / 1980 MHz; power 600 / 601 / 602 W; temperature 60 / 60 / 60 C; "
        "memory 100 / 100 / 100 GiB; busy 90 / 90 / 90 %; reasons for lower clocks: power cap, heat "
        "(least / median / most of 3)",
    )


def test_a_tool_that_hung_leaves_the_gpus_unknown() -> None:
    result = made_bench([], [])
    assert "GPUs: unknown (nvidia-smi hung)" in machine_lines(dataclasses.replace(result, gpu_answer="hung"), ())[0][1]
    assert (
        "GPUs: none that nvidia-smi knows"
        in machine_lines(dataclasses.replace(result, gpu_answer="no_nvidia_smi"), ())[0][1]
    )
    assert machine_lines(dataclasses.replace(result, gpus=()), ())[0][1].startswith("2 CPUs, GPUs: none, 0 samples")
