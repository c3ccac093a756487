"""The machine while it is measured, once a second: GPUs by nvidia-smi, the CPU by /proc. A hung tool hangs nobody."""

import contextlib
import csv
import gzip
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from remote_payload.bounded import BoundedChild
from remote_payload.gpus.choice import leased_indices
from remote_payload.schema.bench_machine import MachineSample
from remote_payload.schema.record import to_json
from remote_payload.sglang_bench.strays import Strays

NAME = "machine.jsonl.gz"
INTERVAL_S = 1.0
DEADLINE_S = 5.0
FIELDS = "index,clocks.sm,clocks.mem,power.draw,temperature.gpu,{throttle},memory.used,utilization.gpu"
THROTTLE = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""Newer drivers' name first."""
USUAL_PLACES = "/usr/bin:/usr/local/bin:/usr/lib/wsl/lib"
PROC = Path("/proc")

Warn = Callable[[str, str], None]


class Machine:
    """Samples into `machine.jsonl.gz` of the result folder while `sampling()` is entered."""

    def __init__(self, folder: Path, warn: Warn, strays: Strays | None = None) -> None:
        """`strays` are looked for now and then, if anybody is to look for them."""
        self._strays = strays
        self._file = gzip.open(folder / NAME, "wt", encoding="ascii")  # noqa: SIM115 - closed by close()
        self._warn = warn
        self._tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=USUAL_PLACES)
        self._throttle = 0
        self._busy = _busy_and_all()

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample until left; leaving waits for one call of nvidia-smi at most."""
        over = threading.Event()
        thread = threading.Thread(target=self._until, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(DEADLINE_S + 2 * INTERVAL_S)

    def _until(self, over: threading.Event) -> None:
        due_s = time.monotonic()
        while not over.is_set():
            for sample in (self._cpu(), *self._gpus()):
                self._file.write(to_json(sample) + "\n")
            self._file.flush()  # whatever ends the job leaves these
            if self._strays is not None:
                self._strays.look_when_due()
            due_s = max(due_s + INTERVAL_S, time.monotonic())
            over.wait(due_s - time.monotonic())

    def _cpu(self) -> MachineSample:
        before, self._busy = self._busy, _busy_and_all()
        spent = self._busy[1] - before[1]
        return MachineSample(
            time_unix_s=time.time(),
            gpu=None,
            utilization=(self._busy[0] - before[0]) / spent if spent > 0 else None,
            load_1min=os.getloadavg()[0],
            cpu_clock_mhz=_cpu_clock_mhz(),
        )

    def _gpus(self) -> tuple[MachineSample, ...]:
        if self._tool is None:
            return ()
        question = f"--query-gpu={FIELDS.format(throttle=THROTTLE[self._throttle])}"
        try:
            done = BoundedChild([self._tool, question, "--format=csv,noheader,nounits"]).finish(
                time.monotonic() + DEADLINE_S
            )
        except OSError as error:
            return self._give_up(f"nvidia-smi cannot be run ({error.strerror}): {self._tool}")
        if done is None:
            return self._give_up(f"nvidia-smi gave no answer within {DEADLINE_S:g} s and was left out from then on")
        code, text = done
        if code != 0 and self._throttle + 1 < len(THROTTLE):
            self._throttle += 1
            return self._gpus()
        if code != 0:
            return self._give_up(f"nvidia-smi ended with exit code {code}: {' '.join(text.split())[:200]}")
        own = leased_indices(os.environ)  # a colleague's GPU is no part of the measurement
        return tuple(item for item in parse_gpu_lines(text, time.time()) if own is None or item.gpu in own)

    def _give_up(self, problem: str) -> tuple[MachineSample, ...]:
        self._tool = None
        self._warn("nvidia_smi", f"no GPU clocks and temperatures: {problem}")
        return ()


def parse_gpu_lines(text: str, time_unix_s: float) -> tuple[MachineSample, ...]:
    """nvidia-smi's CSV; what it cannot tell (`[N/A]` and the like) is None, lines of another shape are left out."""
    samples = []
    for fields in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(fields) != 8 or not fields[0].strip().isdigit():
            continue
        sm, memory, power, temperature = (_number(field) for field in fields[1:5])
        used, busy = _number(fields[6]), _number(fields[7])
        samples.append(
            MachineSample(
                time_unix_s=time_unix_s,
                gpu=int(fields[0]),
                sm_clock_mhz=sm,
                memory_clock_mhz=memory,
                power_w=power,
                temperature_c=temperature,
                throttle=None if fields[5].startswith("[") else fields[5].strip(),
                memory_used_bytes=None if used is None else int(used * 1024 * 1024),
                utilization=None if busy is None else busy / 100,
            )
        )
    return tuple(samples)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _busy_and_all() -> tuple[float, float]:
    """Ticks that all cores were busy and that passed, since boot; zeros where /proc does not tell."""
    try:
        ticks = [int(word) for word in (PROC / "stat").read_text("ascii").splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return 0.0, 0.0
    idle = ticks[3] + ticks[4]
    return float(sum(ticks) - idle), float(sum(ticks))


def _cpu_clock_mhz() -> float | None:
    """Mean over the cores, of the governor's figures or /proc/cpuinfo's; None where neither tells."""
    khz = []
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with contextlib.suppress(OSError, ValueError):
            khz.append(float(path.read_text("ascii")))
    if khz:
        return sum(khz) / len(khz) / 1000
    try:
        lines = (PROC / "cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    mhz = [
        value for line in lines if line.startswith("cpu MHz") and (value := _number(line.split(":")[-1])) is not None
    ]
    return sum(mhz) / len(mhz) if mhz else None
