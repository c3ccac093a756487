"""A host behind a real sshd, and laptops that reach it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.laptop import Laptop
from tests.support.sshd import SshServer, running_sshd


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A host of this test's own: an empty home, nothing shipped yet."""
    with running_sshd(tmp_path / "gpu1") as running:
        yield running


@pytest.fixture
def new_laptop(tmp_path: Path) -> Iterator[Callable[[str], Laptop]]:
    """Make a laptop by name."""
    made: list[Laptop] = []

    def make(name: str) -> Laptop:
        folder = tmp_path / name
        folder.mkdir()
        made.append(Laptop(folder))
        return made[-1]

    yield make
    for laptop in made:
        laptop.close()


@pytest.fixture
def laptop(new_laptop: Callable[[str], Laptop], server: SshServer) -> Laptop:
    """A laptop that knows the host as `gpu1`."""
    made = new_laptop("laptop")
    made.add_host("gpu1", server)
    return made
