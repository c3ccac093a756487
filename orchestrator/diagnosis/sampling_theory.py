"""What exact sampling makes of acceptance, in theory.

SGLang verifies by the target's probabilities alone: a draft of target probability p (after temperature, top-k, top-p)
is accepted with min(1, p / threshold_acc), or surely where p is at least threshold_single; both are 1 unless set, and
then the answers are exactly the target's own draws. So the share of accepted first drafts is the mean of p where greedy
decoding has 1 for the likeliest token and 0 for others. Where `--speculative-use-rejection-sampling` is set it is the
sum over tokens of min(p, q), q the drafter's (Leviathan et al. 2023, theorem 3.5).

For a chain, h the greedy share of accepted first drafts and a the sampled one, on text alike: a = h c + (1 - h) m, c
the mean probability of the target's likeliest token where the drafter names it, m that of a draft which is not the
likeliest, at most 1/2. So c lies from (a - (1 - h) / 2) / h to a / h, and a is at most h + (1 - h) / 2: more is no
sampling of the target's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.served import effective
from orchestrator.compare.stats import Estimate, pooled_ratio
from orchestrator.diagnosis.finding import Evidence
from orchestrator.diagnosis.samples import sample_of
from remote_payload.schema.bench import RequestSample, ServerFacts

THRESHOLDS = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
REJECTION = "speculative_use_rejection_sampling"
MEAN = "the mean of the target's probability of the draft"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What two shares of accepted first drafts imply."""

    least: float
    """Of the mean probability that the target gives its likeliest token where the drafter names it."""
    most: float
    is_beyond: bool
    """Whether more is surely accepted than any target's own draws allow."""

    @property
    def words(self) -> str:
        """As an end of a sentence."""
        told = f"{self.least:.2f} to {self.most:.2f}"
        return (
            f"; to be expected of a target that gives its likeliest token a probability of {told} where it is drafted"
        )

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Both ends."""
        name = "mean probability of the target's likeliest token where it is drafted, as exact sampling implies"
        return (Evidence(name=f"{name}: least", value=self.least), Evidence(name=f"{name}: most", value=self.most))


def expected(
    greedy: Sequence[RequestSample],
    sampled: Sequence[RequestSample],
    server: ServerFacts | None,
    contents: Sequence[str] = (),
) -> Expected | None:
    """None where a share is not told, no draft is ever the likeliest, or drafts are accepted by another rule."""
    if meaning(server) != MEAN:
        return None
    hits, drawn = first_share(greedy, contents), first_share(sampled, contents)
    if hits is None or drawn is None or not hits.value or drawn.value is None:
        return None
    h, a = hits.value, drawn.value
    return Expected(
        least=min(1.0, max(0.0, (a - (1 - h) / 2) / h)),
        most=min(1.0, a / h),
        is_beyond=drawn.low is not None and hits.high is not None and drawn.low > (1 + min(hits.high, 1.0)) / 2,
    )


def meaning(server: ServerFacts | None) -> str:
    """What the share of accepted first drafts is, in theory."""
    if server is None:
        return MEAN
    if effective(server, REJECTION) is True:
        return "the mean over positions of sum min(p, q), p the target's and q the drafter's probabilities"
    values = [effective(server, name) for name in THRESHOLDS]
    if any(isinstance(value, int | float) and value < 1 for value in values):
        return "the mean of min(1, p / threshold_acc), p the target's probability of the draft"
    if effective(server, "speculative_eagle_topk") not in (None, 1):
        return "the mean of the target's probabilities of the tree's first drafts, added up"
    return MEAN


def first_share(requests: Sequence[RequestSample], contents: Sequence[str] = ()) -> Estimate | None:
    """Steps that accepted one draft or more, of all steps, over samples. None = no histogram is told."""
    found: dict[str, tuple[int, int]] = {}
    for item in requests:
        if item.histogram and sum(item.histogram):
            name = sample_of(item, contents)
            hits, steps = found.get(name, (0, 0))
            found[name] = (hits + sum(item.histogram[1:]), steps + sum(item.histogram))
    if not found:
        return None
    return pooled_ratio([row[0] for row in found.values()], [row[1] for row in found.values()])
