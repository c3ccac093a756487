"""Many sides against the first: a table a metric and load, a line a side."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, SetComparison
from orchestrator.compare.diff import decides, overall
from orchestrator.compare.matching import case_words
from orchestrator.compare.pooling import Case
from orchestrator.compare.statistics import geometric_mean
from orchestrator.report.diff_text import LEGEND
from orchestrator.report.diff_verdict import is_forced, reasons
from orchestrator.report.diff_words import (
    cell,
    change_words,
    definition,
    leading,
    p_words,
    samples,
    sentence,
    unsure_words,
)
from orchestrator.report.lines import wrapped
from orchestrator.report.table import listed
from orchestrator.report.words import some_of

MOST_NAMED = 8
Line = tuple[SetComparison, CaseComparison, Comparison]


def many_text(found: Sequence[SetComparison], asked: Asked, width: int = 80) -> str:
    """The verdict over all, a table for each metric that decides, and what stands against single sides."""
    verdicts = [one.verdict for one in found]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    heaviest = overall(verdicts)
    forced = any(one.verdict == heaviest and is_forced(one, asked) for one in found)
    word = f"Forced: {heaviest}" if forced else heaviest.capitalize()
    opening = f"{word}: {len(found)} sides against {found[0].theirs_label}: {counts}"
    lines = [*wrapped(opening, width), *_heaviest(found, asked, width)]
    for (case, metric), some in by_load(found, asked).items():
        lines += ["", f"{metric} at {case_words(case) or 'all loads'}"]
        lines += wrapped(definition(some[0][1], metric), width, "  ")
        lines += listed(_rows(some), width)
        unsure = unsure_words((one.ours_label, item) for one, _, item in some)
        lines += [line for text in unsure for line in wrapped(text, width, "  ")]
    lines += _means(found, asked, width)
    lines += _troubled(found, width)
    legend = LEGEND.partition(" ")[2].removeprefix("decides the verdict. ")
    told = f"{legend} Corrected over all sides (Benjamini-Hochberg)."
    return "\n".join([*lines, "", *wrapped(told, width), *_notes(found, width)])


def _heaviest(found: Sequence[SetComparison], asked: Asked, width: int) -> list[str]:
    """The first side of the verdict over all: which it is, and by which figure. Nothing where no figure decides."""
    worst = next(one for one in found if one.verdict == overall([one.verdict for one in found]))
    led = leading(worst, asked)
    if led is None:
        return []
    return wrapped(sentence(*led, (worst.ours_label, worst.theirs_label)), width, "  ")


def _troubled(found: Sequence[SetComparison], width: int) -> list[str]:
    """What cannot be compared, or is no measurement: each set of reasons once, with the sides that it concerns."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in found:
        if one.verdict in ("invalid", "not comparable"):
            told = tuple(text.removeprefix(f"{one.ours_label}: ") for text in reasons(one))
            groups.setdefault((one.verdict, told), []).append(one.ours_label)
    lines: list[str] = []
    for (verdict, told), labels in groups.items():
        lines += ["", *wrapped(f"{verdict.capitalize()}, {some_of(labels, MOST_NAMED)}: {'; '.join(told)}", width)]
    return lines


def by_load(found: Sequence[SetComparison], asked: Asked) -> dict[tuple[Case, str], list[Line]]:
    """What decides, by load and metric, over all sides."""
    tables: dict[tuple[Case, str], list[Line]] = {}
    for one in found:
        for case in one.cases:
            for item in case.comparisons:
                if decides(item, asked, case.comparisons):
                    tables.setdefault((case.theirs.case, item.metric.name), []).append((one, case, item))
    return tables


def _rows(some: Sequence[Line]) -> list[list[str]]:
    first = some[0][2]
    unit = first.metric.unit
    rows = [["side", "figure", "change", "n", "p", "verdict"]]
    rows.append([some[0][0].theirs_label, cell(first.theirs.value, unit), "", "", "", "reference"])
    for one, _, item in some:
        rows.append([one.ours_label, cell(item.ours.value, unit), change_words(item), samples(item), p_words(item)])
        rows[-1].append(item.verdict)
    return rows


def _means(found: Sequence[SetComparison], asked: Asked, width: int) -> list[str]:
    """Geometric mean of the ratios over the loads of one side of the server, where there are several."""
    rows = [["geometric mean over loads", "metric", "ratio", "loads"]]
    for one in found:
        ratios: dict[tuple[str, str], list[float]] = {}
        for (case, name), some in by_load([one], asked).items():
            side = next((fact.value or "" for fact in case if fact.name == "side"), "")
            ratios.setdefault((name, side), []).extend(
                1 + item.change.value
                for _, _, item in some
                if item.metric.change == "ratio" and item.change.value is not None
            )
        for (name, side), values in ratios.items():
            mean = geometric_mean(values)
            if len(values) > 1 and mean.value is not None:
                rows.append([one.ours_label, f"{name} {side}".rstrip(), f"{mean.value:.3f}", str(len(values))])
    return ["", *listed(rows, width)] if len(rows) > 1 else []


def _notes(found: Sequence[SetComparison], width: int) -> list[str]:
    notes = dict.fromkeys(note for one in found for note in one.notes)
    return [line for note in notes for line in wrapped(f"note: {note}", width)]
