"""Answers as samples of acceptance: those to one prompt, or of one conversation, are one, however often asked."""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.compare.stats import Estimate, pooled_ratio
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
