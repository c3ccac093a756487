"""Two sides, or many against the first, compared load by load and metric by metric; what cannot be compared is named.

The primary metrics decide, with Holm's correction over all of them: one regression is a regression, whatever else
improved. A hard circumstance that is not alike leaves no verdict unless `force` is set; what is no measurement never
has one.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import CaseComparison, Comparison, Difference, SetComparison, Verdict
from orchestrator.compare.fingerprint import circumstances, implied, require_known
from orchestrator.compare.matching import case_words, having, matched
from orchestrator.compare.pairing import Barred, compare_metrics
from orchestrator.compare.pooling import Case, Operand, pooled
from orchestrator.compare.same_work import flushed_otherwise, same_numbers, unlike_work
from orchestrator.compare.shared_results import on_both_sides
from orchestrator.compare.statistics import adjust, with_bootstrap
from orchestrator.errors import UsageError
from orchestrator.records.measurement import Measurement

WEIGHT: tuple[Verdict, ...] = (
    "regressed",
    "invalid",
    "not comparable",
    "improved",
    "changed",
    "small change",
    "single run",
    "inconclusive",
    "equivalent",
    "the same run",
)
"""Which verdict stands for several: the first that is among them.

What was not judged at all weighs more than what was and cannot be told: its change may be of any size."""
UNSURE: tuple[Verdict, ...] = ("inconclusive", "single run")


def compare_sets(ours: Operand, theirs: Operand, asked: Asked) -> SetComparison:
    """Compare two sides. Raises UsageError for circumstances loads or metrics that no side has."""
    (found,) = compare_many((theirs, ours), asked)
    return found


def compare_many(operands: Sequence[Operand], asked: Asked) -> tuple[SetComparison, ...]:
    """Compare every side but the first with the first; several at once share the correction (Benjamini-Hochberg).

    Where there are but two sides, what decides has an interval by resampling its prompts, too.
    """
    everything = [item for operand in operands for item in operand.measurements]
    require_known(asked.vary, "--vary", everything)
    asked.require_loads(everything)
    _require_metrics(asked.metrics, everything)
    first, *others = operands
    found = [_compared(other, first, asked) for other in others]
    flat = [item for one in found for case in one.cases for item in case.comparisons]
    decisive = [item for item in flat if decides(item, asked, flat)]
    corrected = adjust(decisive, "Holm" if len(found) == 1 else "Benjamini-Hochberg")
    by_identity = {id(before): after for before, after in zip(decisive, corrected, strict=True)}
    settled = tuple(_settled(one, by_identity, asked) for one in found)
    return settled if len(settled) > 1 else tuple(_resampled(one, asked) for one in settled)


def decides(comparison: Comparison, asked: Asked, among: Sequence[Comparison]) -> bool:
    """Whether a metric bears on the verdict: a primary one, or any where it was asked for or none is primary."""
    if asked.metrics or not any(item.metric.primary for item in among):
        return True
    return comparison.metric.primary


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several; nothing to compare is not comparable."""
    return next((verdict for verdict in WEIGHT if verdict in verdicts), "not comparable")


def is_unsure(found: SetComparison, asked: Asked) -> bool:
    """Whether anything that decides is inconclusive or rests on a single run."""
    return any(
        item.verdict in UNSURE
        for case in found.cases
        for item in case.comparisons
        if decides(item, asked, case.comparisons)
    )


def is_same(ours: Operand, theirs: Operand) -> bool:
    """Whether the sides mean the very same runs."""
    return {one.run_id for one in ours.sets} == {one.run_id for one in theirs.sets}


def _compared(ours: Operand, theirs: Operand, asked: Asked) -> SetComparison:
    mine, other = pooled(ours, asked.keeps), pooled(theirs, asked.keeps)
    pairs = matched(mine, other, implied(asked.vary))
    same = is_same(ours, theirs)
    cases = tuple(
        compare_case(a, b, asked, typed=theirs.is_typed or ours.is_typed, same=same and same_numbers(a, b))
        for a, b in having(pairs.pairs, asked.metrics)
    )
    notes = [
        *dict.fromkeys((*theirs.notes, *ours.notes)),
        *pairs.notes,
        *(_shared(ours, theirs) if any(a.case == b.case for a, b in pairs.pairs) else []),
        *on_both_sides(ours.sets, theirs.sets),
        *_mixed(ours, mine),
        *_mixed(theirs, other),
        *_unvaried(cases, asked),
        *_unlike(cases),
    ]
    return SetComparison(
        ours=ours.sets,
        theirs=theirs.sets,
        ours_label=ours.label,
        theirs_label=theirs.label,
        cases=cases,
        only_ours=pairs.only_ours,
        only_theirs=pairs.only_theirs,
        verdict="not comparable",
        notes=tuple(notes),
    )


