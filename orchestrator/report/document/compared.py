"""Comparisons: the verdict with all it rests on, a table a load, and what is not alike."""

from collections.abc import Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, Difference, SetComparison, Verdict
from orchestrator.compare.diff import UNSURE, WEIGHT, decides
from orchestrator.compare.stats import Estimate
from orchestrator.report.diff_assumed import untold_lines
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.diff_words import (
    change_words,
    definition,
    margin_words,
    origin_words,
    p_words,
    power_words,
    samples,
)
from orchestrator.report.document.blocks import Block, Items, Section, Table, Text, Tone
from orchestrator.report.document.figures import READABLE, case_words, estimate_words, fact_of, named, title_of
from orchestrator.report.words import UNKNOWN

IN_FULL = 6
"""Comparisons up to which each is shown load by load; of more the weightiest alone, and a line each."""
TONES: dict[Verdict, Tone] = {
    "improved": "good",
    "regressed": "bad",
    "not comparable": "bad",
    "invalid": "bad",
    "equivalent": "plain",
    "the same run": "plain",
}
"""Every other verdict is unsure."""
DEFINITION = (
    "Change: ours over theirs minus 1, for shares the difference in points; [..] is its 95 % interval. With the change "
    "turned so that more is better: all above the margin is improved, all below regressed, all within equivalent, zero "
    "outside the interval a small change, anything else inconclusive. n: prompts in pairs, else runs (server starts). "
    "p: of the primary test, corrected where several figures decide. A difference that was not found is not a "
    "difference that is not there."
)


def compared_section(found: Sequence[SetComparison], asked: Asked) -> Section | None:
    """Every comparison, as it was asked for; None where nothing was compared."""
    if not found:
        return None
    blocks: list[Block] = []
    if len(found) > 1:
        blocks.append(_overview(found, asked))
    in_full = found if len(found) <= IN_FULL else (weightiest(found),)
    for one in in_full:
        blocks += _in_full(one, asked, several=len(found) > 1)
    if len(found) > len(in_full):
        more = f"One of {len(found)} comparisons stands here in full; `diff` shows any other."
        blocks.append(Text(text=more, kind="note"))
    blocks.append(Text(text=DEFINITION, kind="definition"))
    return Section(name="compared", title="Compared", blocks=tuple(blocks))


def weightiest(found: Sequence[SetComparison]) -> SetComparison:
    """The comparison whose verdict weighs most; of several the first."""
    return min(found, key=lambda one: WEIGHT.index(one.verdict))


def tone_of(verdict: Verdict) -> Tone:
    """How a verdict looks."""
    return TONES.get(verdict, "unsure")


def _overview(found: Sequence[SetComparison], asked: Asked) -> Table:
    rows = tuple(
        (one.ours_label, one.theirs_label, one.verdict, verdict_lines(one, asked, READABLE)[0]) for one in found
    )
    return Table(
        caption=f"{len(rows)} comparisons",
        head=("ours", "theirs", "verdict", "in words"),
        rows=rows,
        verdicts=2,
        folded=len(rows) > 24,
    )


def _in_full(found: SetComparison, asked: Asked, *, several: bool) -> list[Block]:
    _, *more = verdict_lines(found, asked, READABLE)  # the first stands on top, or in the table of all
    title = f"{named(found.ours_label)} against {named(found.theirs_label)}: {found.verdict}."
    blocks: list[Block] = [Text(text=title)] if several else []
    blocks += [Text(text=f"{line}.", kind="note") for line in more]
    for case in sorted(found.cases, key=lambda one: fact_of(one.case, "side") == "plain"):
        blocks += [_case_table(found, case, asked), *_remarks(case), *_of_sets(found, case), *_circumstances(case)]
    if found.cases:
        untold = untold_lines(found, READABLE)
        blocks += [*(Text(text=f"Not told by a side: {text}.", kind="note") for text in untold), _methods(found)]
    notes = [*found.notes, *(text for text in (origin_words(found.ours), origin_words(found.theirs)) if text)]
    for label, cases in ((found.ours_label, found.only_ours), (found.theirs_label, found.only_theirs)):
        notes += [f"only in {label}: {case_words(case)}" for case in cases]
    if notes:
        blocks.append(Items(title="Notes", items=tuple(notes)))
    return blocks


