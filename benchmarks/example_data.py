"""Where the target, a drafter and captured rows are: in the bundled example, or in a larger folder of the same kind."""

import shutil
from dataclasses import dataclass
from pathlib import Path

WIRING = (1, 2, 3)
"""What `drafter_std` was trained on, of the four captured states."""
STEPS = 4


@dataclass(frozen=True, kw_only=True)
class ExampleData:
    """Folders, and the wiring to measure: positions in the captured states of the rows."""

    draft: Path
    target: Path
    rows: Path
    wiring: tuple[int, ...] = WIRING


def find(folder: Path) -> ExampleData:
    """The bundled layout (`drafter_std`, `rows`) or the larger one. Raises FileNotFoundError naming what is missing."""
    return ExampleData(
        draft=_first(folder, "drafter_std/specforge_sglang", "drafter_std"),
        target=_first(folder, "target"),
        rows=_first(folder, "heldout/story_4state", "rows"),
    )


def repeated(rows: Path, folder: Path, times: int) -> Path:
    """A folder of rows with every row `times` times, as copies."""
    files = sorted(rows.rglob("data_*"))
    target = folder / f"rows_0-{times * len(files)}"
    target.mkdir(parents=True)
    for number in range(times * len(files)):
        file = files[number % len(files)]
        shutil.copy(file, target / f"data_{number}{file.name[file.name.index('.') :]}")
    return folder


def _first(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    raise FileNotFoundError(f"expected a folder {' or '.join(names)} in: {folder}")
