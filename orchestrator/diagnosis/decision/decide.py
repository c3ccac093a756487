"""Everything that is known, looked up in the table: the causes by weight, what is true beside them, what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.diagnosis.decision.axes import Answer, Axis, Signal, place_of
from orchestrator.diagnosis.decision.decision import Decision, Verdict
from orchestrator.diagnosis.decision.drifts import drift_checks
from orchestrator.diagnosis.decision.economics import pays_signals
from orchestrator.diagnosis.decision.fed_axis import fed_signals, rule_results
from orchestrator.diagnosis.decision.fix import fix_for
from orchestrator.diagnosis.decision.foreseen import foreseen_arguments, foreseen_checks
from orchestrator.diagnosis.decision.foreseen_cost import foreseen_pays
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.next_runs import NextRun, next_runs
from orchestrator.diagnosis.decision.offline_axes import is_computing, offline_signals, weighty
from orchestrator.diagnosis.decision.row import Row
from orchestrator.diagnosis.decision.rule_axis import as_served, rule_signals
from orchestrator.diagnosis.decision.same_weights import captured_results, doubted_states, doubts
from orchestrator.diagnosis.decision.served_axes import served_signals
from orchestrator.diagnosis.decision.served_lengths import served_gap, wiring_cost
from orchestrator.diagnosis.decision.serving_checks import serving_checks
from orchestrator.diagnosis.decision.table import rows_at
from orchestrator.diagnosis.diagnose import SEVERITIES
from orchestrator.diagnosis.finding import Cause, CheckResult
from orchestrator.diagnosis.served_asked import ARGUMENTS
from orchestrator.diagnosis.served_engine import DRAFTER, PATH, SIMULATED
from orchestrator.diagnosis.served_measurement import REQUESTS, WORKS
from orchestrator.diagnosis.served_pairs import OUTPUTS

ORDER: tuple[Cause, ...] = ("loading", "wiring", "data", "engine", "parameters", "generalization", "economics")
"""Of findings of one severity: what must be mended before the next can be judged comes first."""
ACCEPTANCE: tuple[Cause, ...] = ("loading", "wiring", "data", "engine", "generalization")
"""Causes that explain an accept length; after one of them there is no need to look further for the verdict.

That no accept length pays is sure only where nothing is left that would raise it.
"""


def decide(known: Known) -> Decision:
    """Judge. Raises InvalidRunError where hits and rows do not fit each other."""
    if known.offline is not None and known.source is not None and known.offline.measured.source is None:
        known = replace(known, offline=known.offline.by(known.source))
    signals = (
        *(as_served(known, one) for one in offline_signals(known.offline, known.served)),
        *served_signals(known),
        *(doubted_states(known, one) for one in fed_signals(known)),
        *rule_signals(known),
        *pays_signals(known),
        *foreseen_arguments(known),
        *foreseen_pays(known),
    )
    if place_of(signals)["heldout"] == "unknown":
        signals = (*(item for item in signals if item.axis != "heldout"), *served_gap(known, signals))
    place = place_of(signals)
    rows = rows_at(place)
    checks = (*foreseen_checks(known), *serving_checks(known), *drift_checks(known), *captured_results(known),
              *(rule_results(known) if known.fed is None else ()))  # fmt: skip
    findings = _findings(known, rows, signals, [item for item in checks if item.outcome == "finding"])
    causes = tuple(dict.fromkeys(item.cause for item in findings if weighty(item) and item.cause is not None))
    runs = next_runs(known, rows)
    doubtful = any(row.doubts for row in rows)
    healthy = not causes and any(row.kind == "healthy" for row in rows)
    complete = not any(row.essential for row in rows)
    explained = complete or (any(cause in ACCEPTANCE for cause in causes) and place["pays"] != "loses")
    sound = not causes and any(row.kind == "sound" for row in rows)
    verdict: Verdict = "healthy" if healthy else causes[0] if causes else "sound" if sound else "cannot_tell"
    return Decision(
        verdict=verdict,
        headline=_headline(verdict, findings, signals, rows, runs),
        findings=findings,
        causes=causes,
        also=tuple(_also(known, rows, signals)),
        next_runs=runs,
        fix=fix_for(known, rows),
        certain=healthy or (bool(causes) and explained and not doubtful),
        place=place,
        rows=tuple(row.name for row in rows),
        signals=signals,
        checks=(*checks, *(item for signal in signals if signal.axis == "fed" for item in signal.results)),
    )


def _findings(
    known: Known, rows: Sequence[Row], signals: Sequence[Signal], checked: Sequence[CheckResult]
) -> tuple[CheckResult, ...]:
    """Of the faults' rows, then what the axes, both tests and the checks (`checked`) found beside them; each once."""
    told = [item for row in rows if row.kind == "fault" for item in _told(known, row, signals)]
    beside = [*_leftovers(known, place_of(signals)), *(item for signal in signals for item in signal.findings[1:])]
    beside += [item for signal in signals for item in signal.findings if not weighty(item)]
    return _ranked([*told, *(item for item in (*beside, *checked) if not _is_told(item, told))])


