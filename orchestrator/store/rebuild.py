"""The store set right from its run folders: a new index, and what killed processes left behind is gone."""

from pathlib import Path

from orchestrator.store import index
from orchestrator.store.files import translated
from orchestrator.store.folders import sweep
from orchestrator.store.lock import locked


def reindex(home: Path, baselines: tuple[Path, ...]) -> int:
    """Forget the index, so that the next listing reads every run; returns how many leftovers were swept.

    Raises StoreError.
    """
    runs = home / "runs"
    with translated("clean up", home), locked(home):
        index.forget(home)
        inside = tuple(path for path in runs.glob("[!.]*") if path.is_dir())
        records = tuple(folder / "records" for folder in baselines)
        return sweep((home, runs, *inside, *baselines, *records))
