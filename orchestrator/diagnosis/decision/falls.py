"""Whether acceptance falls from one part of the answers to another: sums by sample, and a difference judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator.compare.stats import Estimate, pooled_ratio
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, figure
from remote_payload.schema.bench import RequestSample

Sums = Mapping[str, tuple[int, int]]
"""(verify steps + accepted drafts, verify steps) of each sample."""


def has_drafts(item: RequestSample) -> bool:
    """Whether an answer tells of its verify steps and of what they accepted."""
    return bool(item.verify_steps) and item.correct_drafts is not None


def sample_of(item: RequestSample, contents: Sequence[str]) -> str:
    """What a request is a sample of: its prompt's conversation or content, else its prompt's number."""
    return contents[item.prompt] if item.prompt < len(contents) else str(item.prompt)


def sums_by_sample(requests: Iterable[RequestSample], contents: Sequence[str] = ()) -> Sums:
    """Answers to one prompt, or of one conversation, are one sample: greedy repeats add nothing new."""
    found: dict[str, tuple[int, int]] = {}
    for item in requests:
        steps = item.verify_steps or 0
        length, known = found.get(sample_of(item, contents), (0, 0))
        found[sample_of(item, contents)] = (length + steps + (item.correct_drafts or 0), known + steps)
    return found


def length_of(sums: Sums) -> Estimate:
    """The accept length, 1 + accepted drafts / verify steps, over samples."""
    return pooled_ratio([row[0] for row in sums.values()], [row[1] for row in sums.values()])


def columns(sums: Sums, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Both sums of these samples, in their order."""
    return [sums[name][0] for name in names], [sums[name][1] for name in names]


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
