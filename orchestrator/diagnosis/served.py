"""A served benchmark judged: is it a measurement, did the server do what was asked, does speculation pay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.served import Draft, LoadFigures, PairedLoad, ServedFigures
from orchestrator.diagnosis.finding import CheckResult, Severity
from orchestrator.diagnosis.served_arguments import check_arguments
from orchestrator.diagnosis.served_engine import check_engine, simulates
from orchestrator.diagnosis.served_measurement import (
    NOT_WORKING,
    check_answers,
    check_baseline,
    check_load,
    check_machine,
    check_workload,
    load_words,
)
from remote_payload.schema.bench import BenchResult, MachineSample, RequestSample

ServedVerdict = Literal[
    "invalid",
    "simulated",
    "not_working",
    "suspicious_baseline",
    "faster",
    "slower",
    "mixed",
    "no_difference",
    "measured",
    "nothing_measured",
]
SEVERITIES: tuple[Severity, ...] = ("fatal", "serious", "minor", "note")
NEAR = 0.02
"""Speed-up within which speculation is called neither faster nor slower where repeats give no interval."""


@dataclass(frozen=True, kw_only=True)
class ServedDiagnosis:
    """What a served benchmark says, all of it."""

    verdict: ServedVerdict
    headline: str
    fix: tuple[str, ...]
    results: tuple[CheckResult, ...]
    findings: tuple[CheckResult, ...]
    """By severity."""


def diagnose_served(
    result: BenchResult,
    requests: Sequence[RequestSample],
    figures: ServedFigures,
    machine: Sequence[MachineSample] = (),
) -> ServedDiagnosis:
    """Run every check and choose the top line."""
    users = max((load.concurrency or 0 for load in figures.loads), default=0)
    results: list[CheckResult] = []
    for server in result.servers:
        results += check_arguments(server, result.sglang, users)
        results += check_engine(server, result)
    for load in figures.loads:
        results += check_load(load)
    results += [check_answers(requests)] if requests else []
    results += [*check_workload(result.workload), *check_baseline(figures), *check_machine(machine)]
    unique = tuple({(item.title, item.outcome, item.summary): item for item in results}.values())
    found = [item for item in unique if item.outcome == "finding"]
    findings = tuple(sorted(found, key=lambda item: SEVERITIES.index(item.severity or "note")))
    verdict, line = _top(result, figures)
    weighty = [item for item in findings if item.severity in ("fatal", "serious")]
    also = [f"also: {item.summary}" for item in weighty if item.title not in _TOLD.get(verdict, ())]
    fix = tuple(dict.fromkeys(text for item in weighty for text in item.remedy))
    headline = "; ".join([line, *dict.fromkeys(also)])
    return ServedDiagnosis(verdict=verdict, headline=headline, fix=fix, results=unique, findings=findings)


_TOLD: dict[ServedVerdict, tuple[str, ...]] = {
    "invalid": ("requests",),
    "simulated": ("simulated acceptance",),
    "not_working": ("drafter at work",),
    "suspicious_baseline": ("plain decoding",),
}
"""Checks whose findings the verdict's own line tells."""


def _top(result: BenchResult, figures: ServedFigures) -> tuple[ServedVerdict, str]:
    if figures.part is not None:
        return "invalid", f"the run ended early, {figures.part.words}: no measurement"
    if not figures.loads:
        return "nothing_measured", "no load of our own was measured" if result.harness else "nothing was measured"
    if not figures.valid:
        return "invalid", _invalid(figures)
    spec = [load for load in figures.loads if load.side == "spec"]
    if simulates(result):
        return "simulated", "the accept length is simulated (SGLANG_SIMULATE_ACC_LEN): no statement about the drafter"
    lengths = [value for load in spec if load.acceptance and (value := load.acceptance.length.value) is not None]
    if lengths and max(lengths) <= NOT_WORKING:
        return "not_working", f"the drafter is not working: accept length {max(lengths):.2f}, nothing is accepted"
    if any(item.pairing.suspicious for item in figures.pairs):
        worst = min(figures.pairs, key=lambda item: item.pairing.step_cost or 1.0)
        cost = f"step cost r = {worst.pairing.step_cost:.2f} < 1"
        return "suspicious_baseline", (
            f"plain decoding looks too slow {load_words(worst.plain)} ({cost}): the speed-up cannot be trusted"
        )
    if figures.pairs:
        return _paired(figures.pairs, figures.draft)
    return "measured", "; ".join(measured_words(load, figures.draft) for load in (spec or figures.loads)[:1])


def _invalid(figures: ServedFigures) -> str:
    bad = [load for load in figures.loads if not load.valid]
    failed = sum(load.failed for load in bad)
    if not failed:
        return f"no request was answered {load_words(bad[0])}: no measurement"
    more = ", ..." if len(bad) > 1 else ""
    return f"{failed} request{'' if failed == 1 else 's'} failed ({load_words(bad[0])}{more}): no measurement"


def _paired(pairs: Sequence[PairedLoad], draft: Draft) -> tuple[ServedVerdict, str]:
    sides = {direction(item) for item in pairs}
    verdict: ServedVerdict = "mixed" if {1, -1} <= sides else "no_difference"
    if sides in ({1}, {0, 1}):
        verdict = "faster"
    elif sides in ({-1}, {0, -1}):
        verdict = "slower"
    shown = [item for item in pairs if direction(item) == -1][:1] or [pairs[0]]
    if verdict == "mixed":
        shown = [next(item for item in pairs if direction(item) == side) for side in (1, -1)]
    return verdict, "; ".join(_pair_words(item, draft) for item in shown)


def direction(item: PairedLoad) -> int:
    """1 = speculation is faster, -1 = slower, 0 = no telling."""
    pays = item.pairing.pays
    if pays is not None:
        return 1 if pays else -1
    value = item.pairing.speedup.value
    if value is None or item.pairing.speedup.low is not None:
        return 0
    return 1 if value > 1 + NEAR else -1 if value < 1 - NEAR else 0


def _pair_words(item: PairedLoad, draft: Draft) -> str:
    pairing = item.pairing
    ours, theirs = item.spec.speed.throughput.value, item.plain.speed.throughput.value
    word = {1: "faster than", -1: "slower than", 0: "no surely different from"}[direction(item)]
    load = load_words(item.spec).removesuffix(" (spec)")
    line = f"{word} plain decoding {load}: {ours or 0:.1f} against {theirs or 0:.1f} tok/s"
    if pairing.speedup.value is not None:
        sure = "" if pairing.speedup.low is not None else ", too few repeats for an interval"
        line += f" ({pairing.speedup.value:.2f}x{sure})"
    if pairing.accept_length is None or pairing.step_cost is None:
        return line
    ceiling = "" if draft.ceiling is None else f" of {draft.ceiling}"
    return (
        f"{line} at accept length {pairing.accept_length:.2f}{ceiling}; a speculative step costs "
        f"{pairing.step_cost:.2f} plain steps, so it pays above accept length {pairing.step_cost:.2f}"
    )


def measured_words(load: LoadFigures, draft: Draft) -> str:
    """One load in a line, e.g. `56.8 tok/s at 1 user (spec), accept length 1.90 of 2`."""
    line = f"{load.speed.throughput.value or 0:.1f} tok/s {load_words(load)}"
    if load.acceptance is None or load.acceptance.length.value is None:
        return line
    ceiling = "" if draft.ceiling is None else f" of {draft.ceiling}"
    return f"{line}, accept length {load.acceptance.length.value:.2f}{ceiling}"
