"""What a verdict takes for granted: circumstances that must be alike and that a side does not tell."""

from collections.abc import Collection

from orchestrator.compare.comparison import CaseComparison, SetComparison, Verdict
from orchestrator.report.diff_words import Names
from orchestrator.report.words import some_of

JUDGED: Collection[Verdict] = ("improved", "regressed", "changed", "equivalent", "small change")
"""Verdicts that would not stand if something else differed as well."""
MOST = 6
"""Names that are told one by one, in a verdict."""
MOST_UNTOLD = 12
"""The same below it; JSON has all."""
CONDITION = ", if all else was alike"


def condition(case: CaseComparison) -> str:
    """Behind the verdict's word where a side tells no circumstance at all; empty elsewhere."""
    return CONDITION if case.silent and case.verdict in JUDGED else ""


def assumed(case: CaseComparison, ours: str, theirs: str) -> list[str]:
    """A sentence on what is taken to be alike; none where everything is told, or nothing is judged."""
    if case.verdict not in JUDGED or not case.unknown:
        return []
    who = [label for side, label in (("ours", ours), ("theirs", theirs)) if side in case.silent]
    if who:
        both = " and ".join(dict.fromkeys(who))
        verb = "tells" if len(who) == 1 else "tell"
        return [f"{both} {verb} none of what must be alike (target, drafter, GPU, prompts, ...): taken to be alike"]
    return [f"not told by a side, and taken to be alike: {some_of(case.unknown, MOST)}"]


def untold_lines(found: SetComparison, names: Names) -> list[str]:
    """Circumstances that a side does not tell: once, with the loads where it is not so at every load."""
    loads: dict[tuple[str, ...], list[str]] = {}
    for case in found.cases:
        loads.setdefault(case.unknown, []).append(names.load(case.case))
    return [
        f"{some_of(unknown, MOST_UNTOLD)}{'' if len(some) == len(found.cases) else f' ({some_of(some, 2)})'}"
        for unknown, some in loads.items()
        if unknown
    ]
