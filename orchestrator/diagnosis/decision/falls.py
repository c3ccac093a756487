"""Whether acceptance falls from one part of the answers to another: a difference judged."""

from dataclasses import replace

from orchestrator.compare.stats import Estimate
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, figure


def judged(
    subject: Subject,
    difference: Estimate,
    what: str,
    how: tuple[Severity, float, str],
    evidence: tuple[Evidence, ...] = (),
) -> CheckResult:
    """A finding where acceptance surely falls, by more than the margin. `how`: severity, margin (tokens), remedy."""
    severity, margin, remedy = how
    told = (figure(f"accept length, {what}", difference, "tokens"), *evidence)
    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return subject.cannot_tell(f"too few prompts for an interval: {what}", needs="more prompts", evidence=told)
    text = f"accept length {value:+.2f} [{low:+.2f}, {high:+.2f}], {what}"
    if high < 0 and value < -margin:
        found = subject.finding(
            f"acceptance falls: {text}",
            severity=severity,
            cause="engine" if severity == "serious" else "generalization",
            evidence=told,
            remedy=(remedy,),
            refuted_by="no fall on other prompts",
        )
        return replace(found, effect=-value)
    if low > -margin:
        return subject.passed(f"no fall by more than {margin:g}: {text}", told)
    return subject.cannot_tell(f"cannot tell: {text}", needs="more prompts", evidence=told)
