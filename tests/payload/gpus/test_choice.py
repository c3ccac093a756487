"""Which GPUs may be taken: masks as CUDA reads them, reasons, MIG devices. nvidia-smi's own output is the input."""

import dataclasses
from typing import Any

import pytest

from remote_payload.gpus.choice import MaskError, environment, leased, leased_indices, visible, why_not
from remote_payload.gpus.mig import parse_mig
from remote_payload.schema import Gpu, GpuProcess

GIB = 1 << 30
LISTING = """GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaa-0)
  MIG 3g.40gb     Device  0: (UUID: MIG-1111)
  MIG 2g.20gb     Device  1: (UUID: MIG-2222)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbbb-1)
""".splitlines()
DETAILS = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><gpu id="00000000:07:00.0"><uuid>GPU-aaaa-0</uuid>
<mig_devices>
<mig_device><index>0</index><gpu_instance_id>2</gpu_instance_id>
<fb_memory_usage><total>40448 MiB</total><used>25 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>5</gpu_instance_id>
<fb_memory_usage><total>19968 MiB</total><used>9000 MiB</used></fb_memory_usage></mig_device>
</mig_devices>
<processes><process_info><gpu_instance_id>5</gpu_instance_id><pid>4321</pid></process_info></processes>
</gpu></nvidia_smi_log>"""


def gpu(index: int, **changes: Any) -> Gpu:
    made = Gpu(
        index=index,
        uuid=f"GPU-{'abcdefgh'[index] * 4}-{index}",
        name="NVIDIA H200",
        memory_total_bytes=140 * GIB,
        memory_used_bytes=GIB // 2,
    )
    return dataclasses.replace(made, **changes)


BOX = [gpu(0), gpu(1), gpu(2), gpu(3)]


@pytest.mark.parametrize(
    ("mask", "seen"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 , 3 ", [1, 3]),
        ("1,9,2", [1]),
        ("1,1,2", [1]),
        ("-1", []),
        ("GPU-cccc", [2]),
        ("GPU-cccc-2,0", [2, 0]),
        ("GPU-", []),
        ("NoDevFiles", []),
    ],
)
def test_the_mask_that_was_there_before(mask: str | None, seen: list[int]) -> None:
    assert [item.index for item in visible(BOX, mask, None)] == seen


def test_indices_of_differing_gpus_need_the_bus_order() -> None:
    box = [gpu(0), gpu(1, name="NVIDIA L4")]
    with pytest.raises(MaskError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        visible(box, "1", "FASTEST_FIRST")
    assert visible(box, "1", "PCI_BUS_ID") == (box[1],)
    assert visible(box, "GPU-bbbb", None) == (box[1],)


@pytest.mark.parametrize(
    ("changes", "min_free", "words"),
    [
        ({}, None, None),
        ({"memory_used_bytes": None, "memory_total_bytes": None}, None, None),  # integrated: there is none of its own
        ({"memory_used_bytes": None}, None, "does not tell how much of its memory is in use"),
        ({"uuid": "[Unknown Error]"}, None, "does not tell its UUID ([Unknown Error])"),
        ({"memory_used_bytes": 3 * GIB}, None, "3.0 GiB in use, though no process is seen"),
        ({"processes": (GpuProcess(pid=7, user="ann"),)}, None, "used by ann's pid 7"),
        ({"processes": tuple(GpuProcess(pid=pid) for pid in range(1, 6))}, None, "somebody's pid 3 and 2 more"),
        ({}, 139 * GIB, None),
        ({}, 140 * GIB, "139.5 GiB free"),
        ({"memory_used_bytes": None, "memory_total_bytes": None}, GIB, "does not tell its memory"),
        ({"mig_devices": ("MIG-1",)}, None, "split into MIG devices"),
    ],
)
def test_why_a_gpu_is_not_free(changes: dict[str, Any], min_free: int | None, words: str | None) -> None:
    why = why_not(gpu(0, **changes), min_free)
    assert (why is None) == (words is None)
    assert (words or "") in (why or "")


def test_mig_devices_have_memory_and_processes_of_their_own() -> None:
    whole = [
        gpu(0, processes=(GpuProcess(pid=4321, user="ann"),)),
        gpu(1, uuid="GPU-bbbb-1"),
    ]
    first, big, small, second = parse_mig(whole, LISTING, DETAILS)
    assert (first.mig_devices, second.mig_devices) == (("MIG-1111", "MIG-2222"), ())
    assert (big.name, big.mig_of, big.memory_total_bytes, big.processes) == (
        "NVIDIA H200 MIG 3g.40gb",
        "GPU-aaaa-0",
        40448 * 2**20,
        (),
    )
    assert why_not(big, 20 * GIB) is None
    assert why_not(small, None) == "used by ann's pid 4321"
    assert visible([first, big, small, second], "MIG-2222", None) == (small,)
    assert environment([small])["CUDA_VISIBLE_DEVICES"] == "MIG-2222"


@pytest.mark.parametrize("details", [None, "", "<broken", "<a><gpu><uuid>GPU-aaaa-0</uuid></gpu></a>"])
def test_a_mig_device_that_is_not_told_of_may_be_in_use(details: str | None) -> None:
    whole = [gpu(0, processes=(GpuProcess(pid=4321, user="ann"),))]
    _, big, small = parse_mig(whole, LISTING, details)
    assert why_not(big, None) == why_not(small, None) == "used by ann's pid 4321"
    assert big.memory_total_bytes is None


def test_whole_gpus_are_given_by_index_as_sglang_reads_numbers_alone() -> None:
    assert environment([BOX[3], BOX[1]]) == {
        "CUDA_VISIBLE_DEVICES": "3,1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "EAGLE3_LEASED_GPUS": "GPU-dddd-3,GPU-bbbb-1",
    }


def test_a_run_knows_the_devices_that_were_leased_for_it_alone() -> None:
    part = gpu(1, uuid="MIG-1", mig_of=BOX[1].uuid)
    box = [*BOX, part]
    assert leased(box, {}) == tuple(BOX)
    assert leased(box, environment([BOX[2], BOX[0]])) == (BOX[0], BOX[2])
    assert leased(box, environment([part])) == (part,)
    assert leased_indices(environment([BOX[2], BOX[0]])) == frozenset((0, 2))
    assert leased_indices(environment([part])) is None
    assert leased_indices({"CUDA_VISIBLE_DEVICES": "3"}) is None
