"""The other side of `resident.py`: say `ready`, then measure a round for every line. For the peers' Pythons as well."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def peak_bytes() -> int:
    """The largest resident size of this process so far.

    Not getrusage's, which begins with the size of the process that started this one. Linux only.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("expected a line `VmHWM:` in: /proc/self/status")


def peers_arguments(*names: str) -> argparse.Namespace:
    """What a peer's driver was called with: `names` as texts, beside `steps` and `threads`."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    for name in ("steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


def answer(rounds: Mapping[str, Callable[[], dict[str, float]]], *, imported_bytes: int) -> None:
    """Run the named round for every line on stdin; answer with what it returned, its times and the memory so far.

    A round may say what its own `seconds` are, where not all of it counts.
    """
    print("ready", flush=True)
    for line in sys.stdin:
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        measured = rounds[line.strip()]()
        found = {"seconds": time.perf_counter() - begun_s, "cpu_seconds": time.process_time() - begun_cpu_s}
        memory = {"imported_bytes": imported_bytes, "peak_bytes": peak_bytes()}
        print(json.dumps({**found, **memory, **measured}), flush=True)
