"""K3: whether the draft vocabulary's map leads where lm_head's rows belong: d2t in every reading, t2d, coverage."""

from dataclasses import replace

from orchestrator.compare.figures import coverage
from orchestrator.diagnosis.checks import k03_head
from orchestrator.diagnosis.checks.factors import factor_results, ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.remedies import remedy
from orchestrator.diagnosis.verdict import is_poor
from remote_payload.schema import CheckpointFacts, MapReading, TensorFact, VocabularyFacts

MAP = Subject(check="K3", title="vocabulary map")
COVERAGE = Subject(check="K3", title="vocabulary coverage")
READING = Subject(check="K3", title="vocabulary map as read")

MAPS = ("d2t", "t2d")
EXACT = {"BF16": 1 << 8, "F16": 1 << 11, "F32": 1 << 24, "F64": 1 << 53}
"""Safetensors' floats, and the number up to which they hold every whole one."""
ROUNDS_BELOW = 1 << 17
"""Vocabularies are as large."""
OUTSIDE = 0.1
"""Share of the teacher's choices outside the draft vocabulary: it bounds acceptance. Seen in sound sets: up to 3 %."""
FAR_OUTSIDE = 0.25


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The map itself, how its readings do, and what share of the target's choices it covers."""
    checkpoint = measured.result.checkpoint
    vocabulary = checkpoint.vocabulary
    if vocabulary is None:
        return (
            MAP.cannot_tell("the result says nothing about d2t", needs="a run of this version"),
            _coverage(measured),
        )
    ranking = ranking_of(measured)
    # By the map that the head itself tells it may read well: as it is served, it does not.
    poor = ranking is not None and (is_poor(ranking.best) or "vocabulary=mended" in ranking.best.facts.changes)
    found = _map(vocabulary, checkpoint, poor=poor)
    read = [item for item in factor_results(READING, measured, ("vocabulary",)) if item.outcome == "finding"]
    known = found.outcome == "finding" or bool(read)
    kinds = tuple(_stored_as(fact) for fact in checkpoint.tensors if fact.name in MAPS and fact.dtype in EXACT)
    named = () if (read or kinds) and found.outcome != "finding" else (found,)
    return (*named, *kinds, *read, _coverage(measured, known=known))


def _stored_as(fact: TensorFact) -> CheckResult:
    """A map that is stored as floats: what it holds is whole, but no engine looks ids up with floats."""
    most, rounds = EXACT[fact.dtype], EXACT[fact.dtype] < ROUNDS_BELOW
    severity: Severity
    if fact.name == "t2d":
        text, severity = "engines make their own, or skip it", "note"
    elif rounds:
        text, severity = f"which rounds every number beyond {most}: ids are lost", "serious"
    else:
        text, severity = (
            "its whole numbers were used; an engine that looks ids up with it may refuse or round it",
            "minor",
        )
    return MAP.finding(
        f"{fact.name} is stored as floats ({fact.dtype}): {text}",
        severity=severity,
        cause="loading",
        evidence=(Evidence(name=f"{fact.name} stored as", value=fact.dtype),),
        remedy=(f"export {fact.name} again as {'booleans' if fact.name == 't2d' else 'int64'}",),
        refuted_by="an engine that casts it",
    )


def _map(vocabulary: VocabularyFacts, checkpoint: CheckpointFacts, *, poor: bool) -> CheckResult:
    """`poor`: no reading of d2t predicts the target well, as with a map that leads elsewhere."""
    size = vocabulary.draft_vocab_size
    pruned = size < vocabulary.vocab_size
    offset = next((item for item in vocabulary.readings if item.reading == "offset"), None)
    if not vocabulary.d2t:
        if not pruned:
            return MAP.passed("the full vocabulary, without a map", (count("draft tokens", size),))
        return _finding("there is no d2t although the vocabulary is pruned: engines propose the first ids", vocabulary)
    if offset is None:
        return MAP.cannot_tell("d2t was not read as offsets", needs="a run of this version")
    if pruned and vocabulary.all_zero and offset.agrees_with_t2d is not True:
        text = "d2t is all zero although the vocabulary is pruned: every proposal is one of the first ids"
        return _finding(text, vocabulary, ("export d2t again: offsets, target id minus draft id",))
    if not _leads(offset, size):
        return _no_offsets(vocabulary, offset, checkpoint)
    return (
        _by_head(vocabulary, poor)
        or _oddities(offset, vocabulary, poor)
        or MAP.passed("d2t holds offsets to distinct, increasing target ids", _evidence(vocabulary))
    )


