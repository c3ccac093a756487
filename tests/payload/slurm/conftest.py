from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.payload.rig import Rig
from tests.support.slurm import NODES, Slurm, running_slurm, until


@pytest.fixture(scope="package")
def cluster() -> Iterator[Slurm]:
    """One cluster for all tests of the package."""
    with running_slurm() as slurm:
        yield slurm


@pytest.fixture
def slurm(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """The cluster with every node idle, for commands that this test starts."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    until(lambda: cluster.idle_nodes() == NODES, "three idle nodes")
    return cluster


@pytest.fixture
def rig(tmp_path: Path, slurm: Slurm) -> Iterator[Rig]:
    rig = Rig(tmp_path / "root")
    yield rig
    slurm.run("scancel", "--user=root")