def _case_table(found: SetComparison, case: CaseComparison, asked: Asked) -> Table:
    ordered = sorted(case.comparisons, key=lambda one: not decides(one, asked, case.comparisons))
    return Table(
        caption=f"{case_words(case.case)}: {named(found.ours_label)} (ours) against {named(found.theirs_label)} "
        f"(theirs): {case.verdict}",
        head=("metric (* decides)", "ours", "theirs", "change", "verdict", "n", "p", "margin"),
        rows=tuple(_line(one, decides(one, asked, case.comparisons)) for one in ordered),
        verdicts=4,
    )


def _line(one: Comparison, decisive: bool) -> tuple[str, ...]:
    return (
        f"{title_of(one.metric.name)}{' *' if decisive else ''}",
        _side(one.ours, one.metric.unit),
        _side(one.theirs, one.metric.unit),
        change_words(one),
        one.verdict,
        samples(one),
        p_words(one),
        margin_words(one),
    )


def _remarks(case: CaseComparison) -> list[Block]:
    """What is to be said of figures that could not be told apart, or not compared."""
    told: dict[str, list[str]] = {}
    for one in case.comparisons:
        power = power_words(one) if one.verdict in UNSURE else ""
        words = "; ".join(part for part in (power, one.note) if part)
        if words:
            told.setdefault(words, []).append(title_of(one.metric.name))
    return [Text(text=f"{', '.join(names)}: {words}.", kind="note") for words, names in told.items()]


def _of_sets(found: SetComparison, case: CaseComparison) -> list[Block]:
    """What only the runs of a side together show, e.g. that they disagree; each run's own warnings stand elsewhere."""
    own = {text for one in (*found.ours, *found.theirs) for load in one.measurements for text in load.warnings}
    sides = ((found.ours_label, case.ours), (found.theirs_label, case.theirs))
    return [
        Text(text=f"{label}: {text}.", kind="note")
        for label, side in sides
        for text in side.warnings
        if text not in own
    ]


def _methods(found: SetComparison) -> Table:
    rows: dict[tuple[str, str, str], None] = {}
    for case in found.cases:
        for one in case.comparisons:
            rows[title_of(one.metric.name), definition(case, one.metric.name), one.method] = None
    return Table(
        caption="What each figure counts, and how it was compared",
        head=("metric", "definition", "method"),
        rows=tuple((name, told or UNKNOWN, method or "not compared") for name, told, method in rows),
        folded=True,
    )


def _side(estimate: Estimate, unit: str) -> str:
    """e.g. `56.82 [55.91, 57.70] tok/s`."""
    return estimate_words(estimate, unit) if estimate.value is not None else UNKNOWN


def _circumstances(case: CaseComparison) -> list[Block]:
    blocks: list[Block] = []
    for title, found in (
        ("Not comparable, because these must be alike", case.hard),
        ("Under test", case.varied),
        ("Should be alike and are not", case.soft),
        ("The servers ran with other arguments", case.arguments),
    ):
        if found:
            blocks.append(_differences(f"{title} ({len(found)})", found))
    reasons = [f"ours: {text}" for text in case.ours.invalid] + [f"theirs: {text}" for text in case.theirs.invalid]
    if reasons:
        blocks.append(Items(title="No measurement", items=tuple(reasons)))
    return blocks


def _differences(caption: str, found: Sequence[Difference]) -> Table:
    rows = tuple((one.name, one.ours or UNKNOWN, one.theirs or UNKNOWN) for one in found)
    return Table(caption=caption, head=("what", "ours", "theirs"), rows=rows, folded=len(rows) > 12)
