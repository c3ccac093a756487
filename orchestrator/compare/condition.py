"""What a run is expected to do: `>= 2.4`, `[concurrency=4] >= 1.3 * baseline:plain`; read strictly, nothing evaluated.

CONDITION  [LOAD] OPERATOR VALUE
LOAD       KEY=VALUE, several with commas: the loads that are meant; `vary=KEY`: what may differ from the baseline
OPERATOR   >=  <=  >  <
VALUE      a number with or without its unit; baseline:NAME; NUMBER * baseline:NAME for what is compared as a
           ratio; baseline:NAME + NUMBER or - NUMBER for shares

A number without a unit is in the metric's own, which its name tells (`ttft_s`, `output_throughput_tok_s`); where
another one is as likely meant (`ttft_s <= 500`) it is refused, and so is what the metric can never be.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.compare.closest import closest
from orchestrator.compare.metrics import METRICS, Metric, metric_of
from orchestrator.compare.possible import impossible, meanings
from orchestrator.errors import JobFileError

Operator = Literal[">=", "<=", ">", "<"]
UNITS = {
    "s": {"s": 1.0, "ms": 1e-3},
    "share": {"share": 1.0, "%": 0.01, "points": 0.01, "point": 0.01, "pt": 0.01},
    "ratio": {"x": 1.0, "ratio": 1.0},
}
"""By the metric's own unit: what may stand behind a number, and what it is worth."""
LONGEST = 300
_NUMBER = r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9]{1,3})?"
_CONDITION = re.compile(r"\s*(?:\[(?P<load>[^\[\]]*)\])?\s*(?P<op>>=|<=|>|<)\s*(?P<value>\S.*?)\s*", re.DOTALL)
_BARE = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[A-Za-z%][A-Za-z/_%]*)?")
_BASELINE = re.compile(
    rf"(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?P<name>(?:baseline|published):[^\s+*]+?)"
    rf"(?:\s+(?P<sign>[+-])\s+(?P<offset>{_NUMBER})\s*(?P<unit>[A-Za-z%]+)?)?"
)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One expectation."""

    metric: Metric
    text: str
    """As it was written, without the metric."""
    source: str
    """Where it was written."""
    operator: Operator
    where: Mapping[str, str] = field(default_factory=dict)
    vary: tuple[str, ...] = ()
    value: float | None = None
    """In the metric's unit; None = against a baseline."""
    unit: str | None = None
    """As it was written behind the value, e.g. `ms`; None = the metric's own."""
    baseline: str | None = None
    """`baseline:NAME` or `published:NAME`."""
    factor: float = 1.0
    offset: float = 0.0
    """Points, for shares."""

    @property
    def words(self) -> str:
        """e.g. `accept_length_pooled >= 2.4`."""
        return f"{self.metric.name} {self.text.strip()}"


def parse_condition(name: str, text: object, source: str) -> Condition:
    """Read one expectation on a metric. Raises JobFileError naming source, metric and what was expected."""
    where = f"{source}: `expect.{name[:80]}`"
    metric = metric_of(name)
    if metric is None:
        close = " or ".join(f"`{one}`" for one in closest(name, METRICS))
        raise JobFileError(
            f"{where}: no such metric",
            hint=f"did you mean {close}?" if close else f"there are: {', '.join(METRICS)}",
        )
    found = _CONDITION.fullmatch(text) if isinstance(text, str) and len(text) <= LONGEST else None
    if found is None:
        raise JobFileError(f'{where}: expected a condition like ">= 2.4" or "[concurrency=4] >= 1.3 * baseline:plain", '
                           f"found: {str(text)[:LONGEST]!r}")  # fmt: skip
    load = _load(found["load"] or "", where)
    vary = tuple(value for key, value in load if key == "vary")
    base = Condition(
        metric=metric,
        text=str(text),
        source=source,
        operator=_operator(found["op"]),
        where={key: value for key, value in load if key != "vary"},
        vary=vary,
    )
    return _with_value(base, found["value"], where)


def _operator(text: str) -> Operator:
    known: dict[str, Operator] = {">=": ">=", "<=": "<=", ">": ">", "<": "<"}
    return known[text]


def _load(text: str, where: str) -> list[tuple[str, str]]:
    found = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise JobFileError(f"{where}: expected KEY=VALUE in the brackets, found: {part!r}")
        found.append((key, value))
    return found


def _with_value(base: Condition, text: str, where: str) -> Condition:
    import dataclasses  # noqa: PLC0415 - one use

    bare, against = _BARE.fullmatch(text), _BASELINE.fullmatch(text)
    if bare is not None:
        value = _scaled(bare["number"], bare["unit"], base.metric, where)
        _require_sense(base.metric, value, bare["unit"], where)
        return dataclasses.replace(base, value=value, unit=bare["unit"])
    if against is None:
        raise JobFileError(f"{where}: expected a number or [NUMBER *] baseline:NAME, found: {text!r}")
    factor = float(against["factor"] or 1.0)
    offset = 0.0
    if against["offset"] is not None:
        offset = _scaled(against["sign"] + against["offset"].lstrip("+"), against["unit"], base.metric, where)
        if base.metric.change == "difference" and abs(offset) >= 1:
            raise JobFileError(
                f"{where}: expected less than 100 points, found: {against['offset']}; `1 point` is written so, or 0.01"
            )
    if base.metric.change == "difference" and factor != 1.0:
        raise JobFileError(f"{where}: shares are compared by difference: baseline:NAME - 0.01, not a factor")
    if base.metric.change == "ratio" and offset:
        raise JobFileError(f"{where}: this metric is compared by ratio: 0.98 * baseline:NAME, not a difference")
    if not (factor > 0 and math.isfinite(factor)):
        raise JobFileError(f"{where}: expected a factor above 0, found: {against['factor']}")
    return dataclasses.replace(base, baseline=against["name"], factor=factor, offset=offset)


def _scaled(number: str, unit: str | None, metric: Metric, where: str) -> float:
    known = UNITS.get(metric.unit, {metric.unit: 1.0})
    if unit is not None and unit not in known:
        raise JobFileError(f"{where}: `{metric.name}` is in {metric.unit} ({', '.join(known)}), found: {unit}")
    value = float(number) * known.get(unit or metric.unit, 1.0)
    if not math.isfinite(value):
        raise JobFileError(f"{where}: expected a finite number, found: {number}")
    return value


def _require_sense(metric: Metric, value: float, unit: str | None, where: str) -> None:
    """Refuse what the metric can never be, and a bare number that is as likely meant in another unit."""
    meant = meanings(metric, value) if unit is None else None
    if meant is not None:
        raise JobFileError(
            f"{where}: expected a unit with {value:g}, as `{metric.name}` is in {metric.unit}: "
            f"write `{meant[0]}` or `{meant[1]}`"
        )
    wrong = impossible(metric, value)
    if wrong is not None:
        raise JobFileError(f"{where}: expected {wrong[0]}, found: {value:g}", hint=wrong[1])
