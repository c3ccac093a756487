"""How fast a server was under load: throughput against concurrency, and every load in a table."""

from collections.abc import Iterator

from orchestrator.records.measurement import Measurement
from orchestrator.report.document.blocks import Block, Chart, Section, Table, Text, Trace
from orchestrator.report.document.figures import (
    Figure,
    case_words,
    figure,
    named,
    number_of,
    series_of,
    title_of,
)
from orchestrator.report.document.subject import Reported, in_time
from orchestrator.report.words import UNKNOWN

MOST = 8
"""Lines in one figure; the table has all."""
THROUGHPUT = "output_throughput_tok_s"
BESIDE = ("accept_length_pooled", "accept_length_per_verify", "user_tok_s", "ttft_s", "tpot_s", "e2e_s")


def load_section(reported: Reported) -> Section | None:
    """Throughput against concurrency, with its table; None where no case has a throughput."""
    lines: dict[str, list[tuple[float, Figure]]] = {}
    rows: list[tuple[str, ...]] = []
    drawn, several = {named(subject.run_id) for subject in reported.drawn}, len(reported.subjects) > 1
    for name, measurement in _measurements(reported):
        series = series_of(measurement, (THROUGHPUT,))
        if series is None:
            continue
        found = figure(series, measurement)
        rows.append(_row(name, measurement, found))
        users = number_of(measurement.case, "concurrency")
        is_drawn = name in drawn and users is not None and users > 0 and not found.invalid
        if is_drawn and users is not None and found.estimate.value is not None:
            lines.setdefault(_line_name(name if several else "", measurement), []).append((users, found))
    if not rows:
        return None
    blocks: list[Block] = [_throughput(lines)] if lines else []
    words = reported.drawn_words
    if len(lines) > MOST:
        words = f"{words} The last {MOST} of {len(lines)} lines are drawn; the table has all."
    if words:
        blocks.append(Text(text=words.strip(), kind="note"))
    blocks += _speed_table(rows, several=several)
    return Section(name="load", title="Speed under load", blocks=tuple(blocks))


def _speed_table(rows: list[tuple[str, ...]], *, several: bool) -> list[Block]:
    """The table without columns that say nothing, and what those would have said."""
    head = ("run", "load", "output throughput", *(title_of(name) for name in BESIDE), "no measurement because")
    told = [at for at in range(len(head)) if any(row[at] not in ("", UNKNOWN) for row in rows) and (at or several)]
    untold = [head[at] for at in range(3, len(head) - 1) if at not in told]
    blocks: list[Block] = [
        Table(
            caption="Speed of every load; intervals are over what n counts",
            head=tuple(head[at] for at in told),
            rows=tuple(tuple(row[at] for at in told) for row in rows),
            folded=len(rows) > 40,
        )
    ]
    if untold:
        blocks.append(Text(text=f"Unknown of every load here: {', '.join(untold)}.", kind="note"))
    return blocks


def _throughput(lines: dict[str, list[tuple[float, Figure]]]) -> Chart:
    shown = list(lines.items())[-MOST:]
    traces = []
    for name, points in shown:
        points.sort(key=lambda one: one[0])
        estimates = [found.estimate for _, found in points]
        traces.append(
            Trace(
                name=name,
                x=tuple(users for users, _ in points),
                y=tuple(one.value or 0.0 for one in estimates),
                low=tuple(one.low for one in estimates),
                high=tuple(one.high for one in estimates),
            )
        )
    told = "; ".join(
        f"{name}: {', '.join(f'{found.words} at {_users(users)}' for users, found in points)}" for name, points in shown
    )
    definition = shown[0][1][0][1].series.definition
    return Chart(
        name="throughput",
        title="Output throughput against concurrency",
        told=f"{told}.",
        definition=f"{definition}. Points: geometric mean over server starts, of one start over its repeats; "
        "bars: 95 % interval over these (Student's t), none below three. Loads that are no measurement are left out.",
        x_label="users at once",
        y_label="output tokens a second",
        traces=tuple(traces),
        log2_x=_spreads([users for _, points in shown for users, _ in points]),
    )


def _users(count: float) -> str:
    return f"{count:g} user{'' if count == 1 else 's'}"


def _spreads(values: list[float]) -> bool:
    return max(values) / min(values) >= 8


def _row(name: str, measurement: Measurement, found: Figure) -> tuple[str, ...]:
    others = []
    for metric in BESIDE:
        series = series_of(measurement, (metric,))
        others.append(UNKNOWN if series is None else figure(series, measurement).words)
    return (name, case_words(measurement.case), found.words, *others, "; ".join(measurement.invalid))


def _line_name(name: str, measurement: Measurement) -> str:
    rest = tuple(fact for fact in measurement.case if fact.name not in ("concurrency", "request_rate"))
    words = case_words(rest) if rest else ""
    return ": ".join(part for part in (name, words) if part) or "throughput"


def _measurements(reported: Reported) -> Iterator[tuple[str, Measurement]]:
    for subject in in_time(reported.subjects):
        for measurement in subject.measured.measurements:
            yield named(subject.run_id), measurement
