"""`requests.jsonl.gz`: each request is there as soon as it is over, whatever ends the job.

A gzip file of members, one a point. While a point is under way its member is stored uncompressed and written through
after every line: cheap enough for the thread that listens to the streams, and readable up to the last whole line
wherever it is cut. Once the point is over it gives way to a compressed member in order of sending.
"""

import gzip
import json
import zlib
from pathlib import Path

from remote_payload.schema.bench import RequestSample

_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6


class KeptRequests:
    """The file of one job's requests. Every method raises OSError where the disk refuses."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._began = 0
        """Where the member of the point under way begins, in bytes."""
        self._member: zlib._Compress | None = None
        self._order: list[int] = []
        """The index of each of its lines."""
        self.count = 0
        """Requests that are in the file."""

    def add(self, sample: RequestSample) -> None:
        """Write one request of the point under way."""
        if self._member is None:
            self._member = zlib.compressobj(0, zlib.DEFLATED, _GZIP)
        self._order.append(sample.index)
        self._file.write(self._member.compress(_line(sample)) + self._member.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()
        self.count += 1

    def settle(self) -> None:
        """The point is over: sort and compress what was added."""
        if self._member is None:
            return
        self._file.seek(self._began)
        lines = zlib.decompressobj(_GZIP).decompress(self._file.read()).splitlines(keepends=True)
        in_order = sorted(zip(self._order, lines, strict=True), key=lambda numbered: numbered[0])
        compressed = gzip.compress(b"".join(line for _, line in in_order), _LEVEL)
        self._file.seek(self._began)
        self._file.write(compressed)
        self._file.truncate()  # flushes first; a file that ends here is whole
        self._began, self._member, self._order = self._file.tell(), None, []

    def close(self) -> None:
        """Settle what was added, and close the file."""
        try:
            self.settle()
        finally:
            self._file.close()


def _line(sample: RequestSample) -> bytes:
    """As `to_json`, which copies every chunk's time first: many times as long. A sample's fields are plain values."""
    return json.dumps(vars(sample), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
