"""The job that walks the whole path with no model: sleeps, prints, writes a result of a given size. Proves a host."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from remote_payload.failure import JobFailure
from remote_payload.schema import Event, Failure, SelftestJob

TICK_S = 0.5


def run(job: SelftestJob, result_folder: Path, report: Callable[[Event], None]) -> None:
    """Write `selftest.json` and `selftest.bin` into `result_folder`. Raises JobFailure when asked to fail."""
    report(Event(time_unix_s=time.time(), kind="phase", name="selftest"))
    print(f"selftest: {job.duration_s:g} s, {job.result_bytes} bytes", flush=True)  # noqa: T201 - part of the test
    _sleep(job.duration_s, report)
    if job.fail:
        raise JobFailure(Failure(kind="job", message="selftest was asked to fail", hint="leave out `fail`"))
    facts = {"python": sys.version.split()[0], "executable": sys.executable, "directory": str(Path.cwd())}
    (result_folder / "selftest.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    _fill(result_folder / "selftest.bin", job.result_bytes)


def _fill(path: Path, size_bytes: int) -> None:
    """Half a file is of no use, and takes room from whoever comes next. Raises OSError."""
    try:
        with path.open("wb") as file:
            left = size_bytes
            while left > 0:
                left -= file.write(os.urandom(min(left, 1 << 20)))
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sleep(duration_s: float, report: Callable[[Event], None]) -> None:
    begun_s = time.monotonic()
    while (done_s := time.monotonic() - begun_s) < duration_s:
        report(Event(time_unix_s=time.time(), kind="progress", name="sleep", done=done_s, total=duration_s, unit="s"))
        time.sleep(min(TICK_S, duration_s - done_s))
