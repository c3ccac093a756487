"""A log of SGLang's server: accept length, accept rate and throughput of its decode lines, by running requests.

Old servers put the bonus token into the accept rate and newer ones do not; which of the two it was is seen from rate
and length on the same lines, or it is left out. Lines whose interval began idle tell a low throughput: hence a median.
"""

import datetime
import math
import re
import statistics
from array import array
from collections.abc import Sequence

from orchestrator.errors import InvalidRunError
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Origin, assembled
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Place
from orchestrator.importers.served_by import arguments_of, hard_of
from orchestrator.importers.source import Source
from orchestrator.records.measurement import MeasurementSet

KIND = "sglang-log"
_LINE = re.compile(r"Decode batch.*?#running-req: (?P<running>\d{1,6})\b")
_LINE_BYTES = re.compile(_LINE.pattern.encode())
_FIELDS = {
    "length": re.compile(r"accept(?:ance)?[ _-]len(?:gth)?: (-?[\d.]{1,12}|nan|inf)"),
    "rate": re.compile(r"accept(?:ance)?[ _-]rate: (-?[\d.]{1,12}|nan|inf)"),
    "speed": re.compile(r"gen throughput \(token/s\): (-?[\d.]{1,15}|nan|inf)"),
}
_START = re.compile(r"server_args=(?:ServerArgs\(|\{)")
_ARGUMENT = re.compile(r"(?:'(\w{1,60})': |\b(\w{1,60})=)('(?:[^'\\]|\\.)*'|[\w.+-]+)(?=[,)}])")
_VALUES = {"None": None, "True": True, "False": False}
_CLOCK = re.compile(r"\[(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)")
_MISSING = -1.0
Lines = dict[str, "array[float]"]
"""The numbers of decode lines by field: NaN where it is none, `_MISSING` where a line does not tell it."""


def fits(source: Source) -> bool:
    """Whether the text has decode lines."""
    return _LINE_BYTES.search(source.data) is not None


def measured(source: Source) -> MeasurementSet:
    """The measurements of a log. Raises InvalidRunError where it has no decode line, or those of several servers."""
    starts: list[str] = []
    groups: dict[str, Lines] = {}
    when: datetime.datetime | None = None
    for line in source.lines():
        text = line.text
        if _START.search(text):
            starts.append(text)
        if found := _LINE.search(text):
            lines = groups.setdefault(found["running"], {name: array("d") for name in _FIELDS})
            for name in _FIELDS:
                lines[name].append(_value(text, name, line.where))
            when = when or _moment(text)
    if len(starts) > 1:
        raise InvalidRunError(f"{source.name}: expected the log of one server, found {len(starts)} starts")
    if not groups:
        raise InvalidRunError(f"{source.name}: expected decode lines (`Decode batch ...`), found none")
    arguments = _arguments(starts[0]) if starts else {}
    points = [_point(source, running, some, arguments) for running, some in groups.items()]
    unknown: tuple[str, ...] = ("the load, and which requests were warm-up: a log has those that ran at once",)
    if when is not None:
        unknown += ("the time zone of its clock: taken as UTC",)
    origin = Origin(kind=KIND, tool="sglang server log", unknown=unknown,
                    created_unix_s=None if when is None else when.timestamp(),
                    date="" if when is None else when.strftime("%Y%m%d"))  # fmt: skip
    return assembled(source, origin, points)


def _moment(text: str) -> datetime.datetime | None:
    """When a line was written, in UTC."""
    found = _CLOCK.match(text)
    try:
        return None if found is None else datetime.datetime.fromisoformat(found[1]).replace(tzinfo=datetime.UTC)
    except ValueError:
        return None


def _value(line: str, name: str, where: str) -> float:
    told = _FIELDS[name].search(line)
    if told is None:
        return _MISSING
    try:
        value = float(told[1])
    except ValueError:
        raise InvalidRunError(f"{where}: expected a number, found: {told[0]}") from None
    least_is_zero = name == "rate" and value == 0  # of a drafter of which nothing is accepted
    return value if 0 < value < 1e9 or least_is_zero else math.nan


def _told(values: Sequence[float]) -> list[float]:
    return [value for value in values if value > 0]


def _left_out(lines: Lines) -> list[str]:
    """Numbers that are none, by name."""
    counts = {name: sum(map(math.isnan, values)) for name, values in lines.items()}
    return [f"{count} of {len(lines[name])} lines tell no number for {_NAMES[name]}, or 0: left out"
            for name, count in counts.items() if count]  # fmt: skip


_NAMES = {"length": "their accept length", "rate": "their accept rate", "speed": "their throughput"}


def _arguments(line: str) -> dict[str, str | None]:
    told = {new or old: value.strip("'") for new, old, value in _ARGUMENT.findall(line)}
    return arguments_of({name: _VALUES.get(value, value) for name, value in told.items()})


def _point(source: Source, running: str, lines: Lines, arguments: dict[str, str | None]) -> Point:
    lengths, speeds = _told(lines["length"]), _told(lines["speed"])
    figures = []
    if lengths:
        figures.append(_summary("accept_length_pooled", "tokens", words.LOG_INTERVALS, lengths))
    if speeds:
        figures.append(
            Figure(metric="output_throughput_tok_s", unit="tok/s", definition=words.LOG_THROUGHPUT,
                   value=statistics.median(speeds), is_last=True, n=len(speeds))
        )  # fmt: skip
    pairs = zip(lines["length"], lines["rate"], strict=True)
    rated = [(length, rate) for length, rate in pairs if length > 0 and rate >= 0]
    warnings = _left_out(lines)
    definition = _rate_definition(rated, arguments.get("speculative_num_draft_tokens"))
    if definition is not None:
        figures.append(_summary("accept_rate", "share", definition, [rate for _, rate in rated]))
    elif rated:
        warnings.append("its accept rate is left out: the log does not tell whether the bonus token is in it")
    side = "spec" if lengths else "plain" if arguments else None
    return Point(place=Place(source.name, 1), case={"side": side, "running_requests": running}, figures=figures,
                 hard=hard_of(arguments), arguments=arguments, warnings=tuple(warnings))  # fmt: skip


def _rate_definition(lines: Sequence[tuple[float, float]], width: str | None) -> str | None:
    """Which of both formulas fits the length and rate of every line as rounded there."""
    if not lines or width is None or not width.isdigit() or int(width) < 2:
        return None
    nodes = int(width)
    with_bonus = all(abs(rate - length / nodes) < 0.011 for length, rate in lines)
    without = all(abs(rate - (length - 1) / (nodes - 1)) < 0.011 for length, rate in lines)
    if with_bonus == without:
        return None
    return words.LOG_RATE_OLD if with_bonus else words.LOG_RATE


def _summary(metric: str, unit: str, definition: str, values: Sequence[float]) -> Figure:
    value = statistics.fmean(values)
    return Figure(metric=metric, unit=unit, definition=definition, value=value, is_last=True, n=len(values))
