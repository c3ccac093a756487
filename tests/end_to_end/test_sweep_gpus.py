"""A sweep that leases GPUs and is killed under its start: what goes on with it waits for the GPUs that start holds."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.host_runs import kept_running, state_file, wait_for_phase
from tests.support.laptop import Laptop
from tests.support.made_smi import TWO_GPUS, MadeSmi
from tests.support.sshd import ServerOptions, running_sshd


@pytest.mark.slow
def test_going_on_waits_for_the_start_that_outlived_its_sweep(
    new_laptop: Callable[[str], Laptop], tmp_path: Path
) -> None:
    smi = MadeSmi(tmp_path)
    (tmp_path / "sweep.toml").write_text('[sweep]\njob = "selftest"\n[sweep.grid]\nduration_s = [5.0]\n')
    with running_sshd(tmp_path / "gpu1", ServerOptions(environment={"PATH": smi.path})) as server:
        laptop = new_laptop("laptop")
        laptop.add_host("gpu1", server, settings=f'leases = "{tmp_path}/leases"')
        file = str(tmp_path / "sweep.toml")
        launched = laptop.run("sweep", "run", file, "--host", "gpu1", "--gpus", "2", "--run-id", "s", "--detach")
        assert launched.code == 0, launched.err
        unit = "s.u0000.0"
        with kept_running(server, unit):
            state = json.loads(state_file(server, "s").read_text())
            for pid in (state["supervisor_pid"], state["worker_pid"]):
                os.kill(pid, signal.SIGKILL)
            # What it leased is its start's, before anything of that shows on a GPU.
            other = laptop.run("run", "selftest", "--host", "gpu1", "--gpus", "1")
            assert "leased by" in other.err
            smi.say(TWO_GPUS, apps="GPU-aaaa, 99999999, 100\nGPU-bbbb, 99999998, 100\n")  # its server's
            going_on = laptop.start("sweep", "resume", "s", "--run-id", "s2")
            wait_for_phase(server, "s2", "queued")
        smi.say(TWO_GPUS)
        resumed = laptop.finish(going_on)
        assert resumed.code == 0, resumed.err
        found = laptop.run("sweep", "report", "s2", "--json").objects[-1]
        assert [one["word"] for one in found["points"]] == ["measured"]
        assert unit in {one["run_id"] for one in found["points"]}  # and was not run again
