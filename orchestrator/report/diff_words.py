"""The words and figures of a comparison that all its formats share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import TWO_NUMBERS, CaseComparison, Comparison, Difference, SetComparison
from orchestrator.compare.counted import counted
from orchestrator.compare.definitions import read_out
from orchestrator.compare.diff import UNSURE, decides
from orchestrator.compare.matching import case_words
from orchestrator.compare.pooling import Case
from orchestrator.compare.statistics.power import POWER, POWERS_OF_FEW
from orchestrator.compare.stats import Estimate
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.words import UNKNOWN, some_of

MOST_NAMED = 4
ORIGINS = {"typed": "a typed number", "published": "published, not measured here", "imported": "imported"}


@dataclass(frozen=True, kw_only=True)
class Names:
    """How metrics and loads are called."""

    metric: Callable[[str], str]
    load: Callable[[Case], str]


KEYS = Names(metric=str, load=case_words)
"""As options take them, e.g. `output_throughput_tok_s`, `side=spec concurrency=4`: in the terminal."""


def figure(value: float | None, unit: str) -> str:
    """A figure with its unit, e.g. `56.82 tok/s`, `71.3 %`, `2.104 tokens`, `0.63x`."""
    if value is None:
        return UNKNOWN
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit == "ratio":
        return f"{value:.3g}x"
    told = bare(value)
    return f"{told} {unit.removesuffix('s') if told == '1' and unit == 'tokens' else unit}".rstrip()


def bare(value: float | None) -> str:
    """Four digits and no exponent where that can be read."""
    if value is None:
        return UNKNOWN
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def cell(value: float | None, unit: str) -> str:
    """A figure in a table whose metric's name tells the unit."""
    if value is None:
        return UNKNOWN
    return figure(value, unit) if unit in ("share", "ratio") else bare(value)


def cell_within(found: Estimate, unit: str) -> str:
    """The same with its interval, e.g. `56.4 [55.9, 56.9]`."""
    if found.value is None or found.low is None or found.high is None:
        return cell(found.value, unit)
    return f"{cell(found.value, unit)} [{cell(found.low, unit)}, {cell(found.high, unit)}]"


def change_words(item: Comparison) -> str:
    """e.g. `+10.5 % [+8.5, +12.4]`, `-3.1 pt`, `-` where there is none."""
    return change_figure(item.change, points=item.metric.change == "difference")


def change_figure(change: Estimate, *, points: bool) -> str:
    """The same of a bare estimate."""
    if change.value is None:
        return "-"
    value = f"{100 * change.value:+.1f} {'pt' if points else '%'}"
    if change.low is None or change.high is None:
        return value
    return f"{value} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"


def samples(item: Comparison) -> str:
    """e.g. `80 pairs`, `5 v 5`, `5 v number`."""
    if item.pairs is not None:
        return counted(item.pairs, "pair")
    if item.method == TWO_NUMBERS:
        return "number v number"
    if item.level == "summary" and 1 in (item.n_ours, item.n_theirs):
        return f"{item.n_ours} v number" if item.n_theirs == 1 else f"number v {item.n_theirs}"
    return f"{item.n_ours} v {item.n_theirs}"


def p_value(item: Comparison) -> float | None:
    """The one that counts: corrected where there is a correction."""
    if item.p_adjusted is not None:
        return item.p_adjusted
    return item.tests[0].p if item.tests else None


def p_words(item: Comparison) -> str:
    """e.g. `0.0032`, `<0.0001`, `-`."""
    p = p_value(item)
    if p is None:
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def margin_words(item: Comparison) -> str:
    """e.g. `2 %`, `1 point`."""
    if item.metric.change == "difference":
        return f"{100 * item.margin:g} point{'' if item.margin == 0.01 else 's'}"
    return f"{100 * item.margin:g} %"


def definition(case: CaseComparison, metric: str) -> str:
    """What a metric counts, as our side defines it, else theirs."""
    for side in (case.ours, case.theirs):
        for series in side.series:
            if series.metric == metric and series.definition:
                return read_out(series.definition)
    return ""


def leading(found: SetComparison, asked: Asked) -> tuple[CaseComparison, Comparison] | None:
    """The comparison that made the verdict, with its load; None where nothing decides.

    Of several the first; where nothing could be told the largest change, in margins: it is what to look into.
    """
    made = [
        (case, item)
        for case in found.cases
        if case.verdict == found.verdict and not (case.ours.invalid or case.theirs.invalid)
        if asked.force or not case.hard
        for item in case.comparisons
        if decides(item, asked, case.comparisons) and item.verdict == case.verdict
    ]
    if not made:
        return None
    return max(made, key=lambda one: _in_margins(one[1])) if found.verdict in UNSURE else made[0]


