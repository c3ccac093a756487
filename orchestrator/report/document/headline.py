"""The verdict on top: one sentence, and how it looks."""

from collections import Counter

from orchestrator.compare.diff import WEIGHT
from orchestrator.report.diff_verdict import verdict_lines
from orchestrator.report.document.blocks import Tone
from orchestrator.report.document.compared import tone_of, weightiest
from orchestrator.report.document.figures import READABLE, case_words, fact_of, figure, named, series_of, title_of
from orchestrator.report.document.runs import ORIGINS, PRIMARY
from orchestrator.report.document.subject import Reported, Subject, in_time

TONES: dict[str, Tone] = {
    "sound": "good",
    "faster": "good",
    "measured": "plain",
    "no_difference": "unsure",
    "mixed": "unsure",
    "cannot_separate": "unsure",
    "unlabelled": "unsure",
    "unknown_rule": "unsure",
    "nothing_measured": "unsure",
    "cannot_tell": "unsure",
    "not_comparable": "unsure",
}
"""By the verdict of one run; every other one names something bad."""


def headline(reported: Reported) -> tuple[str, Tone]:
    """The sentence and its tone: a comparison's where there is one, else the run's own, else a count."""
    found = reported.comparisons
    if found:
        worst = weightiest(found)
        line = f"{verdict_lines(worst, reported.asked, READABLE)[0]}."
        if len(found) > 1:
            counts = Counter(one.verdict for one in found)
            words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in WEIGHT if counts[verdict])
            line = f"{len(found)} comparisons: {words}. {line}"
        return line, tone_of(worst.verdict)
    if len(reported.subjects) == 1:
        return _single(reported.subjects[0])
    return _many(reported)


def _single(run: Subject) -> tuple[str, Tone]:
    told = run.told
    if told is not None and (judged := told.standalone or told.bench) is not None:
        line = judged.diagnosis.headline
        return f"{line[:1].upper()}{line[1:]}.", TONES.get(judged.diagnosis.verdict, "bad")
    if told is not None:
        failure = told.record.state.failure if told.record.state is not None else None
        return f"No figures: the run is {told.record.phase}{f' ({failure.message})' if failure else ''}.", "bad"
    if run.invalid:
        return f"No measurement: {'; '.join(run.invalid)}.", "bad"
    origin = run.measured.origin
    return f"{_figures(run)}{'' if origin == 'own' else f' - {ORIGINS[origin]}'}.", "plain"


def _many(reported: Reported) -> tuple[str, Tone]:
    runs = in_time(reported.subjects)
    good = [run for run in runs if run.is_valid]
    line = f"{len(runs)} runs, {len(good)} of them measurements throughout"
    if not good:
        return f"{line}.", "bad"
    newest = good[-1]
    return f"{line}. The newest of these, {named(newest.run_id)}: {_figures(newest)}. Nothing was compared.", "plain"


def _figures(run: Subject) -> str:
    """The first primary figures there are, of speculation before plain decoding."""
    served = sorted(run.measured.measurements, key=lambda one: fact_of(one.case, "side") == "plain")
    for measurement in served:
        told = [found for name in PRIMARY if (found := series_of(measurement, (name,))) is not None]
        if told:
            words = "; ".join(f"{title_of(one.metric)} {figure(one, measurement).words}" for one in told[:2])
            return f"{words} ({case_words(measurement.case)})"
    return "no figure"