def _told(known: Known, row: Row, signals: Sequence[Signal]) -> Iterator[CheckResult]:
    """A row's findings: the first axis leads; numbers that other axes have for the same come before its own."""
    own = [signal for axis in row.tells for signal in signals if signal.axis == axis and signal.results]
    if not own or row.cause is None:
        return
    lead, *more = own
    first, *rest = [item for item in lead.findings if weighty(item)] or [_as_finding(lead.results[0], row)]
    seconds = [item for signal in more for item in signal.findings[:1]]
    effect = next((item.effect for item in (first, *seconds) if item.effect is not None), None)
    cost = wiring_cost(known) if row.cause == "wiring" else ()
    evidence = tuple(dict.fromkeys((*(one for item in seconds for one in item.evidence), *first.evidence, *cost)))
    yield replace(first, cause=row.cause, effect=effect, evidence=evidence)
    for item in rest:
        yield replace(item, cause=item.cause if row.cause == "data" or lead.axis == "fed" else row.cause)


def _as_finding(result: CheckResult, row: Row) -> CheckResult:
    """What no check calls a finding by itself: only together with other answers it is one."""
    return replace(
        result,
        outcome="finding",
        severity="serious",
        cause=row.cause,
        summary=f"{result.summary}: {row.why}",
        remedy=(result.needs,) if result.needs else ("train it on more text, generated by this target",),
        needs=None,
        refuted_by="a reading that predicts the training rows",
    )


def _leftovers(known: Known, place: Mapping[Axis, Answer]) -> Iterator[CheckResult]:
    """Findings of both tests that belong to no axis."""
    if known.offline is not None:
        for item in known.offline.diagnosis.findings:
            doubted = place["rows"] == "bad" and (is_computing(item) or item.check == "K5")
            on_axis = item.title == "wiring" or item.check == "gap" or (is_computing(item) and weighty(item))
            if not (doubted or on_axis):
                yield item
    if known.served is not None:
        for item in known.served.diagnosis.findings:
            if not _is_measuring(item) and item.title not in _SERVED_AXES:
                yield replace(item, cause="parameters") if item.check == "K13" else item


_SERVED_AXES = (ARGUMENTS.title, PATH.title, DRAFTER.title, WORKS.title)


def _is_measuring(item: CheckResult) -> bool:
    """Whether a finding speaks of the measurement, not of the pair that was measured."""
    return (item.check in ("load", "pair") and item.title != OUTPUTS.title) or item.title == SIMULATED.title


def _is_told(item: CheckResult, told: Sequence[CheckResult]) -> bool:
    """By check and sentence: a cause that was re-named is the same finding."""
    return any((item.check, item.title, item.summary) == (one.check, one.title, one.summary) for one in told)


def _ranked(findings: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Each once: by severity, then what must be mended first, then what it costs."""

    def weight(item: CheckResult) -> tuple[int, int, float]:
        severity = SEVERITIES.index(item.severity or "note")
        return severity, ORDER.index(item.cause or "engine"), -(0.0 if item.effect is None else item.effect)

    unique = {(item.check, item.title, item.summary): item for item in findings}
    return tuple(sorted(unique.values(), key=weight))


def _also(known: Known, rows: Sequence[Row], signals: Sequence[Signal]) -> Iterator[str]:
    """Rows beside the faults, what was foretold and came, and what makes a figure of the served run doubtful."""
    for row in rows:
        if row.kind in ("also", "ask") and row.tells:
            summaries = [
                item.summary for axis in row.tells for s in signals if s.axis == axis for item in s.results[:1]
            ]
            yield f"{'; '.join(summaries) or row.name}: {row.why}"
    for signal in signals:
        if signal.answer == "as_predicted":
            yield signal.results[0].summary
    yield from doubts(signals)
    if known.served is not None:
        for item in known.served.diagnosis.findings:
            if _is_measuring(item) and weighty(item):
                yield f"doubtful: {item.summary}"
                if item.title == REQUESTS.title and item.cause == "data":  # a line of its own: a screen cuts long ones
                    yield from (f"to have its speed: {remedy}" for remedy in item.remedy)


def _headline(
    verdict: Verdict,
    findings: Sequence[CheckResult],
    signals: Sequence[Signal],
    rows: Sequence[Row],
    runs: Sequence[NextRun],
) -> str:
    """Every cause once, each with its weightiest finding, and what contradicts; or what was seen, and what to run."""
    if verdict in ("healthy", "sound"):
        told = [item.summary for axis in _HEALTHY for s in signals if s.axis == axis for item in s.results[:1]]
        return f"{verdict}: {'; '.join(told)}"
    first = {item.cause: item for item in reversed(findings) if weighty(item)}
    named = [f"{item.cause}: {item.summary}" for item in findings if first.get(item.cause) is item]
    against = [
        f"contradiction: {s.results[0].summary}"
        for row in rows
        if row.kind == "ask" and row.bars_fix
        for s in signals
        if s.axis == row.tells[0] and s.results
    ]
    if named:
        return "; ".join([*named, *against[:1]])
    seen = [f"{signal.axis.replace('_', ' ')} {signal.answer.replace('_', ' ')}" for signal in signals]
    known = f"no fault is proven ({', '.join(seen)})" if seen else "nothing was measured"
    known = against[0] if against else known
    return f"cannot tell yet: {known}; next: {runs[0].what}" if runs else f"cannot tell: {known}"


_HEALTHY: tuple[Axis, ...] = ("fed", "feeding", "served_train", "served_heldout", "heldout", "pays")
