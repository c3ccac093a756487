"""Comparisons: the verdict in a sentence with all it rests on, a table a case, and what is not alike."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.compare.comparison import CaseComparison, Comparison, Difference, SetComparison, Verdict
from orchestrator.compare.stats import Estimate
from orchestrator.report.document.blocks import Block, Items, Section, Table, Text, Tone
from orchestrator.report.document.figures import case_words, rounded, scale_of, title_of
from orchestrator.report.document.subject import Reported
from orchestrator.report.words import UNKNOWN

IN_FULL = 6
"""Comparisons shown case by case; beyond that a line each."""
TONES: dict[Verdict, Tone] = {
    "improved": "good",
    "regressed": "bad",
    "not comparable": "bad",
    "invalid": "bad",
    "equivalent": "plain",
}
"""Every other verdict is unsure."""
WEIGHT: tuple[Verdict, ...] = (
    "regressed",
    "invalid",
    "improved",
    "changed",
    "small change",
    "inconclusive",
    "single run",
    "equivalent",
    "not comparable",
)
DEFINITION = (
    "Change: ours over theirs minus 1, for shares the difference in points; [..] is its 95 % interval. With the change "
    "turned so that more is better: all above the margin is improved, all below regressed, all within equivalent, zero "
    "outside the interval a small change, anything else inconclusive. p belongs to the primary test, after the "
    "correction that stands beside it. A difference that was not found is not a difference that is not there."
)


def compared_section(reported: Reported) -> Section | None:
    """Every comparison; None where nothing was compared."""
    found = reported.comparisons
    if not found:
        return None
    blocks: list[Block] = []
    if len(found) > 1:
        blocks.append(_overview(found))
    for one in found[:IN_FULL]:
        blocks += _in_full(one, several=len(found) > 1)
    if len(found) > IN_FULL:
        blocks.append(Text(text=f"The first {IN_FULL} of {len(found)} comparisons stand here in full.", kind="note"))
    blocks.append(Text(text=DEFINITION, kind="definition"))
    return Section(name="compared", title="Compared", blocks=tuple(blocks))


def comparison_sentence(found: SetComparison) -> str:
    """The verdict with the figures that decide it."""
    sides = f"{found.ours_label} against {found.theirs_label}"
    deciding = _deciding(found)
    verdict = found.verdict[:1].upper() + found.verdict[1:]
    if deciding is None:
        return f"{verdict}: {sides}{_because(found)}"
    case, one = deciding
    more = _others(found, one)
    return f"{verdict}: {sides}: {_told(case, one)}{more}"


def tone_of(verdict: Verdict) -> Tone:
    """How a verdict looks."""
    return TONES.get(verdict, "unsure")


def _deciding(found: SetComparison) -> tuple[CaseComparison, Comparison] | None:
    """The primary metric that has the whole verdict, the surest change first; any metric where no primary one has."""
    told = [(case, one) for case in found.cases for one in case.comparisons if one.verdict == found.verdict]
    told.sort(key=lambda item: (not item[1].metric.primary, -abs(item[1].change.value or 0.0)))
    return told[0] if told else None


def _others(found: SetComparison, told: Comparison) -> str:
    primary = [one for case in found.cases for one in case.comparisons if one.metric.primary and one is not told]
    if not primary:
        return ""
    counts = Counter(one.verdict for one in primary)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in WEIGHT if counts[verdict])
    return f"; of {len(primary)} other primary figure{'' if len(primary) == 1 else 's'}: {words}"


def _because(found: SetComparison) -> str:
    reasons = [_difference(item) for case in found.cases for item in case.hard]
    reasons += [text for case in found.cases for side in (case.ours, case.theirs) for text in side.invalid]
    if not found.cases:
        reasons.append("no case was measured on both sides")
    reasons += found.notes
    unique = list(dict.fromkeys(reasons))
    more = f" and {len(unique) - 3} more reasons" if len(unique) > 3 else ""
    return f", because {'; '.join(unique[:3])}{more}" if unique else ""


def _told(case: CaseComparison, one: Comparison) -> str:
    samples = _samples(one)
    test = _p(one)
    return (
        f"{title_of(one.metric.name)} ({case_words(case.case)}) {_side(one.ours, one)} against "
        f"{_side(one.theirs, one)}, {change_words(one)}, {samples}{f', {test}' if test else ''}, margin {_margin(one)}"
    )


def _side(estimate: Estimate, one: Comparison) -> str:
    scale, unit = scale_of(one.metric.unit)
    if estimate.value is None:
        return UNKNOWN
    tail = "" if unit == "tokens" else f" {unit}"
    if estimate.low is None or estimate.high is None:
        return f"{rounded(scale * estimate.value)}{tail}"
    return (
        f"{rounded(scale * estimate.value)} [{rounded(scale * estimate.low)}, {rounded(scale * estimate.high)}]{tail}"
    )


def change_words(one: Comparison) -> str:
    """e.g. `-36.9 % [-38.0, -35.8]`."""
    change, unit = one.change, "points" if one.metric.change == "difference" else "%"
    if change.value is None:
        return f"change {UNKNOWN}"
    if change.low is None or change.high is None:
        return f"{100 * change.value:+.1f} {unit}, no interval"
    return f"{100 * change.value:+.1f} {unit} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"


def _samples(one: Comparison) -> str:
    what = {"prompt": "prompts", "run": "repeats", "summary": "samples"}[one.level]
    if one.pairs is not None:
        return f"n={one.pairs} pairs of {what}"
    return f"n={one.n_ours} against {one.n_theirs} {what}"


def _p(one: Comparison) -> str:
    test = one.tests[0] if one.tests else None
    if test is None:
        return ""
    if test.p is None:
        return f"p {UNKNOWN} ({test.note or test.name})"
    if one.p_adjusted is not None:
        return f"p={one.p_adjusted:.2g} ({test.name}, {one.correction or 'adjusted'})"
    return f"p={test.p:.2g} ({test.name})"


def _margin(one: Comparison) -> str:
    return f"{100 * one.margin:g} {'points' if one.metric.change == 'difference' else '%'}"


def _overview(found: Sequence[SetComparison]) -> Table:
    rows = tuple((one.ours_label, one.theirs_label, one.verdict, comparison_sentence(one)) for one in found)
    return Table(
        caption=f"{len(rows)} comparisons",
        head=("ours", "theirs", "verdict", "in words"),
        rows=rows,
        verdicts=2,
        folded=len(rows) > 24,
    )


def _in_full(found: SetComparison, *, several: bool) -> list[Block]:
    blocks: list[Block] = [Text(text=f"{comparison_sentence(found)}.")] if several else []
    for case in found.cases:
        blocks.append(_case_table(found, case))
        blocks += _circumstances(case)
    missing = [f"only {found.ours_label}: {case_words(case)}" for case in found.only_ours]
    missing += [f"only {found.theirs_label}: {case_words(case)}" for case in found.only_theirs]
    if missing:
        blocks.append(Items(title="Cases without a partner", items=tuple(missing)))
    if found.notes:
        blocks.append(Items(title="Notes", items=found.notes))
    return blocks


def _case_table(found: SetComparison, case: CaseComparison) -> Table:
    rows = tuple(_line(one) for one in case.comparisons)
    return Table(
        caption=f"{case_words(case.case)}: {found.ours_label} against {found.theirs_label}: {case.verdict}",
        head=(
            "metric (* decides)",
            "ours",
            "theirs",
            "change",
            "verdict",
            "n",
            "p",
            "margin",
            "how, and what is missing",
        ),
        rows=rows,
        verdicts=4,
    )


def _line(one: Comparison) -> tuple[str, ...]:
    return (
        title_of(one.metric.name) + (" *" if one.metric.primary else ""),
        _side(one.ours, one),
        _side(one.theirs, one),
        change_words(one),
        one.verdict,
        _samples(one),
        _p(one),
        _margin(one),
        "; ".join(part for part in (one.method, _wanting(one), one.note) if part),
    )


def _wanting(one: Comparison) -> str:
    if one.verdict != "inconclusive":
        return ""
    seen = UNKNOWN if one.detectable is None else f"{100 * one.detectable:.1f} %"
    needed = UNKNOWN if one.needed is None else str(one.needed)
    return f"smallest change that so many samples would show: {seen}; samples needed for the margin: {needed}"


def _circumstances(case: CaseComparison) -> list[Block]:
    blocks: list[Block] = []
    for title, found in (
        ("Not comparable, because these must be alike", case.hard),
        ("Under test", case.varied),
        ("Should be alike and are not", case.soft),
        ("The servers ran with other arguments", case.arguments),
    ):
        if found:
            rows = tuple((item.name, item.ours or UNKNOWN, item.theirs or UNKNOWN) for item in found)
            blocks.append(
                Table(
                    caption=f"{title} ({len(rows)})", head=("what", "ours", "theirs"), rows=rows, folded=len(rows) > 12
                )
            )
    if case.unknown:
        blocks.append(Items(title="Unknown, and should be alike", items=case.unknown))
    reasons = [f"ours: {text}" for text in case.ours.invalid] + [f"theirs: {text}" for text in case.theirs.invalid]
    if reasons:
        blocks.append(Items(title="No measurement", items=tuple(reasons)))
    return blocks


def _difference(item: Difference) -> str:
    return f"{item.name} is {item.ours or UNKNOWN} against {item.theirs or UNKNOWN}"
