"""Whether speculation pays: speed-up against accept length, and the accept length from which it would."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.compare.counted import counted
from orchestrator.compare.served_pairing import Pairing, speedup_of, step_cost_of
from orchestrator.compare.stats import Estimate, wilson
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.report.document.blocks import Block, Chart, Guide, Section, Table, Text, Trace
from orchestrator.report.document.figures import (
    ACCEPT_LENGTHS,
    Figure,
    case_words,
    fact_of,
    figure,
    named,
    rounded,
    series_of,
)
from orchestrator.report.document.subject import Reported, in_time
from orchestrator.report.words import UNKNOWN, within

MOST = 8
"""Points in the figure; the table has all."""
THROUGHPUT = "output_throughput_tok_s"


@dataclass(frozen=True, kw_only=True)
class Economy:
    """One load with and without speculation."""

    name: str
    case: tuple[Fact, ...]
    length: Figure
    pairing: Pairing
    """Speed-up and step cost r with their intervals; the outputs are not at hand, so nothing is said of them."""

    @property
    def speedup(self) -> Estimate:
        """Throughput over that of plain decoding."""
        return self.pairing.speedup

    @property
    def step_cost(self) -> float | None:
        """Accept length / speed-up: what a speculative step costs in plain steps, and the accept length needed."""
        return self.pairing.step_cost


def economy_section(reported: Reported) -> Section | None:
    """Speed-up against accept length with the break-even line; None where no load was run on both sides."""
    found = [one for subject in in_time(reported.subjects) for one in economies(subject.measured)]
    if not found:
        return None
    several = len(reported.subjects) > 1
    runs = {named(subject.run_id) for subject in reported.drawn}
    shown = [one for one in found if one.name in runs][-MOST:] or found[-MOST:]
    blocks: list[Block] = [_economy_chart(shown, several=several), _economy_table(found, several=several)]
    if len(found) > len(shown):
        blocks.insert(
            1, Text(text=f"{len(shown)} of {len(found)} points are drawn. {reported.drawn_words}", kind="note")
        )
    return Section(name="economy", title="Does speculation pay?", blocks=tuple(blocks))


def economies(measured: MeasurementSet) -> Iterator[Economy]:
    """Every valid load whose accept length and speed-up are known."""
    plain = {_load(one): one for one in measured.measurements if fact_of(one.case, "side") == "plain"}
    for one in measured.measurements:
        lengths = series_of(one, ACCEPT_LENGTHS)
        speedup = _speedup(one, plain.get(_load(one)))
        if lengths is None or speedup is None or speedup.value is None or one.invalid:
            continue
        length = figure(lengths, one)
        yield Economy(
            name=named(measured.run_id), case=one.case, length=length, pairing=_pairing(length.estimate, speedup)
        )


def _pairing(length: Estimate, speedup: Estimate) -> Pairing:
    cost, nothing = step_cost_of(length, speedup), wilson(0, 0)
    return Pairing(
        speedup=speedup,
        user_speedup=None,
        accept_length=length.value,
        step_cost=cost.value,
        step_cost_low=cost.low,
        step_cost_high=cost.high,
        identical=nothing,
        plain_repeats_identical=nothing,
    )


def _speedup(spec: Measurement, plain: Measurement | None) -> Estimate | None:
    """From both sides' throughputs as the run's own verdict has it; of what tells no more from the ratios themselves.

    Repeats that are all three times as fast have ratios without any spread, and yet differ: the ratios hide that.
    """
    told = series_of(spec, ("speedup",))
    if told is not None and (told.level != "run" or min(told.y) <= 0):
        return figure(told, spec).estimate
    both = None if plain is None or plain is spec or plain.invalid else _throughputs(spec, plain)
    if told is not None and (both is None or both[0].keys != both[1].keys or both[0].keys != told.keys):
        return speedup_of(told.y, (1.0,) * len(told.y))
    return None if both is None else speedup_of(both[0].y, both[1].y)


def _throughputs(spec: Measurement, plain: Measurement) -> tuple[Series, Series] | None:
    ours, theirs = series_of(spec, (THROUGHPUT,)), series_of(plain, (THROUGHPUT,))
    if ours is None or theirs is None or not _positive(ours) or not _positive(theirs):
        return None
    return ours, theirs


def _positive(series: Series) -> bool:
    return min(series.y) > 0


def _load(measurement: Measurement) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((fact.name, fact.value) for fact in measurement.case if fact.name != "side"))


def _cost_words(pairing: Pairing) -> str:
    """e.g. `3.01 [2.95, 3.07]`."""
    if pairing.step_cost is None:
        return UNKNOWN
    told = rounded(pairing.step_cost)
    if pairing.step_cost_low is not None and pairing.step_cost_high is not None:
        told += f" [{rounded(pairing.step_cost_low)}, {rounded(pairing.step_cost_high)}]"
    return f"{told} (surely below 1: the plain side is suspicious)" if pairing.suspicious else told


def _economy_chart(shown: list[Economy], *, several: bool) -> Chart:
    traces, guides, words = [], [Guide(name="break-even: as fast as plain decoding", height=1.0)], []
    for one in shown:
        name = f"{one.name}: {case_words(one.case)}" if several else case_words(one.case)
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
        definition="Speed-up S: output throughput over that of plain decoding on the same prompts, ratio of means over "
        "pairs of repeats; bars: its 95 % interval over three and more pairs. r = accept length / S is what a "
        "speculative step costs in plain steps; where a load's slanted line crosses 1 is the accept length from which "
        "speculation pays.",
        x_label="accept length, tokens a verify step",
        y_label="speed-up over plain decoding",
        traces=tuple(traces),
        guides=tuple(guides),
    )


def _economy_table(found: list[Economy], *, several: bool) -> Table:
    rows = []
    for one in found:
        pairs = counted(one.speedup.rows, "pair")
        rows.append(
            (
                one.name,
                case_words(one.case),
                {True: "pays", False: "does not pay", None: "cannot tell"}[one.pairing.pays],
                one.length.words,
                f"{within(one.speedup)}, n={pairs} of repeats",
                _cost_words(one.pairing),
            )
        )
    head = ("run", "load", "speculation", "accept length", "speed-up [95 %]", "r = break-even accept length [95 %]")
    first = 0 if several else 1
    return Table(
        caption="Where speculation pays: accept length above r",
        head=head[first:],
        rows=tuple(row[first:] for row in rows),
        verdicts=2 - first,
        folded=len(rows) > 40,
    )
