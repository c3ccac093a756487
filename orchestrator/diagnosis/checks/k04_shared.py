"""K4: the drafter's embed_tokens and lm_head against the target's: whose are used, and whether they fit."""

from orchestrator.diagnosis.checks.factors import factor_results, ranking_of
from orchestrator.diagnosis.checks.k03_head import is_map_wrong
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import LEAST_FIT
from remote_payload.schema import SharedTensorFacts

EMBEDDING = Subject(check="K4", title="embedding")
HEAD = Subject(check="K4", title="lm_head")

ALIKE = 0.9
"""Mean cosine above which an embedding is the target's, rounded or a little trained; a random one has about 0."""
UNLIKE_HEAD = 0.01
"""Mean cosine below which a head has nothing of the target's. A head trained from scratch had 0.03 on its own rows and
0.006 on others', so this alone is never a fault."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """Both tensors."""
    shared = {item.name: item for item in measured.result.checkpoint.shared}
    if not shared:
        text = "the result does not compare the drafter's tensors with the target's"
        return (EMBEDDING.cannot_tell(text, needs="a run of this version"),)
    read = [item for item in factor_results(EMBEDDING, measured, ("embedding",)) if item.outcome == "finding"]
    embedding, head = shared.get("embed_tokens"), shared.get("lm_head")
    found = [*read]
    if embedding is not None and not read:
        found.append(_embedding(embedding))
    if head is not None:
        found.append(_head(head, measured))
    return tuple(found)


def _embedding(item: SharedTensorFacts) -> CheckResult:
    evidence = _evidence(item)
    if not item.stored:
        return EMBEDDING.passed("the drafter stores none; engines use the target's", evidence)
    if item.identical:
        return EMBEDDING.passed("the drafter's embedding is the target's", evidence)
    if item.mean_cosine is None and item.identical is None:
        return EMBEDDING.cannot_tell(
            "the drafter's embedding cannot be compared with the target's",
            needs="a target of the same size",
            evidence=evidence,
        )
    if item.mean_cosine is not None and item.mean_cosine >= ALIKE:
        return EMBEDDING.passed(
            "the drafter's embedding is the target's but for rounding or a little training", evidence
        )
    return EMBEDDING.finding(
        "the drafter stores an embedding that is not the target's, and does not need it",
        severity="minor",
        cause="loading",
        evidence=evidence,
        remedy=(
            "delete embed_tokens.weight from the drafter's files: SGLang takes the target's anyway, but vLLM keeps the "
            "drafter's own where it differs and loses about half of the acceptance",
        ),
        refuted_by="the reading `embedding=draft` being the better one",
    )


def _head(item: SharedTensorFacts, measured: Measured) -> CheckResult:
    evidence = _evidence(item)
    if not item.stored and item.served == "random":
        return HEAD.cannot_tell("the drafter has no lm_head to compare: see K1", needs="a head", evidence=evidence)
    if not item.stored:
        return HEAD.passed("the drafter stores none; SGLang lends it the target's", evidence)
    ranking = ranking_of(measured)
    accuracy = None if ranking is None else ranking.best.figures.first_step.value
    vocabulary = measured.result.checkpoint.vocabulary
    mapped_wrong = vocabulary is not None and is_map_wrong(vocabulary)  # its rows are then held against other tokens'
    foreign = item.mean_cosine is not None and abs(item.mean_cosine) < UNLIKE_HEAD and not mapped_wrong
    if foreign and accuracy is not None and accuracy < LEAST_FIT:
        return HEAD.finding(
            "lm_head has nothing in common with the target's, and no reading predicts the target: it may be of "
            "another model, or random",
            severity="minor" if item.served == "target" else "fatal",  # SGLang then never uses it
            cause="loading",
            evidence=(*evidence, Evidence(name="step-1 accuracy, best reading", value=accuracy, unit="share")),
            remedy=("export lm_head again from the drafter's training state",),
            refuted_by="a training state with this very head",
        )
    if item.identical and accuracy is not None and accuracy < LEAST_FIT:
        return _overwritten(evidence, accuracy)
    return HEAD.passed(
        "the drafter has a head of its own" if not item.identical else "the head is the target's", evidence
    )


def _overwritten(evidence: tuple[Evidence, ...], accuracy: float) -> CheckResult:
    """Seen: an engine and some exporters put the target's rows in place of the trained head (vLLM, PR 27732)."""
    return HEAD.finding(
        "lm_head is bit by bit the target's rows, and no reading predicts the target: the drafter's own head may have "
        "been overwritten with them",
        severity="serious",
        cause="loading",
        evidence=(*evidence, Evidence(name="step-1 accuracy, best reading", value=accuracy, unit="share")),
        remedy=(
            "export lm_head again from the drafter's training state, and look where the export or the loader takes it "
            "from the target",
        ),
        refuted_by="a training state whose lm_head is the target's too: a drafter that was trained with it frozen",
    )


def _evidence(item: SharedTensorFacts) -> tuple[Evidence, ...]:
    lines = [
        Evidence(name="stored with the drafter", value="yes" if item.stored else "no"),
        Evidence(name="used here", value=item.used),
        Evidence(name="used by SGLang", value=item.served),
    ]
    if item.mean_cosine is not None:
        lines.append(Evidence(name=f"mean cosine of {item.name}'s rows with the target's", value=item.mean_cosine))
    return tuple(lines)