def _in_margins(item: Comparison) -> float:
    return abs(item.change.value or 0.0) / (item.margin or 1.0)


def sentence(case: CaseComparison, item: Comparison, labels: tuple[str, str], names: Names = KEYS) -> str:
    """Everything about one metric: both figures, change, samples, test, margin. `labels`: of our side, of theirs."""
    unit, load = item.metric.unit, names.load(case.case) if case.case else ""
    sides = zip((item.ours, item.theirs), labels, strict=True)
    figures = " against ".join(f"{figure(side.value, unit)} ({label})" for side, label in sides)
    told = f"{names.metric(item.metric.name)}{f' at {load}' if load else ''}: {figures}"
    if item.change.value is None:
        return f"{told}; {item.note}" if item.note else told
    has_interval = item.change.low is not None
    told += f", {change_words(item)}{' (95 % interval)' if has_interval else ', no interval'}; n = {samples(item)}"
    if p_value(item) is not None:
        p = p_words(item).replace("<", "< ") if "<" in p_words(item) else f"= {p_words(item)}"
        told += f"; p {p} ({item.tests[0].name}{f', {item.correction}' if item.correction else ''})"
    return f"{told}; margin {margin_words(item)}"


def power_words(item: Comparison) -> str:
    """What so few samples could not show, and how many would; empty where that is not known."""
    if item.detectable is None:
        return ""
    unit = "points" if item.metric.change == "difference" else "%"
    told = f"{_taken(item)} can detect a change of {100 * item.detectable:.2g} {unit} or more ({_power(item)})"
    sides = (item.n_ours, item.n_theirs)
    have = item.pairs or (max(sides) if item.level == "summary" else min(sides))
    if item.needed is not None and item.needed > have:
        told += f"; to detect {margin_words(item)}, take about {item.needed} {_kind(item)}"
    return told


def _power(item: Comparison) -> str:
    """e.g. `80 % power`, `78 % power`, `at most 69 % power, corrected over 12`."""
    few = POWERS_OF_FEW.get(min(item.n_ours, item.n_theirs)) if item.level == "run" and item.pairs is None else None
    most = "at most " if few is not None and item.corrected_over > 1 else ""
    over = f", corrected over {item.corrected_over}" if item.corrected_over > 1 else ""
    return f"{most}{100 * (few or POWER):.0f} % power{over}"


def unsure_words(lines: Iterable[tuple[str, Comparison]]) -> list[str]:
    """The same of every comparison that is unsure, each sentence once with the names that are given to them."""
    found: dict[str, list[str]] = {}
    for name, item in lines:
        words = power_words(item) if item.verdict in UNSURE else ""
        if words:
            found.setdefault(words, []).append(name)
    return [f"{some_of(names, MOST_NAMED)}: {words}" for words, names in found.items()]


def _taken(item: Comparison) -> str:
    """The samples at hand, e.g. `24 pairs of prompts`, `5 runs a side`, `5 against 3 runs`."""
    if item.pairs is not None:
        return f"{item.pairs} {_kind(item)}"
    if item.level == "summary":
        return f"{max(item.n_ours, item.n_theirs)} samples against a number"
    kind = _kind(item)
    if item.n_ours == item.n_theirs:
        return f"{item.n_ours} {kind}"
    return f"{item.n_ours} against {item.n_theirs} {kind.removesuffix(' a side')}"


def _kind(item: Comparison) -> str:
    if item.pairs is not None:
        return "pairs of prompts"
    return {"run": "runs a side", "prompt": "prompts a side", "summary": "samples"}[item.level]


def difference_words(item: Difference) -> str:
    """e.g. `gpu: NVIDIA H200 against NVIDIA H100`."""
    return f"{item.name}: {item.ours or UNKNOWN} against {item.theirs or UNKNOWN}"


def origin_words(sets: tuple[MeasurementSet, ...]) -> str:
    """What is to be known of a side that we did not measure; empty where we did."""
    others = [one for one in sets if one.origin in ORIGINS]
    return "; ".join(
        ": ".join(filter(None, (f"{one.run_id}, {ORIGINS[one.origin]}", one.source, one.label))) for one in others
    )
