"""The standalone test as answers: files, rows, feeding, computing, and training against held-out text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.diagnosis.checks.heldout_rows import HELDOUT
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.inputs import Offline, Served
from orchestrator.diagnosis.decision.state_words import layers
from orchestrator.diagnosis.diagnose import COMPUTED, DOUBTED_BY
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_engine import DRAFTER
from orchestrator.diagnosis.verdict import Verdict, is_poor

WEIGHTY = ("fatal", "serious")
FEEDING: Mapping[Verdict, Answer] = {
    "sound": "as_trained",
    "mis_read": "as_trained",
    "mis_wired": "mis_fed",
    "cannot_serve": "mis_fed",
    "poor_fit": "poor",
    "nothing_fits": "poor",
    "unlabelled": "uncompared",
    "declared_not_captured": "uncompared",
    "unknown_rule": "uncompared",
}
"""Every other verdict tells nothing of the feeding."""
IF_POOR: Mapping[Verdict, Answer] = {"mis_wired": "suspected", "mis_read": "poor"}
"""The same where even the best reading is poor."""


def weighty(item: CheckResult) -> bool:
    """Whether a finding is heavy enough to name a cause."""
    return item.outcome == "finding" and item.severity in WEIGHTY


def offline_signals(offline: Offline | None, served: Served | None) -> Iterator[Signal]:
    """Five answers; `served` adds what its log says of the drafter that was loaded."""
    loaded = () if served is None else tuple(item for item in served.diagnosis.results if item.title == DRAFTER.title)
    wrong = tuple(item for item in loaded if weighty(item))
    if offline is None:
        if wrong:
            yield Signal(axis="files", answer="broken", results=wrong)
        return
    findings = offline.diagnosis.findings
    broken = (*wrong, *(item for item in findings if weighty(item) and item.cause == "loading" and item.check != "K5"))
    broken = _with_readings(broken, findings)
    yield Signal(axis="files", answer="broken" if broken else "whole", results=broken)
    rows = _rows(offline)
    yield rows
    feeding = _feeding(offline, doubted=rows.answer == "bad")
    yield feeding
    yield _computing(offline, feeding.answer, map_is_broken=any(item.check == "K3" for item in broken))
    gaps = tuple(item for item in offline.diagnosis.results if item.check == "gap")
    yield Signal(axis="heldout", answer=_gap(offline, gaps, doubted=rows.answer == "bad"), results=gaps)


def is_computing(item: CheckResult) -> bool:
    """Whether a finding is one on how the drafter is computed; a recursion that breaks down is one as well."""
    return (item.check in COMPUTED and item.cause == "wiring") or item.check == "K11"


def _with_readings(broken: tuple[CheckResult, ...], findings: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """A broken vocabulary map with what another reading of it is worth: that it reads better so is the same fact."""
    better = [one for item in findings if item.check == "K3" and is_computing(item) for one in item.evidence]
    return tuple(replace(item, evidence=(*item.evidence, *better)) if item.check == "K3" else item for item in broken)


def _rows(offline: Offline) -> Signal:
    data = tuple(item for item in offline.diagnosis.findings if item.cause == "data" and weighty(item))
    bad = tuple(item for item in data if item.check in DOUBTED_BY)
    return Signal(axis="rows", answer="bad" if bad else "flawed" if data else "sound", results=bad or data)


def _feeding(offline: Offline, *, doubted: bool) -> Signal:
    own = tuple(
        replace(item, summary=_fed_words(offline) or item.summary)
        for item in offline.diagnosis.results
        if item.check == "K5" and item.title == "wiring"
    )
    verdict = offline.wiring.verdict
    answer = "open" if doubted else FEEDING.get(verdict, "open")
    if not doubted and is_poor(offline.wiring.best):
        answer = IF_POOR.get(verdict, answer)
    return Signal(axis="feeding", answer=answer, results=own)


def _fed_words(offline: Offline) -> str | None:
    """What fc would be fed instead of what it reads best, with what that is worth; None where that is not the fault."""
    best, declared = offline.wiring.best, offline.wiring.declared
    captured, states = offline.measured.result.declared.captured, best.facts.states
    if offline.wiring.verdict != "mis_wired" or captured is None or states is None or captured == states:
        return None
    if offline.wiring.spelling is None:
        return None  # other sets of states read as well: which of them it was trained on is not known
    shares = [best.figures.first_step.value, None if declared is None else declared.figures.first_step.value]
    worth = ""
    if shares[0] is not None and shares[1] is not None:
        worth = f": step-1 accuracy {100 * shares[1]:.1f} % instead of {100 * shares[0]:.1f} %"
    return f"fc is fed with {layers(captured)} instead of {layers(states)}, which it was trained on{worth}"


def _computing(offline: Offline, feeding: Answer, *, map_is_broken: bool) -> Signal:
    own = tuple(
        item
        for item in offline.diagnosis.findings
        if is_computing(item) and weighty(item) and not (map_is_broken and item.check == "K3")
    )
    poor = feeding == "poor" and offline.wiring.verdict != "mis_read"
    if poor or feeding in ("open", "uncompared"):
        return Signal(axis="computing", answer="open", results=own)
    tried = any(item.check == "K8" and item.outcome != "cannot_tell" for item in offline.diagnosis.results)
    return Signal(axis="computing", answer="mis_read" if own else "as_trained" if tried else "unknown", results=own)


def _gap(offline: Offline, gaps: tuple[CheckResult, ...], *, doubted: bool) -> Answer:
    if offline.measured.heldout is None or not offline.measured.heldout.rows:
        return "unknown"
    if doubted or not gaps:
        return "open"
    if any(item.check == HELDOUT.check for item in offline.diagnosis.findings):
        return "unfit"
    if gaps[0].outcome == "finding":
        return "gap" if weighty(gaps[0]) else "small_gap"
    return "level" if gaps[0].outcome == "passed" else "open"
