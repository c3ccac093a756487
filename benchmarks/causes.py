"""`python -m benchmarks.causes`: does a diagnosis name what was broken? Precision and recall of the named causes."""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from benchmarks.broken_cases import Case, Where, cases
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.finding import Cause

WORDS = {
    "L": "L layers fed",
    "N": "N norms and residual",
    "W": "W weights",
    "C": "C checkpoint's files",
    "V": "V vocabulary map",
    "R": "R rotary",
    "D": "D rows, generalization",
    "P": "P parameters",
    "B": "B slower than plain",
    "E": "E engine",
}
SEVERAL, NOTHING = "two or three at once", "nothing"
Found = Sequence[tuple[Case, tuple[Cause, ...]]]


def table(found: Found) -> str:
    """By class and where it was judged: cases, those named exactly, precision, recall; then what was not named."""
    lines = ["| broken | judged | cases | named exactly | precision | recall |", "|---|---|---|---|---|---|"]
    classes, wheres = [*WORDS.values(), SEVERAL, NOTHING], get_args(Where)
    places = {place(case) for case, _ in found}
    for words, where in sorted(places, key=lambda one: (classes.index(one[0]), wheres.index(one[1]))):
        lines.append(_line(words, where, [item for item in found if place(item[0]) == (words, where)]))
    lines.append(_line("all", "", found))
    lines.append("")
    for case, named in found:
        if set(case.expected) != set(named):
            lines.append(
                f"- {case.letters}, {case.where}, {case.name}: broken {_words(case.expected)}, named {_words(named)}"
            )
    return "\n".join(lines)


def place(case: Case) -> tuple[str, str]:
    """The line that a case is counted in: its class in words, and where it was judged."""
    return NOTHING if case.letters == "-" else WORDS.get(case.letters, SEVERAL), case.where


def judged(case: Case) -> tuple[Cause, ...]:
    """The causes that are named."""
    with tempfile.TemporaryDirectory() as folder:
        return decide(case.known(Path(folder))).causes


def _line(words: str, where: str, found: Found) -> str:
    counts: Counter[str] = Counter()
    for case, named in found:
        counts["both"] += len(set(case.expected) & set(named))
        counts["named"] += len(named)
        counts["broken"] += len(case.expected)
        counts["exact"] += set(case.expected) == set(named)
    precision, recall = _share(counts["both"], counts["named"]), _share(counts["both"], counts["broken"])
    return f"| {words} | {where} | {len(found)} | {counts['exact']} | {precision} | {recall} |"


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else "-"


def _words(causes: Sequence[Cause]) -> str:
    return ", ".join(causes) or "nothing"


def main() -> None:
    """Judge every case, and print the table."""
    found = []
    for case in cases():
        sys.stderr.write(f"{case.letters}, {case.where}: {case.name}\n")
        found.append((case, judged(case)))
    print(table(found))


if __name__ == "__main__":
    main()
