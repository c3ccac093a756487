"""How fast a server was under load, and whether speculation pays."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.compare.served_pairing import speedup_of
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.report.document.blocks import Block, Chart, Guide, Section, Table, Text, Trace
from orchestrator.report.document.figures import (
    ACCEPT_LENGTHS,
    Figure,
    case_words,
    fact_of,
    figure,
    number_of,
    rounded,
    series_of,
    title_of,
)
from orchestrator.report.document.subject import Reported
from orchestrator.report.words import UNKNOWN, within

MOST = 8
"""Lines in one figure; the table has all."""
THROUGHPUT = "output_throughput_tok_s"
BESIDE = ("accept_length_pooled", "accept_length_per_verify", "user_tok_s", "ttft_s", "tpot_s", "e2e_s")


def load_section(reported: Reported) -> Section | None:
    """Throughput against concurrency, with its table; None where no case has a throughput."""
    lines: dict[str, list[tuple[float, Figure]]] = {}
    rows: list[tuple[str, ...]] = []
    for name, measurement in _measurements(reported):
        series = series_of(measurement, (THROUGHPUT,))
        if series is None:
            continue
        found = figure(series, measurement)
        rows.append(_row(name, measurement, found))
        users = number_of(measurement.case, "concurrency")
        if users is not None and users > 0 and not found.invalid and found.estimate.value is not None:
            lines.setdefault(_line_name(name, measurement), []).append((users, found))
    if not rows:
        return None
    blocks: list[Block] = [_throughput(lines)] if lines else []
    if len(lines) > MOST:
        blocks.append(Text(text=f"The last {MOST} of {len(lines)} lines are drawn; the table has all.", kind="note"))
    blocks.append(
        Table(
            caption="Speed of every load; intervals are over repeats, and over prompts for accept lengths",
            head=("run", "load", "output throughput", *(title_of(name) for name in BESIDE), "no measurement because"),
            rows=tuple(rows),
            folded=len(rows) > 40,
        )
    )
    return Section(name="load", title="Throughput against concurrency", blocks=tuple(blocks))


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
        f"{name}: {', '.join(f'{found.words} at {users:g} users' for users, found in points)}" for name, points in shown
    )
    definition = shown[0][1][0][1].series.definition
    return Chart(
        name="throughput",
        title="Output throughput against concurrency",
        told=f"{told}.",
        definition=f"{definition}. Points: mean over repeats; bars: 95 % interval over repeats (Student's t), none "
        "below three repeats. Loads that are no measurement are left out.",
        x_label="users at once",
        y_label="output tokens a second",
        traces=tuple(traces),
        log2_x=_spreads([users for _, points in shown for users, _ in points]),
    )


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
    return f"{name}: {case_words(rest)}" if rest else name


def _measurements(reported: Reported) -> Iterator[tuple[str, Measurement]]:
    for subject in reported.subjects:
        for measurement in subject.measured.measurements:
            yield subject.run_id, measurement


@dataclass(frozen=True, kw_only=True)
class Economy:
    """One load with and without speculation."""

    name: str
    case: tuple[Fact, ...]
    length: Figure
    speedup: Estimate

    @property
    def step_cost(self) -> float | None:
        """Accept length / speed-up: what a speculative step costs in plain steps, and the accept length needed."""
        if not self.speedup.value or self.length.estimate.value is None:
            return None
        return self.length.estimate.value / self.speedup.value


def economy_section(reported: Reported) -> Section | None:
    """Speed-up against accept length with the break-even line; None where no load was run on both sides."""
    found = [one for subject in reported.subjects for one in economies(subject.measured)]
    if not found:
        return None
    shown = found[-MOST:]
    blocks: list[Block] = [_economy_chart(shown), _economy_table(found)]
    if len(found) > MOST:
        blocks.insert(1, Text(text=f"The last {MOST} of {len(found)} points are drawn.", kind="note"))
    return Section(name="economy", title="Speed-up against accept length", blocks=tuple(blocks))


def economies(measured: MeasurementSet) -> Iterator[Economy]:
    """Every valid load whose accept length and speed-up are known."""
    plain = {_load(one): one for one in measured.measurements if fact_of(one.case, "side") == "plain"}
    for one in measured.measurements:
        lengths = series_of(one, ACCEPT_LENGTHS)
        speedup = _speedup(one, plain.get(_load(one)))
        if lengths is None or speedup is None or speedup.value is None or one.invalid:
            continue
        yield Economy(name=measured.run_id, case=one.case, length=figure(lengths, one), speedup=speedup)


def _speedup(spec: Measurement, plain: Measurement | None) -> Estimate | None:
    told = series_of(spec, ("speedup",))
    if told is not None:
        if told.level == "run" and min(told.y) > 0:
            return speedup_of(told.y, (1.0,) * len(told.y))
        return figure(told, spec).estimate
    if plain is None or plain is spec or plain.invalid:
        return None
    ours, theirs = series_of(spec, (THROUGHPUT,)), series_of(plain, (THROUGHPUT,))
    if ours is None or theirs is None or not _positive(ours) or not _positive(theirs):
        return None
    return speedup_of(ours.y, theirs.y)


def _positive(series: Series) -> bool:
    return min(series.y) > 0


def _load(measurement: Measurement) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((fact.name, fact.value) for fact in measurement.case if fact.name != "side"))


def _economy_chart(shown: list[Economy]) -> Chart:
    traces, guides, words = [], [Guide(name="break-even: as fast as plain decoding", height=1.0)], []
    for one in shown:
        name = f"{one.name}: {case_words(one.case)}"
        value, cost = one.length.estimate.value or 0.0, one.step_cost or 0.0
        traces.append(
            Trace(
                name=f"{name} (r = {rounded(cost)})",
                x=(value,),
                y=(one.speedup.value or 0.0,),
                low=(one.speedup.low,),
                high=(one.speedup.high,),
                style="points",
            )
        )
        words.append(
            f"{name}: accept length {rounded(value)}, speed-up {within(one.speedup)}, breaks even at {rounded(cost)}"
        )
    costs = [one.step_cost for one in shown if one.step_cost]
    drawn = sorted({min(costs), max(costs)}) if costs else []
    guides += [Guide(name=f"what r = {rounded(cost)} allows: accept length / r", slope=1 / cost) for cost in drawn]
    return Chart(
        name="economy",
        title="Speed-up against accept length",
        told=f"{'; '.join(words)}.",
        definition="Speed-up S: output throughput over that of plain decoding on the same prompts, geometric mean over "
        "pairs of repeats; bars: its 95 % interval over three and more pairs. r = accept length / S is what a "
        "speculative step costs in plain steps; where a load's slanted line crosses 1 is the accept length from which "
        "speculation pays.",
        x_label="accept length, tokens a verify step",
        y_label="speed-up over plain decoding",
        traces=tuple(traces),
        guides=tuple(guides),
    )


def _economy_table(found: list[Economy]) -> Table:
    rows = []
    for one in found:
        cost, low, high = one.step_cost, one.speedup.low, one.speedup.high
        value = one.length.estimate.value
        verdict = "cannot tell"
        if low is not None and high is not None:
            verdict = "pays" if low > 1 else "does not pay" if high < 1 else "cannot tell"
        odd = " (below 1: the plain side is suspicious)" if cost is not None and cost < 1 else ""
        pairs = "1 pair" if one.speedup.rows == 1 else f"{one.speedup.rows} pairs"
        rows.append(
            (
                one.name,
                case_words(one.case),
                one.length.words,
                f"{within(one.speedup)}, n={pairs} of repeats",
                UNKNOWN if cost is None or value is None else f"{rounded(cost)}{odd}",
                verdict,
            )
        )
    return Table(
        caption="Where speculation pays: accept length above r",
        head=("run", "load", "accept length", "speed-up [95 %]", "r = break-even accept length", "speculation"),
        rows=tuple(rows),
        verdicts=5,
        folded=len(rows) > 40,
    )
