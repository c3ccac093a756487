"""What a speculative step costs, as a ratio r to a plain decode step, and what an accept length is worth at that cost.

S = AL / r: speculation pays where the accept length (bonus token included) is above r. r(k) = base + per_step * k for k
draft steps: `base` holds the verification, sampling and overhead, `per_step` a draft forward. r belongs to a target, a
GPU, a parallelism and a batch; it is given here, never measured. Form and signs as Leviathan et al. 2023
(https://arxiv.org/abs/2211.17192), where base is 1.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from orchestrator.errors import ConfigError, UsageError
from remote_payload.schema.record import Record, SchemaError, from_value, require

FORMS = "`1.9`, `1.47+0.16k` (k draft steps) or `46.7/90@1.9` (tok/s with the drafter / without @ accept length)"

MOST = 1e6
"""Far above any cost or throughput, and far below where floats end."""

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_LINE = re.compile(rf"{_NUMBER}(?:\+{_NUMBER}\*?k)?")
_MEASURED = re.compile(rf"{_NUMBER}/{_NUMBER}@{_NUMBER}")


class StepCost(Record):
    """r(k) = base + per_step * k, also `[[step_costs]]` of eagle3.toml.

    Where `target` or `gpu` is set, it holds for those alone.
    """

    base: float
    per_step: float = 0.0
    source: str = ""
    """Who says so."""
    target: str | None = None
    """Name of the target's folder, or its class."""
    gpu: str | None = None
    """Part of the device's name."""

    def __post_init__(self) -> None:
        for name, value in (("base", self.base), ("per_step", self.per_step)):
            require(0 <= value <= MOST, f"`{name}` must be 0..{MOST:.0f}, found: {value}")
        require(self.base + self.per_step > 0, "`base` and `per_step` must not both be 0")

    def ratio(self, steps: int) -> float:
        """The ratio r at so many draft steps."""
        return self.base + self.per_step * steps

    @property
    def words(self) -> str:
        """e.g. `1.47 + 0.16 k`."""
        return f"{self.base:.4g}" + (f" + {self.per_step:.4g} k" if self.per_step else "")


def parse_step_cost(text: str) -> StepCost:
    """Read `--step-cost`. Raises UsageError naming the forms."""
    compact = text.replace(" ", "")
    if found := _MEASURED.fullmatch(compact):
        served, plain, length = (_checked(part, text) for part in found.groups())
        if not (served and plain):
            raise UsageError(f"--step-cost: expected tok/s above 0, found: {text!r}")
        return StepCost(base=measured_ratio(served, plain, length), source=f"--step-cost {text}")
    if found := _LINE.fullmatch(compact):
        base, per_step = (_checked(part or "0", text) for part in found.groups())
        if base + per_step > 0:
            return StepCost(base=base, per_step=per_step, source=f"--step-cost {text}")
    raise UsageError(f"--step-cost: expected {FORMS}, found: {text!r}")


def stored_costs(tables: Sequence[Mapping[str, object]], where: str) -> tuple[StepCost, ...]:
    """The `[[step_costs]]` of eagle3.toml. Raises ConfigError naming the file (`where`), the table and the key."""
    costs = []
    for number, table in enumerate(tables, start=1):
        try:
            costs.append(from_value(StepCost, {"source": where, **table}))
        except SchemaError as refused:
            path, _, rest = str(refused).removeprefix("$").partition(": ")
            key = f"`{path.lstrip('.')}`: " if path else ""
            raise ConfigError(f"{where}: step_costs, table {number}: {key}{rest}") from None
    return tuple(costs)


def measured_ratio(served_tok_s: float, plain_tok_s: float, accept_length: float) -> float:
    """The ratio r from throughputs with and without a drafter and the accept length they were measured at: AL / S."""
    return accept_length / (served_tok_s / plain_tok_s)


def best_steps(accept_lengths: Sequence[float | None], cost: StepCost) -> int | None:
    """The number of draft steps with the largest AL / r; `accept_lengths[k - 1]` is that of k steps. None = unknown.

    Equal to adding step k+1 while the joint chance of its token exceeds per_step times the speed-up so far.
    """
    speedups = [
        (length / cost.ratio(steps), -steps)
        for steps, length in enumerate(accept_lengths, start=1)
        if length is not None
    ]
    return -max(speedups)[1] if speedups else None


def known_cost(
    costs: Sequence[StepCost], *, target: str | None, target_class: str | None, device: str
) -> StepCost | None:
    """The first stored cost that holds for this target (its folder or class) and this device; None = none does."""
    folder = None if target is None else PurePosixPath(target).name
    names = {name.lower() for name in (folder, target_class) if name}
    for cost in costs:
        right_target = cost.target is None or cost.target.lower() in names
        if right_target and (cost.gpu is None or cost.gpu.lower() in device.lower()):
            return cost
    return None


def _checked(number: str, text: str) -> float:
    value = float(number)
    if value > MOST:
        raise UsageError(f"--step-cost: expected numbers of at most {MOST:.0f}, found: {text!r}")
    return value
