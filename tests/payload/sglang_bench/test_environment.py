"""The devices that a run has leased reach its server, in whatever root that is, and no others do."""

from pathlib import Path

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.environment import server_environment

LEASE = {"EAGLE3_LEASED_GPUS": "GPU-c", "CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LEASE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("leased")
def test_leased_devices_are_handed_over(tmp_path: Path) -> None:
    job = BenchJob(model="/m", exec_prefix=("docker", "exec", "-i", "box"), server_environment=("A=b",))
    found = server_environment(job, tmp_path)
    assert LEASE.items() <= found.items()
    assert found["A"] == "b"


@pytest.mark.usefixtures("leased")
def test_other_devices_than_the_leased_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobFailure, match="the run has leased its own: CUDA_VISIBLE_DEVICES=3"):
        server_environment(BenchJob(model="/m", server_environment=("CUDA_VISIBLE_DEVICES=0",)), tmp_path)


def test_without_a_lease_the_job_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EAGLE3_LEASED_GPUS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    job = BenchJob(model="/m", server_environment=("CUDA_VISIBLE_DEVICES=0",))
    assert server_environment(job, tmp_path)["CUDA_VISIBLE_DEVICES"] == "0"
    assert "CUDA_VISIBLE_DEVICES" not in server_environment(BenchJob(model="/m"), tmp_path)
