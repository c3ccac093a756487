"""The store's lock: held by one process, waited for by others, freed by the kernel."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.errors import StoreError
from orchestrator.store import lock

HOLD = (
    "import sys, time; from pathlib import Path; from orchestrator.store.lock import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
)


def test_a_holder_is_waited_for_and_its_death_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(lock, "TIMEOUT_S", 0.05)
        begun_s = time.monotonic()
        with pytest.raises(StoreError, match="held by another process") as caught, lock.locked(tmp_path):
            pass
        assert time.monotonic() - begun_s >= 0.05
        assert str(tmp_path / ".lock") in caught.value.message
    finally:
        holder.kill()
        holder.communicate()
    with lock.locked(tmp_path):
        assert (tmp_path / ".lock").stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot lock"), lock.locked(tmp_path / "file" / "store"):
        pass
