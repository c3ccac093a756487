"""`hits.jsonl.gz`, `heldout.jsonl.gz`: first every RowFacts, then every ReadingHits, written as they come.

Neither is held in memory.
"""

import gzip
import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from remote_payload.schema.record import to_json
from remote_payload.schema.standalone import ReadingHits, RowFacts

NAME = "hits.jsonl.gz"
HELDOUT_NAME = "heldout.jsonl.gz"


class HitsFile:
    """Two gzip streams side by side, joined at the end: gzip members may simply be concatenated.

    Nothing under the final name exists before `finish`; leaving the context without it removes the pieces.
    """

    def __init__(self, folder: Path, name: str = NAME) -> None:
        self.path = folder / name
        self._pieces = (folder / f".{name}.rows.tmp", folder / f".{name}.hits.tmp")
        # A fixed time stamp, so that equal results are equal files.
        self._files = tuple(gzip.GzipFile(piece, "wb", compresslevel=6, mtime=0) for piece in self._pieces)

    def __enter__(self) -> "HitsFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file, piece in zip(self._files, self._pieces, strict=True):
            with suppress(OSError):  # closing flushes, and the disk may be what failed
                file.close()
            piece.unlink(missing_ok=True)

    def add_row(self, facts: RowFacts) -> None:
        """Append one row's facts."""
        self._files[0].write(to_json(facts).encode() + b"\n")

    def add_hits(self, hits: ReadingHits) -> None:
        """Append one reading's hits on one row."""
        self._files[1].write(to_json(hits).encode() + b"\n")

    def finish(self) -> None:
        """Join the pieces and give them their name. Raises OSError."""
        for file in self._files:
            file.close()
        rows, hits = self._pieces
        with rows.open("ab") as out, hits.open("rb") as more:
            shutil.copyfileobj(more, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(rows, self.path)
