"""A decision on one screen: the verdict, each cause with its numbers and its remedy, the fix, and what to run next."""

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.decision.fix import Fix
from orchestrator.diagnosis.decision.next_runs import NextRun
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.report.copied import copied_json
from orchestrator.report.findings_text import evidence_words

WORDS = {
    "healthy": "HEALTHY",
    "sound": "SOUND: nothing is wrong with drafter or server; whether speculation pays here is not judged",
    "cannot_tell": "CANNOT TELL YET",
    "parameters": "PARAMETERS: not what was asked for",
    "economics": "ECONOMICS: speculation costs more than it saves",
    "engine": "ENGINE: the server loses what the drafter gives",
    "wiring": "WIRING: the drafter is not fed, or not computed, as it was trained",
    "loading": "LOADING: the drafter's files do not give what was trained",
    "data": "DATA: the rows it is trained or judged on",
    "generalization": "GENERALIZATION: it knows its training text better than other text",
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How much of a decision is shown, by kind; what is left out is counted."""

    causes: int
    """Those with numbers."""
    numbers: int
    remedies: int
    besides: int
    runs: int


MOST_LINES = 24
WHOLE = Shape(causes=99, numbers=99, remedies=9, besides=99, runs=99)
SCREEN = (
    Shape(causes=4, numbers=2, remedies=2, besides=9, runs=3),
    Shape(causes=4, numbers=2, remedies=2, besides=3, runs=2),
    Shape(causes=3, numbers=1, remedies=2, besides=1, runs=1),
    Shape(causes=3, numbers=1, remedies=2, besides=0, runs=1),
    Shape(causes=3, numbers=1, remedies=1, besides=0, runs=1),
    Shape(causes=2, numbers=1, remedies=1, besides=0, runs=1),
    Shape(causes=1, numbers=0, remedies=1, besides=0, runs=1),
    Shape(causes=1, numbers=0, remedies=1, besides=0, runs=0),
)
"""From much to little; the first that fits the screen."""
LONGEST = 260
"""Characters of one sentence on the screen; the whole of it stands in every other format."""


def decision_text(found: Decision, width: int = 100, *, most: int = MOST_LINES) -> str:
    """At most `most` lines of at most `width` columns; what is left out is counted, and the causes come first."""
    lines: list[str] = []
    for shape in SCREEN:
        lines = _lines(found, width, shape)
        if len(lines) <= most:
            return "\n".join(lines)
    more = len(lines) - most + 1
    return "\n".join([*lines[: most - 1], f"... {more} lines more (--verbose)"])


def whole_decision_text(found: Decision, width: int = 100) -> str:
    """All of it, however long."""
    return "\n".join(_lines(found, width, WHOLE))


def title(found: Decision) -> str:
    """The verdict in a line; several causes are counted."""
    if found.verdict == "cannot_tell" and found.causes:
        return f"{WORDS[found.verdict]}: nothing was measured; foreseen: {', '.join(found.causes)}"
    more = len(found.causes) - 1
    besides = f"; also {', '.join(found.causes[1:])}" if more > 0 else ""
    sure = "" if found.certain or found.verdict in ("cannot_tell", "sound") else " (not certain yet)"
    if found.verdict == "economics" and found.is_sound:
        return "ECONOMICS: nothing is wrong with drafter or server; speculation does not pay here"
    return f"{WORDS[found.verdict]}{besides}{sure}"


def fix_lines(fix: Fix) -> list[str]:
    """A change a line; config lines are there to be copied."""
    lines = []
    if fix.sglang is not None:
        lines.append(f"needed first: {fix.sglang}")
    if fix.rests_on is not None:
        lines.append(f"resting on {fix.rests_on}")
    if fix.config:
        deleted = [key for key, value in fix.config.items() if value is None]
        kept = {key: value for key, value in fix.config.items() if value is not None}
        if kept:
            lines.append(f"in the drafter's config.json: {fix_json(kept)}")
        if deleted:
            lines.append(f"in the drafter's config.json, delete: {', '.join(deleted)}")
    lines += fix.by_hand
    if fix.valid_for is not None:
        lines.append(f"spelled for {fix.valid_for}")
    lines += [f"--{edit.name.replace('_', '-')} {edit.value}  ({edit.why})" for edit in fix.server]
    return lines


def fix_json(patch: object) -> str:
    """The patch on one line."""
    import json  # noqa: PLC0415

    return json.dumps(patch)


def command_words(run: NextRun) -> str:
    """The command, quoted for a shell."""
    return shlex.join(run.command)


def _lines(found: Decision, width: int, shape: Shape) -> list[str]:
    lines = [*_wrapped(title(found), width), ""]
    told: tuple[str, ...] = ()
    if not found.named:
        told = tuple(item.summary for signal in found.signals for item in signal.results[:1])
        lines += [line for text in told for line in _wrapped(_cut(text), width, "  - ", "    ")]
        lines += [] if told else ["  nothing was measured"]
    for place, item in enumerate(found.named, start=1):
        told_below = item.cause == "wiring" and found.fix is not None and bool(found.fix.config)
        remedies = () if told_below else item.remedy[: shape.remedies]
        told_already = item.cause == "parameters" and shape is not WHOLE  # its numbers are its sentence
        numbers = shape.numbers if place <= shape.causes and not told_already else 0
        lines += _finding(item, place, width, evidence=numbers, remedies=remedies)
    lines += _listed(
        "Also:", [item.summary for item in found.findings if item not in found.named], width, shape.besides
    )
    lines += _listed("Beside it:", [text for text in found.also if text not in told], width, shape.besides)
    if found.fix is not None:
        lines += ["Fix:", *(line for text in fix_lines(found.fix) for line in _copied(text, width))]
    shown = found.next_runs[: shape.runs]
    if shown:
        lines.append("Next:" if found.certain else "Next, to be certain:")
        for run in shown:
            lines += _wrapped(f"{run.what} ({run.cost}): {run.why}", width, "  ", "    ")
            lines += _wrapped(command_words(run), width, "    $ ", "      ")
        more = len(found.next_runs) - len(shown)
        lines += [f"  and {more} more (--verbose)"] if more > 0 else []
    return [line.rstrip() for line in lines]


def _finding(item: CheckResult, place: int, width: int, *, evidence: int, remedies: Sequence[str]) -> list[str]:
    """`remedies`: what of its remedy is not told as the fix."""
    check = f"{item.check} " if item.check[1:].isdigit() else ""
    lines = _wrapped(f"{item.cause}: {_cut(item.summary)} ({check}{item.severity})", width, f"{place}. ", "   ")
    for one in item.evidence[:evidence]:
        lines += _wrapped(f"{one.name}: {evidence_words(one)}", width, "     ", "       ")
    for number, remedy in enumerate(remedies):
        lines += _copied(_cut(remedy), width, "   -> " if number == 0 else "      ")
    return lines


def _listed(head: str, texts: Sequence[str], width: int, most: int) -> list[str]:
    if not texts:
        return []
    if not most:
        return [f"{head} {len(texts)} more (--verbose)"]
    lines = [line for text in texts[:most] for line in _wrapped(_cut(text), width, "  - ", "    ")]
    more = len(texts) - most
    return [head, *lines, *([f"  {more} more (--verbose)"] if more > 0 else [])]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3].rstrip()}..."


def _copied(text: str, width: int, first: str = "  ") -> list[str]:
    copied = copied_json(text, width, " " * len(first))
    if copied is None or len(first) + len(text) <= width:
        return _wrapped(text, width, first, " " * len(first))
    words, lines = copied
    return [*_wrapped(words, width, first, " " * len(first)), *lines]


def _wrapped(text: str, width: int, first: str = "", then: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False, break_long_words=True
    ) or [""]  # fmt: skip
