"""Which versions are installed, told without importing them."""

import os
import sys
from pathlib import Path

import pytest

from remote_payload.schema import BenchJob, SelftestJob
from remote_payload.software import Software, installed_as


def install(folder: Path, name: str, version: str) -> None:
    there = folder / f"{name}-{version}.dist-info"
    there.mkdir(parents=True)
    (there / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    os.utime(folder, ns=(0, int(version[-1])))  # a folder changes with what is installed; clocks may be coarse


def test_what_is_installed_is_asked_again_once_a_folder_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "sgl_kernel", "0.3.1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    software = Software()
    before = software.installed_for(SelftestJob())
    assert before["sgl-kernel"] == "0.3.1"
    assert before["python"] == "{}.{}.{}".format(*sys.version_info[:3])
    metadata = tmp_path / "sgl_kernel-0.3.1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("0.3.1", "0.3.9"))
    assert software.installed_for(SelftestJob()) == before  # and no other interpreter was started for that
    metadata.parent.rename(tmp_path / "gone")
    install(tmp_path, "sgl_kernel", "0.3.2")
    assert software.installed_for(SelftestJob()) == {**before, "sgl-kernel": "0.3.2"}
    assert installed_as(SelftestJob(), sys.executable, {}) == {**before, "sgl-kernel": "0.3.2"}


def test_where_the_server_runs_elsewhere_that_place_is_asked(tmp_path: Path) -> None:
    install(tmp_path, "sgl_kernel", "0.3.1")
    job = BenchJob(model="/m", exec_prefix=("env", f"PYTHONPATH={tmp_path}"), server_python=sys.executable)
    assert Software().installed_for(job)["sgl-kernel"] == "0.3.1"
    assert installed_as(job, "/no/such/python", {"PYTHONPATH": "/"})["sgl-kernel"] == "0.3.1"
    assert Software().installed_for(BenchJob(model="/m", attach_url="http://127.0.0.1:1")) == {}
    assert installed_as(SelftestJob(), "/no/such/python", {}) == {}