def compare_case(
    ours: Measurement, theirs: Measurement, asked: Asked, *, typed: bool, same: bool = False
) -> CaseComparison:
    """One load on two sides, not corrected yet for what else is compared.

    `typed`: a side is somebody's bare number; `same`: both are the very same run.
    """
    alike = circumstances(ours, theirs, asked.vary)
    cache = flushed_otherwise(ours, theirs, alike.hard)
    hard = tuple(item for item in alike.hard if item is not cache)
    speeds = unlike_work(ours, theirs, alike.varied)
    if cache is not None:
        speeds = f"{cache.name}: {cache.ours} against {cache.theirs}"
    verdict = _barred(ours, theirs, hard, same=same, force=asked.force)
    note = "it is the same run on both sides" if verdict == "the same run" else ""
    barred = Barred(verdict=verdict, note=note, speeds="" if asked.force else speeds)
    return CaseComparison(
        case=ours.case,
        ours=ours,
        theirs=theirs,
        hard=hard,
        soft=alike.soft if cache is None else (*alike.soft, cache),
        arguments=alike.arguments,
        varied=alike.varied,
        unknown=alike.unknown,
        silent=alike.silent,
        speeds=speeds,
        comparisons=compare_metrics(ours, theirs, asked, barred=barred, typed=typed),
        verdict=verdict or "not comparable",
    )


def _barred(
    ours: Measurement, theirs: Measurement, hard: Sequence[Difference], *, same: bool, force: bool
) -> Verdict | None:
    """What stands in the place of a verdict; `force` lifts all of it but that there is no measurement."""
    if ours.invalid or theirs.invalid:
        return "invalid"
    if force:
        return None
    if hard:
        return "not comparable"
    return "the same run" if same else None


def _settled(found: SetComparison, corrected: Mapping[int, Comparison], asked: Asked) -> SetComparison:
    """The same with corrected comparisons, and the verdicts that follow from them."""
    cases = []
    for case in found.cases:
        lines = tuple(corrected.get(id(item), item) for item in case.comparisons)
        same = case.verdict == "the same run"
        barred = _barred(case.ours, case.theirs, case.hard, same=same, force=asked.force)
        cases.append(dataclasses.replace(case, comparisons=lines, verdict=barred or _case_verdict(lines, asked)))
    return dataclasses.replace(found, cases=tuple(cases), verdict=overall([case.verdict for case in cases]))


def _resampled(found: SetComparison, asked: Asked) -> SetComparison:
    cases = []
    for case in found.cases:
        mine, other = ({series.metric: series for series in side.series} for side in (case.ours, case.theirs))
        lines = tuple(
            with_bootstrap(item, mine[item.metric.name], other[item.metric.name])
            if item.pairs is not None and decides(item, asked, case.comparisons)
            else item
            for item in case.comparisons
        )
        cases.append(dataclasses.replace(case, comparisons=lines))
    return dataclasses.replace(found, cases=tuple(cases))


def _case_verdict(lines: Sequence[Comparison], asked: Asked) -> Verdict:
    """A figure that only one side has decides nothing where others can be compared."""
    verdicts = [item.verdict for item in lines if decides(item, asked, lines)]
    return overall([verdict for verdict in verdicts if verdict != "not comparable"])


def _shared(ours: Operand, theirs: Operand) -> list[str]:
    """Runs that are on both sides, e.g. a baseline within a set of runs since it."""
    both = {one.run_id for one in ours.sets} & {one.run_id for one in theirs.sets}
    if not both:
        return []
    named = ", ".join(sorted(both)[:3]) + (f" and {len(both) - 3} more" if len(both) > 3 else "")
    verb = "is" if len(both) == 1 else "are"
    return [f"{named} {verb} on both sides: the sides are not independent, and differ less than they would"]


def _mixed(operand: Operand, measured: Mapping[Case, Measurement]) -> list[str]:
    """Circumstances that vary within one side: a hidden dimension of whatever is found."""
    if len(operand.sets) < 2:
        return []
    names = {fact.name for item in measured.values() for fact in item.hard if fact.value and " / " in fact.value}
    return [f"{operand.label}: {name} differs between its runs" for name in sorted(names)]


def _unlike(cases: Sequence[CaseComparison]) -> list[str]:
    """Loads whose speeds are not compared, with the reason."""
    by_reason: dict[str, list[str]] = {}
    for case in cases:
        if case.speeds:
            by_reason.setdefault(case.speeds, []).append(case_words(case.case) or "all")
    return [f"speeds are of unlike work: {why} ({', '.join(loads)})" for why, loads in by_reason.items()]


def _unvaried(cases: Sequence[CaseComparison], asked: Asked) -> list[str]:
    found = []
    for key in asked.vary:
        names = implied((key,))
        if cases and not any(item.name in names for case in cases for item in case.varied):
            found.append(f"--vary {key}: it is the same on both sides")
    return found


def _require_metrics(metrics: Sequence[str], measurements: Sequence[Measurement]) -> None:
    import difflib  # noqa: PLC0415 - only where one is asked for

    known = sorted({series.metric for item in measurements for series in item.series})
    for name in metrics:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3)
            raise UsageError(
                f"--metric: none of these measurements has: {name}", hint=f"they have: {', '.join(close or known)}"
            )