def _no_offsets(vocabulary: VocabularyFacts, offset: MapReading, checkpoint: CheckpointFacts) -> CheckResult:
    size = vocabulary.draft_vocab_size
    if any(item.reading == "absolute" and _leads(item, size) for item in vocabulary.readings):
        fix = remedy("vocabulary", "absolute", "offset", checkpoint)
        return _finding("d2t holds target ids; engines take it as offsets", vocabulary, fix)
    outside = size - offset.in_range
    text = (
        f"d2t, read as offsets, leads {outside} of {size} ids outside the vocabulary and "
        f"{offset.in_range - offset.distinct} to a token that another id leads to: these can never be accepted"
    )
    found = _finding(text, vocabulary)
    proving = (
        count("draft ids that lead outside the vocabulary", outside, size),
        count("draft ids that lead to another one's token", offset.in_range - offset.distinct, size),
    )
    return replace(found, evidence=(*proving, *found.evidence))


def _by_head(vocabulary: VocabularyFacts, poor: bool) -> CheckResult | None:
    """What lm_head's rows say against the map; that they say nothing for it is no fault where all reads well."""
    fault, head = k03_head.says(vocabulary), vocabulary.head
    if head is None or fault in ("right", "nothing") or (fault == "unrelated" and not poor):
        return None
    severity: Severity = "fatal" if poor else "serious"
    return _finding(k03_head.summary(head, fault), vocabulary, k03_head.remedy(head, fault), severity)


def _oddities(offset: MapReading, vocabulary: VocabularyFacts, poor: bool) -> CheckResult | None:
    """What engines do not notice; serious where it may be why nothing is predicted."""
    if offset.agrees_with_t2d is False:
        right = k03_head.says(vocabulary) == "right"
        text = "t2d marks other target tokens than d2t leads to: " + (
            "lm_head's rows fit d2t, so t2d is of another export" if right else "one of the two is of another export"
        )
        fix = ("export both from the training state; engines use d2t alone",)
        severity: Severity = "minor" if right or not poor else "fatal"
        return _finding(text, vocabulary, fix, severity)
    if not offset.increasing:
        fix = ("compare d2t with the one in the training state",)
        return _finding("d2t does not lead to increasing target ids, as trainers write it", vocabulary, fix, "minor")
    return None


def _leads(reading: MapReading, size: int) -> bool:
    """Whether every draft id leads to a target token of its own."""
    return reading.in_range == size and reading.distinct == size


def _finding(
    summary: str,
    vocabulary: VocabularyFacts,
    remedy_lines: tuple[str, ...] = ("export d2t again from the training state",),
    severity: Severity = "fatal",
) -> CheckResult:
    return MAP.finding(
        summary,
        severity=severity,
        cause="loading",
        evidence=_evidence(vocabulary),
        remedy=remedy_lines,
        refuted_by="acceptance under this reading of d2t being as good as under any other",
    )


def _evidence(vocabulary: VocabularyFacts) -> tuple[Evidence, ...]:
    size = vocabulary.draft_vocab_size
    lines = [
        *k03_head.evidence(vocabulary.head),
        count("draft tokens, of target tokens", size, vocabulary.vocab_size),
    ]
    if vocabulary.t2d_marked is not None:
        lines.append(count("tokens that t2d marks", vocabulary.t2d_marked, vocabulary.vocab_size))
    for item in vocabulary.readings:
        lines.append(count(f"distinct target tokens, d2t read as {item.reading}", item.distinct, size))
        if item.head_cosine is not None:
            name = f"mean cosine of lm_head's rows with the target's, d2t read as {item.reading}"
            lines.append(Evidence(name=name, value=item.head_cosine, n=size))
    return tuple(lines)


def _coverage(measured: Measured, *, known: bool = False) -> CheckResult:
    """`known`: the map is already found to be wrong, so that what it covers says nothing."""
    covered = coverage(measured.train.rows)
    outside, n = covered.out_of_vocabulary, covered.response_tokens
    size = measured.result.checkpoint.draft_vocab_size
    evidence = (
        share("the target's choices outside the draft vocabulary", outside, n),
        count("draft tokens, of target tokens", size, measured.result.checkpoint.vocab_size),
    )
    if not n:
        return COVERAGE.cannot_tell("there are no response tokens", needs="rows with a loss mask")
    if known or outside <= OUTSIDE * n:
        return COVERAGE.passed(f"{100 * outside / n:.1f} % of the target's choices cannot be proposed", evidence)
    found = COVERAGE.finding(
        f"{100 * outside / n:.0f} % of the target's choices cannot be proposed: they are not among the "
        f"{size} draft tokens, which are too few for this text or were chosen on other text",
        severity="serious" if outside > FAR_OUTSIDE * n else "minor",
        cause="data",
        evidence=evidence,
        remedy=(
            "make the vocabulary map from the text that is served (a cached map of another data set is picked up "
            "silently by SpecForge and speculators), or a larger one if it was, and train again",
        ),
        refuted_by="a small share on rows like those that are served",
    )
    return replace(found, effect=outside / n)  # what it costs at step 1, at most
