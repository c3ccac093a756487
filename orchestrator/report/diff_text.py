"""A comparison as a text: the verdict first, then a table a load, then what else is not alike."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, Difference, SetComparison
from orchestrator.compare.diff import decides
from orchestrator.compare.matching import case_words
from orchestrator.report.diff_assumed import untold_lines
from orchestrator.report.diff_profile import profile_lines
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import (
    KEYS,
    cell,
    change_words,
    leading,
    origin_words,
    p_words,
    samples,
    unsure_words,
)
from orchestrator.report.lines import wrapped
from orchestrator.report.table import listed
from orchestrator.report.words import UNKNOWN

LEGEND = (
    "* decides the verdict. Change: this against reference (pt = points), [..] its 95 % interval; n: prompts in pairs, "
    "else runs (server starts); p of the change, corrected where several decide. Improved, regressed: beyond the "
    "margin; equivalent: within it."
)
PERCENTILES = ("_p90", "_p95", "_p99")


def diff_text(found: SetComparison, asked: Asked, width: int = 80) -> str:
    """The whole comparison."""
    lines: list[str] = []
    for line in verdict_lines(found, asked):
        lines += wrapped(line, width, "  " if lines else "")
    led = leading(found, asked)
    for case in found.cases:
        lines += ["", *_case(case, asked, width, besides=None if led is None else led[1])]
    lines += ["", *wrapped(LEGEND, width), *(line for text in rest(found) for line in wrapped(text, width))]
    return "\n".join(lines)


def table_rows(case: CaseComparison, asked: Asked) -> list[list[str]]:
    """A line a metric, those that decide first."""
    head = ["metric", "reference", "this", "change", "n", "p", "verdict"]
    lines = sorted(_shown(case, asked), key=lambda item: not decides(item, asked, case.comparisons))
    return [head, *(_row(item, decides(item, asked, case.comparisons)) for item in lines)]


def unsure_lines(case: CaseComparison, asked: Asked, besides: Comparison | None) -> list[str]:
    """What the samples of this load could not show where what decides is unsure; `besides`: told above already."""
    lines = [item for item in case.comparisons if decides(item, asked, case.comparisons) and item is not besides]
    return unsure_words((item.metric.name, item) for item in lines)


def _shown(case: CaseComparison, asked: Asked) -> list[Comparison]:
    """What a text has room for: percentiles only where they are asked for."""
    once = _once(case.comparisons)
    return [item for item in once if item.metric.name in asked.metrics or not item.metric.name.endswith(PERCENTILES)]


def _once(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Without the figures of the best reading where the declared one is the best on both sides."""
    declared = {item.metric.name.removeprefix("declared."): item for item in comparisons}

    def repeats(item: Comparison) -> bool:
        same = declared.get(item.metric.name.removeprefix("best."))
        return same is not None and same is not item and (same.ours, same.theirs) == (item.ours, item.theirs)

    return [item for item in comparisons if not (item.metric.name.startswith("best.") and repeats(item))]


def _row(item: Comparison, decisive: bool) -> list[str]:
    unit = item.metric.unit
    return [
        f"{item.metric.name}{' *' if decisive else ''}",
        cell(item.theirs.value, unit),
        cell(item.ours.value, unit),
        change_words(item),
        samples(item),
        p_words(item),
        item.verdict,
    ]


def _case(case: CaseComparison, asked: Asked, width: int, besides: Comparison | None) -> list[str]:
    """`besides`: the comparison that the verdict above has told everything of."""
    lines = [f"{case_words(case.case) or 'all'}: {case.verdict}", *listed(table_rows(case, asked), width, "")]
    lines += profile_lines(case, width)
    lines += [line for text in remarks(case, asked, besides) for line in wrapped(text, width, "  ")]
    return [*lines, *(line for text in unsure_lines(case, asked, besides) for line in wrapped(text, width, "  "))]


def remarks(case: CaseComparison, asked: Asked, besides: Comparison | None) -> list[str]:
    """What is to be known of a load beside its table, a sentence each: what is not alike, warnings, notes."""
    shown = [item for item in _shown(case, asked) if item is not besides]
    sections = (
        ("under test", [_change(item) for item in case.varied]),
        ("NOT COMPARABLE", [_change(item) for item in case.hard]),
        ("INVALID, this", case.ours.invalid),
        ("INVALID, reference", case.theirs.invalid),
        ("runs with", [_change(item) for item in case.arguments]),
        ("also differs", [_change(item) for item in case.soft]),
        *_warnings(case),
        ("note", _metric_notes(shown, besides if any(item is besides for item in case.comparisons) else None)),
        ("note", _hidden(case, asked)),
        ("note", ["best.* are declared.*: the reading that fits best is the declared one"] if _is_best(case) else []),
    )
    return [f"{name}: {text}" for name, told in sections for text in told]


def _warnings(case: CaseComparison) -> list[tuple[str, list[str]]]:
    """What is to be kept in mind of a side, or of both alike."""
    ours, theirs = case.ours.warnings, case.theirs.warnings
    return [
        ("both", [text for text in ours if text in theirs]),
        ("this", [text for text in ours if text not in theirs]),
        ("reference", [text for text in theirs if text not in ours]),
    ]


def _change(item: Difference) -> str:
    return f"{item.name}: {item.theirs or UNKNOWN} -> {item.ours or UNKNOWN}"


def _is_best(case: CaseComparison) -> bool:
    return len(_once(case.comparisons)) < len(case.comparisons)


def _metric_notes(shown: Sequence[Comparison], besides: Comparison | None) -> Sequence[str]:
    """What is to be said of metrics, each sentence once with all whom it concerns; not what the verdict has said."""
    by_note: dict[str, list[str]] = {}
    said = () if besides is None else besides.note.split("; ")
    for item in shown:
        for part in item.note.split("; ") if item.note else ():
            if part not in said and not part.startswith("not tested"):  # the table says that
                by_note.setdefault(part, []).append(item.metric.name)
    return [f"{note} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})" for note, names in by_note.items()]


def _hidden(case: CaseComparison, asked: Asked) -> list[str]:
    hidden = len(_once(case.comparisons)) - len(_shown(case, asked))
    return [f"{hidden} percentiles: --json, or --metric ttft_s_p90"] if hidden else []


def rest(found: SetComparison) -> list[str]:
    """What is to be known of both sides as wholes, a sentence each."""
    told = [f"not told by a side: {text}" for text in untold_lines(found, KEYS)]
    told += [f"note: {note}" for note in found.notes]
    for side, cases in ((found.ours_label, found.only_ours), (found.theirs_label, found.only_theirs)):
        if cases:
            told.append(f"only in {side}: {'; '.join(case_words(case) or 'a number without a load' for case in cases)}")
    told += [f"note: {text}" for text in (origin_words(found.ours), origin_words(found.theirs)) if text]
    return told + [f"not told by {one.run_id}: {text}" for one in (*found.ours, *found.theirs) for text in one.unknown]
