"""K5: the wiring sweep: whether serving would feed the states that the drafter reads best, and it needs them."""

from dataclasses import replace

from orchestrator.diagnosis.checks.factors import FATAL_LENGTH, ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, figure, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import GOOD_FIT, LEAST_FIT, WiringVerdict
from orchestrator.diagnosis.wiring import judge
from orchestrator.diagnosis.without_states import share_with_states, without_states

WIRING = Subject(check="K5", title="wiring")
STATES = Subject(check="K5", title="use of the states")

IDLE = 0.9
"""Share of its accuracy that a drafter may keep without its states before it is said not to use them."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The wiring verdict as a check, and the control without states."""
    if ranking_of(measured) is None:
        nothing = WIRING.cannot_tell("no reading was measured on all rows", needs="rows that can be measured")
        return (nothing,)
    wiring = judge(measured)
    return (_wiring(wiring), *_control(measured, wiring))


def _wiring(wiring: WiringVerdict) -> CheckResult:
    evidence = _evidence(wiring)
    if wiring.verdict in ("sound", "mis_read"):
        return WIRING.passed("serving would feed the drafter the states it reads best", evidence)
    if wiring.verdict in ("mis_wired", "cannot_serve"):
        lost = None
        if wiring.declared is not None:
            means = [item.figures.accept_length_mean.value for item in (wiring.best, wiring.declared)]
            lost = None if None in means else (means[0] or 0.0) - (means[1] or 0.0)
        found = WIRING.finding(
            wiring.headline,
            severity=_severity(wiring),
            cause="wiring",
            evidence=evidence,
            remedy=wiring.fix,
            refuted_by="the served reading as good as the best one on more rows",
        )
        return replace(found, effect=lost)
    if wiring.verdict == "nothing_fits":
        found = WIRING.finding(
            wiring.headline,
            severity="serious",
            cause="loading",
            evidence=evidence,
            remedy=wiring.fix,
            refuted_by="rows of the very target and the very states that it was trained on",
        )
        return replace(found, effect=0.0)  # a symptom: whatever names a cause comes first
    needs = wiring.fix[0] if wiring.fix else "more rows, or the rule of the target's class"
    return WIRING.cannot_tell(wiring.headline, needs=needs, evidence=evidence)


def _severity(wiring: WiringVerdict) -> Severity:
    declared = wiring.declared
    if wiring.verdict == "cannot_serve":
        return "fatal"
    length = None if declared is None else declared.figures.accept_length_mean.value
    return "fatal" if length is not None and length < FATAL_LENGTH else "serious"


def _evidence(wiring: WiringVerdict) -> tuple[Evidence, ...]:
    best = wiring.best.figures.first_step
    lines = [share(f"step-1 accuracy, best reading ({wiring.best.facts.name})", best.hits, best.n)]
    if wiring.declared is not None and wiring.declared is not wiring.best:
        served = wiring.declared.figures.first_step
        lines.append(share(f"step-1 accuracy, as served ({wiring.declared.facts.name})", served.hits, served.n))
    if wiring.difference is not None and wiring.against is not None:
        lines.append(figure(f"step-1 accuracy, best minus {wiring.against}", wiring.difference, "share"))
    if wiring.ratio is not None and wiring.against is not None:
        lines.append(figure(f"accept length, best over {wiring.against}, minus 1", wiring.ratio, "change"))
    return (*lines, count("readings tried", wiring.readings_tried))


def _control(measured: Measured, wiring: WiringVerdict) -> tuple[CheckResult, ...]:
    """What is left without states, from the rows of the control's stage."""
    best, without = wiring.best.figures.first_step.value or 0.0, without_states(measured.result)
    if without is None:
        return ()
    evidence = (
        share(f"step-1 accuracy without its states ({without.name})", without.first_step_hits, without.positions),
        share("step-1 accuracy, best reading", wiring.best.figures.first_step.hits, wiring.best.figures.first_step.n),
    )
    beside = share_with_states(without, best)
    left = without.first_step_hits / without.positions
    if beside < LEAST_FIT:
        text = f"too little is predicted to tell: {100 * beside:.0f} % with its states, {100 * left:.0f} % without them"
        needs = "a reading that predicts the target"
        return (STATES.cannot_tell(text, needs=needs, evidence=evidence),)
    if left < IDLE * beside:
        return (STATES.passed(f"the drafter needs its states: {100 * left:.0f} % without them", evidence),)
    return (
        STATES.finding(
            "the drafter predicts as well without its states: it hardly uses them",
            severity="serious" if beside < GOOD_FIT else "minor",
            cause="loading",
            evidence=evidence,
            remedy=("look at fc.weight and hidden_norm.weight, and at what it was fed in training",),
            refuted_by="a clear loss without states on more rows",
        ),
    )
