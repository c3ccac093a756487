"""K14: which accept length was measured; K16 and K17 beside it: the served template, and the formats of all parts."""

from collections.abc import Iterator

from orchestrator.diagnosis.decision.inputs import Known, Served
from orchestrator.diagnosis.decision.served_formats import formats
from orchestrator.diagnosis.finding import CheckResult, Subject, figure
from orchestrator.diagnosis.served_template import template

METRIC = Subject(check="K14", title="metric definitions")
LENGTHS_APART = 0.1
"""Accept length by which the two definitions may differ before a comparison must say which one it takes."""


def serving_checks(known: Known) -> Iterator[CheckResult]:
    """What the served run holds of the three; cannot_tell with what is needed where it does not."""
    if known.served is None:
        return
    yield metric(known.served)
    yield template(known.served.result.workload)
    yield from formats(known)


def metric(served: Served) -> CheckResult:
    """K14: 1 + accepted / verify steps against tokens / verify steps, and which of them this version tells."""
    loads = [load for load in served.figures.loads if load.side == "spec" and load.acceptance is not None]
    found = loads[0].acceptance if loads else None
    if found is None:
        return METRIC.cannot_tell("no answer tells of verify steps", needs="answers of `/generate` with spec_verify_ct")
    both = (
        figure("accept length: 1 + accepted drafts / verify steps", found.accept_length, "tokens"),
        figure("tokens per verify: output tokens / verify steps", found.tokens_per_verify, "tokens"),
    )
    ours, theirs = found.accept_length.value, found.tokens_per_verify.value
    if ours is None:
        return METRIC.cannot_tell(
            f"this version tells no accepted drafts: {theirs or 0:.2f} are output tokens per verify step, which the "
            "prefill's token raises on short outputs",
            needs="SGLang 0.5.6 or newer, whose answers tell accepted drafts",
            evidence=both,
        )
    if theirs is not None and abs(theirs - ours) > LENGTHS_APART:
        return METRIC.finding(
            f"two definitions differ by {theirs - ours:+.2f}: accept length {ours:.2f}, tokens per verify {theirs:.2f}",
            severity="note",
            cause="parameters",
            evidence=both,
            remedy=("compare only like with like; SGLang's own `spec_accept_length` is tokens per verify step",),
            refuted_by="longer outputs, on which the two agree",
        )
    return METRIC.passed(f"accept length {ours:.2f} counts the bonus token; SGLang's own ratio agrees", both)
