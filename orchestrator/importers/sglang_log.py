"""A log of SGLang's server: accept length, accept rate and throughput of its decode lines, by running requests.

Old servers put the bonus token into the accept rate and newer ones do not; which of the two it was is seen from rate
and length on the same lines, or it is left out. Lines whose interval began idle tell a low throughput: hence a median.
"""

import re
import statistics
from collections.abc import Sequence

from orchestrator.errors import InvalidRunError
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Figure, Origin, Point, arguments_of, assembled, hard_of
from orchestrator.importers.source import Row, Source
from orchestrator.records.measurement import MeasurementSet

KIND = "sglang-log"
_LINE = re.compile(r"Decode batch.*?#running-req: (?P<running>\d{1,6})\b")
_FIELDS = {
    "length": re.compile(r"accept(?:ance)?[ _-]len(?:gth)?: (-?[\d.]{1,12}|nan|inf)"),
    "rate": re.compile(r"accept(?:ance)?[ _-]rate: (-?[\d.]{1,12}|nan|inf)"),
    "speed": re.compile(r"gen throughput \(token/s\): (-?[\d.]{1,15}|nan|inf)"),
}
_START = re.compile(r"server_args=(?:ServerArgs\(|\{)")
_ARGUMENT = re.compile(r"(?:'(\w{1,60})': |\b(\w{1,60})=)('(?:[^'\\]|\\.)*'|[\w.+-]+)(?=[,)}])")
_VALUES = {"None": None, "True": True, "False": False}
Line = dict[str, float]


def fits_text(text: str) -> bool:
    """Whether the text has decode lines."""
    return _LINE.search(text) is not None


def measured(source: Source) -> MeasurementSet:
    """The measurements of a log. Raises InvalidRunError where it has no decode line, or those of several servers."""
    lines = source.text.splitlines()
    starts = [line for line in lines if _START.search(line)]
    if len(starts) > 1:
        raise InvalidRunError(f"{source.name}: expected the log of one server, found {len(starts)} starts")
    arguments = _arguments(starts[0]) if starts else {}
    groups: dict[str, list[Line]] = {}
    for number, line in enumerate(lines, 1):
        if found := _LINE.search(line):
            groups.setdefault(found["running"], []).append(_values(line, f"{source.name}, line {number}"))
    if not groups:
        raise InvalidRunError(f"{source.name}: expected decode lines (`Decode batch ...`), found none")
    points = [_point(source, running, some, arguments) for running, some in groups.items()]
    unknown = ("the load, and which requests were warm-up: a log has those that ran at once",)
    return assembled(source, Origin(kind=KIND, tool="sglang server log", unknown=unknown), points)


def _values(line: str, where: str) -> Line:
    found = {}
    for name, pattern in _FIELDS.items():
        if told := pattern.search(line):
            try:
                value = float(told[1])
            except ValueError:
                raise InvalidRunError(f"{where}: expected a number, found: {told[0]}") from None
            if 0 < value < 1e9:
                found[name] = value
    return found


def _arguments(line: str) -> dict[str, str | None]:
    told = {new or old: value.strip("'") for new, old, value in _ARGUMENT.findall(line)}
    return arguments_of({name: _VALUES.get(value, value) for name, value in told.items()})


def _point(source: Source, running: str, lines: Sequence[Line], arguments: dict[str, str | None]) -> Point:
    lengths = [line["length"] for line in lines if "length" in line]
    speeds = [line["speed"] for line in lines if "speed" in line]
    figures = []
    if lengths:
        figures.append(_summary("accept_length_pooled", "tokens", words.LOG_INTERVALS, lengths))
    if speeds:
        figures.append(
            Figure(metric="output_throughput_tok_s", unit="tok/s", definition=words.LOG_THROUGHPUT,
                   value=statistics.median(speeds), is_last=True, n=len(speeds))
        )  # fmt: skip
    rated = [line for line in lines if "length" in line and "rate" in line]
    warnings: tuple[str, ...] = ()
    definition = _rate_definition(rated, arguments.get("speculative_num_draft_tokens"))
    if definition is not None:
        figures.append(_summary("accept_rate", "share", definition, [line["rate"] for line in rated]))
    elif rated:
        warnings = ("its accept rate is left out: the log does not tell whether the bonus token is in it",)
    side = "spec" if lengths else "plain" if arguments else None
    return Point(row=Row({}, source.name, 1), case={"side": side, "running_requests": running}, figures=figures,
                 hard=hard_of(arguments), arguments=arguments, warnings=warnings)  # fmt: skip


def _rate_definition(lines: Sequence[Line], width: str | None) -> str | None:
    """Which of both formulas fits every line as rounded there."""
    if not lines or width is None or not width.isdigit() or int(width) < 2:
        return None
    nodes = int(width)
    with_bonus = all(abs(line["rate"] - line["length"] / nodes) < 0.011 for line in lines)
    without = all(abs(line["rate"] - (line["length"] - 1) / (nodes - 1)) < 0.011 for line in lines)
    if with_bonus == without:
        return None
    return words.LOG_RATE_OLD if with_bonus else words.LOG_RATE


def _summary(metric: str, unit: str, definition: str, values: Sequence[float]) -> Figure:
    value = statistics.fmean(values)
    return Figure(metric=metric, unit=unit, definition=definition, value=value, is_last=True, n=len(values))
