"""What every test leaves as it found it."""

import os
import signal
import time
from collections.abc import Iterator

import hypothesis
import pytest

# How long an example takes says how busy the machine is, and nothing else.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

# Processes that share the tests set it, and so does many a shell; outputs are compared at the width of a file.
os.environ.pop("COLUMNS", None)


@pytest.hookimpl(tryfirst=True)  # before the plugin that shares tests out reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with real infrastructure stay together where processes share them: one cluster, one set of hosts a file."""
    for item in items:
        if item.get_closest_marker("infra") is not None:
            group = "slurm" if "slurm" in str(item.path) else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))


ENDING = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def ends_when_told() -> Iterator[None]:
    """A command run inside a test's process takes SIGTERM for itself; afterwards the tests can be ended by it again."""
    before = [signal.getsignal(number) for number in ENDING]
    yield
    for number, handler in zip(ENDING, before, strict=True):
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture
def systems_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone that cron goes by, whatever the environment says."""
    monkeypatch.delenv("TZ", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
