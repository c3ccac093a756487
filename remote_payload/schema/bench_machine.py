"""The machine while a served benchmark was measured: `result/machine.jsonl.gz`, one `MachineSample` a line."""

from typing import Literal

from remote_payload.schema.record import Record


class MachineSample(Record):
    """The machine at one moment of a point; a GPU a sample."""

    kind: Literal["machine"] = "machine"
    time_unix_s: float
    gpu: int | None
    """None = the CPU's figures."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None
    memory_used_bytes: int | None = None
    utilization: float | None = None
    """Share of time busy, 0..1."""
    load_1min: float | None = None
    cpu_clock_mhz: float | None = None
