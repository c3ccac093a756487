"""The first lines of a comparison: its verdict and what it rests on."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, SetComparison
from orchestrator.compare.diff import UNSURE, decides
from orchestrator.report.diff_assumed import assumed, condition
from orchestrator.report.diff_words import (
    KEYS,
    MOST_NAMED,
    Names,
    change_figure,
    definition,
    difference_words,
    leading,
    margin_words,
    power_words,
    sentence,
)
from orchestrator.report.words import some_of


def verdict_lines(found: SetComparison, asked: Asked, names: Names = KEYS) -> list[str]:
    """A sentence with the verdict, then what a reader needs beside it, a sentence each; not wrapped."""
    ours, theirs = found.ours_label, found.theirs_label
    led = leading(found, asked)
    if led is None:
        return [f"{found.verdict.capitalize()}: {ours} against {theirs}{_why(found, names)}", *_hints(found)]
    case, item = led
    unsure = _unsure(case, item, asked)
    untold = [] if item.verdict in UNSURE else [names.metric(one.metric.name) for one in unsure]
    opening = _opening(found, condition(case), untold)
    if is_forced(found, asked):
        opening = f"Forced: {opening[0].lower()}{opening[1:]}"
    lines = [f"{opening}: {sentence(case, item, (ours, theirs), names)}"]
    lines += [f"{one.verdict}: {sentence(case, one, (ours, theirs), names)}" for one in unsure]
    told = definition(case, item.metric.name)
    if told:
        lines.append(f"{names.metric(item.metric.name)}: {told}")
    lines += assumed(case, ours, theirs)
    if item.verdict == "equivalent":
        lines.append(
            f"equivalent means: no difference larger than {margin_words(item)}, by the 95 % interval{_tost(item)}"
        )
    if item.bootstrap is not None and item.bootstrap.low is not None:
        points = item.metric.change == "difference"
        lines.append(f"by resampling the prompts: {change_figure(item.bootstrap, points=points)} (95 % interval)")
    if item.verdict in UNSURE and power_words(item):
        lines.append(power_words(item))
    if item.note and item.change.value is not None:  # without a change the sentence has it
        lines.append(item.note)
    lines += _not_compared(case, asked, names)
    if asked.force and any(_is_forced(one) for one in found.cases):
        lines.append(f"forced: the sides are not comparable{_why(found, names)}")
    return lines


def _unsure(case: CaseComparison, leading: Comparison, asked: Asked) -> list[Comparison]:
    """What else would decide at the load that the verdict is of, and could not be judged: no verdict speaks for it."""
    return [
        item
        for item in case.comparisons
        if item is not leading and item.verdict in UNSURE and decides(item, asked, case.comparisons)
    ]


def _not_compared(case: CaseComparison, asked: Asked, names: Names) -> list[str]:
    """What else would decide at the load that the verdict is of, and why it could not be compared."""
    found: dict[str, list[str]] = {}
    for item in case.comparisons:
        if item.verdict == "not comparable" and item.note and decides(item, asked, case.comparisons):
            found.setdefault(item.note, []).append(names.metric(item.metric.name))
    return [f"not compared: {', '.join(metrics)}: {note}" for note, metrics in found.items()]


def _tost(item: Comparison) -> str:
    p = item.equivalence_p
    if p is None:
        return ""
    return f" (two one-sided tests: p {'< 0.0001' if p < 0.0001 else f'= {p:.2g}'})"


def _opening(found: SetComparison, condition: str, unsure: Sequence[str]) -> str:
    word = {
        "single run": "Single run, not tested",
        "small change": "Small change, within the margin or not resolved against it",
        "inconclusive": "Inconclusive",
    }.get(found.verdict, found.verdict.capitalize())
    word += condition + (f", but {' and '.join(unsure)} cannot be told" if unsure else "")
    others = sorted({case.verdict for case in found.cases} - {found.verdict})
    return f"{word} (other loads: {', '.join(others)})" if others else word


def reasons(found: SetComparison, names: Names = KEYS) -> tuple[str, ...]:
    """What stands against a comparison, a few words each; with the load, where it is not so at every load."""
    by_reason: dict[str, list[str]] = {}
    for case in found.cases:
        # A sound load says nothing about why another is none.
        if found.verdict in (case.verdict, "single run") or _is_forced(case):
            for text in dict.fromkeys(_case_reasons(case, found, names)):
                by_reason.setdefault(text, []).append(names.load(case.case))
    if not found.cases:
        return ("no load is on both sides",)
    every = len(found.cases)
    return tuple(
        text if len(loads) == every else f"{text} ({', '.join(loads[:2])}{', ...' if len(loads) > 2 else ''})"
        for text, loads in by_reason.items()
    )


def is_forced(found: SetComparison, asked: Asked) -> bool:
    """Whether `--force` gave any of its loads a verdict: sides not alike, unlike work, other definitions, one run."""
    if not asked.force or found.verdict in ("invalid", "not comparable"):
        return False
    same = {one.run_id for one in found.ours} == {one.run_id for one in found.theirs}
    typed = any(one.origin == "typed" for one in (*found.ours, *found.theirs))
    lifted = (_is_forced(case) or case.speeds or (_defined_otherwise(case) and not typed) for case in found.cases)
    return same or any(lifted)


def _defined_otherwise(case: CaseComparison) -> bool:
    mine, other = ({one.metric: one.definition for one in side.series} for side in (case.ours, case.theirs))
    return any(mine[metric] != other[metric] for metric in mine.keys() & other.keys())


def _is_forced(case: CaseComparison) -> bool:
    """Whether it has a verdict although the sides are not alike."""
    return bool(case.hard) and case.verdict not in ("invalid", "not comparable")


def _why(found: SetComparison, names: Names) -> str:
    """The same in a line; begins with a colon where there is something."""
    shown = list(reasons(found, names))
    if len(shown) > 3:
        shown = [*shown[:3], f"and {len(shown) - 3} more"]
    return f": {'; '.join(shown)}" if shown else ""


def _case_reasons(case: CaseComparison, found: SetComparison, names: Names) -> list[str]:
    reasons = [f"{found.ours_label}: {text}" for text in case.ours.invalid]
    reasons += [f"{found.theirs_label}: {text}" for text in case.theirs.invalid]
    reasons += [difference_words(item) for item in case.hard]
    if not reasons and case.verdict in ("invalid", "not comparable", "single run"):
        by_note: dict[str, list[str]] = {}
        for item in case.comparisons:
            if item.verdict == case.verdict and item.note:
                by_note.setdefault(item.note, []).append(names.metric(item.metric.name))
        reasons = [f"{some_of(metrics, MOST_NAMED)}: {note}" for note, metrics in by_note.items()]
    return reasons or (["no metric is on both sides"] if case.verdict == "not comparable" else [])


def _hints(found: SetComparison) -> list[str]:
    names = list(dict.fromkeys(item.name for case in found.cases if case.verdict != "invalid" for item in case.hard))
    if not names:
        return []
    keys = " ".join(f"--vary {name}" for name in names[:3])
    return [f"if that is what you test: {keys}; to see a verdict all the same: --force"]
