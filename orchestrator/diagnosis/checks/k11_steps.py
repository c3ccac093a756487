"""K11: does the recursion work? Later steps that collapse while the first is right point at it alone.

Conditional acceptance is what counts: unconditional accuracy falls from step to step by nature. Sound drafters keep
0.8 to 1.05 of it from one step to the next (public figures: 0.80, 0.65, 0.59; two small ones: 0.72, 0.75, 0.79, 0.77).
"""

from dataclasses import replace

from orchestrator.compare.stats import Proportion
from orchestrator.diagnosis.checks.factors import ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import MeasuredReading
from remote_payload.schema import SelfFed

STEPS = Subject(check="K11", title="steps")

KEPT = 0.6
"""Share of the step before that conditional acceptance must keep."""
LEAST_FIRST = 0.4
"""Step-1 accuracy below which the profile says little: the inputs are wrong before the recursion is."""
LEAST_CHAINS = 50
"""Chains that must reach a step for its acceptance to be judged."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The best reading's profile over its steps."""
    ranking = ranking_of(measured)
    if ranking is None:
        return (STEPS.cannot_tell("no reading was measured on all rows", needs="rows that can be measured"),)
    best, fed = ranking.best, measured.result.self_fed
    evidence = _evidence(best, fed)
    conditional = best.figures.conditional
    if len(conditional) < 2:
        return (STEPS.cannot_tell("only one step was measured", needs="a run with `--steps 4`", evidence=evidence),)
    first = conditional[0].value
    if first is None or first < LEAST_FIRST:
        text = "step 1 is wrong already, so later steps say nothing"
        return (STEPS.cannot_tell(text, needs="a reading that fits", evidence=evidence),)
    judged = [step for step in range(1, len(conditional)) if conditional[step].n >= LEAST_CHAINS]
    if not judged:
        return (STEPS.cannot_tell("too few chains reach step 2", needs="more rows", evidence=evidence),)
    for step in judged:
        if _collapsed(conditional[step - 1], conditional[step]):
            return (_finding(step, best, fed, evidence),)
    return (STEPS.passed("later steps hold what the first one promises", evidence),)


def _collapsed(before: Proportion, after: Proportion) -> bool:
    """Surely below `KEPT` of the step before: the far ends of both intervals."""
    return before.low is not None and after.high is not None and after.high < KEPT * before.low


def _finding(step: int, best: MeasuredReading, fed: SelfFed | None, evidence: tuple[Evidence, ...]) -> CheckResult:
    conditional = [item.value or 0.0 for item in best.figures.conditional]
    fresh = _fresh(fed, step)
    aside = f", though {100 * fresh:.0f} % of these tokens are hit from the target's own state" if fresh else ""
    found = STEPS.finding(
        f"step {step + 1} collapses: {100 * conditional[step]:.0f} % after hits against "
        f"{100 * conditional[step - 1]:.0f} % at step {step}{aside}",
        severity="serious",
        cause="wiring",
        evidence=evidence,
        remedy=(
            "see check K8: feedback of the normed output (`norm_output`) where training fed the raw one, or vice versa",
            f"else the drafter was trained for {step} step{'s' if step > 1 else ''}: train it with as many "
            "training-time-test steps as are served (SpecForge `--ttt-length 7`)",
            f"until then serve with --speculative-num-steps {step}",
        ),
        refuted_by="a reading of the feedback under which later steps hold",
    )
    expected = conditional[step - 1]
    reach = 1.0
    for value in conditional[:step]:
        reach *= value
    return replace(found, effect=reach * (expected - conditional[step]))


def _fresh(fed: SelfFed | None, step: int) -> float | None:
    if fed is None or step >= len(fed.fresh_hits) or not fed.positions[step]:
        return None
    return fed.fresh_hits[step] / fed.positions[step]


def _evidence(best: MeasuredReading, fed: SelfFed | None) -> tuple[Evidence, ...]:
    lines = [
        share(f"acceptance of step {step + 1} after hits", item.hits, item.n)
        for step, item in enumerate(best.figures.conditional)
    ]
    if fed is not None:
        for step, n in enumerate(fed.positions):
            lines.append(share(f"step {step + 1} fed with the row's tokens", fed.teacher_fed_hits[step], n))
            lines.append(share(f"step {step + 1} fed with its own tokens", fed.self_fed_hits[step], n))
            lines.append(
                share(f"the same tokens at step 1 from the target's state (step {step + 1})", fed.fresh_hits[step], n)
            )
    return tuple(lines)
