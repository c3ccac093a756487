"""K1: is every tensor there, used, and trained? Missing, unused, duplicate and random-looking tensors."""

from dataclasses import replace

from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import LEAST_FIT
from remote_payload.schema import CheckpointFacts, TensorProblem, TensorStatistics

INVENTORY = Subject(check="K1", title="tensor inventory")
CONTENTS = Subject(check="K1", title="tensor contents")

COMPUTING = ("norm", "fc", "proj", "lm_head")
"""Parts of the name of a tensor that would change the computation if it were used."""

NORM, EMBEDDING, HEAD = "norm.weight", "embed_tokens.weight", "lm_head.weight"

RANDOM_EXCESS = 1.1
"""Spectral excess below which a matrix looks like independent random numbers (theirs is about 1). Seen: 1.65 to 3.3 in
the matrices of two trained drafters."""
RANDOM_SPREAD = 1.4
"""Spread of row norms that goes with it: 1 for normal, 0.63 for uniform numbers; 2.2 to 4 in trained matrices."""
DUPLICATES_PRUNED = 0.02
"""Share of equal rows in the head of a pruned vocabulary that a frequency-ranked map does not explain."""
DUPLICATES_FULL = 0.2
"""The same for a full vocabulary, where a target's reserved tokens may well share one row."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """Inventory and contents, a finding for each fault."""
    checkpoint = measured.result.checkpoint
    return (*_inventory(checkpoint), *_contents(checkpoint, works=_works(measured)))


def _works(measured: Measured) -> bool:
    """Whether some reading predicts the target at all: weights that are random throughout never do."""
    readings = measured.result.readings
    return any(item.positions and item.first_step_hits >= LEAST_FIT * item.positions for item in readings)


def _inventory(checkpoint: CheckpointFacts) -> tuple[CheckResult, ...]:
    head = next((item for item in checkpoint.shared if item.name == "lm_head"), None)
    missing = [_missing_head(checkpoint)] if head is not None and not head.stored and head.served == "random" else []
    norm = [_missing_norm("ones")] if any(_is_norm(item.name, item.problem) for item in checkpoint.problems) else []
    if any(item.name == NORM and item.source == "target" for item in checkpoint.tensors):
        norm = [_missing_norm("the target's")]  # by earlier versions of this test
    others = [item for item in checkpoint.problems if not _is_norm(item.name, item.problem)]
    found = (*missing, *norm, *(_problem(item) for item in others))
    if found:
        return found
    if not checkpoint.tensors:
        return (INVENTORY.cannot_tell("the result lists no tensors", needs="a run of this version"),)
    evidence = (
        count("tensors used", len(checkpoint.tensors)),
        count("captured states that fc joins", checkpoint.slots),
    )
    return (INVENTORY.passed("every tensor that is expected is there, well shaped, and none is unused", evidence),)


def _missing_head(checkpoint: CheckpointFacts) -> CheckResult:
    rows = "`lm_head.weight = target_head[arange(len(d2t)) + d2t]`"
    pruned = checkpoint.draft_vocab_size < checkpoint.vocab_size
    return INVENTORY.finding(
        "the drafter has no lm_head, and SGLang leaves it at random values: accept length 1.00",
        severity="fatal",
        cause="loading",
        evidence=(count("lm_head.weight stored", 0, 1),),
        remedy=(
            f"store the target's rows as the drafter's head: {rows}"
            if pruned
            else 'delete "draft_vocab_size" from config.json: SGLang then lends it the target\'s lm_head',
            "or export again with the head that it was trained with, if it had one",
        ),
        refuted_by="an SGLang that lends the target's head to this class of drafters",
    )


def _is_norm(name: str, problem: str) -> bool:
    return (name, problem) == (NORM, "missing")


def _missing_norm(used: str) -> CheckResult:
    told = "the figures here are made so" if used == "ones" else "the figures here are made with the target's instead"
    return INVENTORY.finding(
        f"the drafter has no final norm (`{NORM}`), and engines leave it at ones; {told}",
        severity="serious",
        cause="loading",
        evidence=(count(f"{NORM} stored", 0, 1), Evidence(name="final norm that the test computed with", value=used)),
        remedy=(
            f"export the drafter again with its `{NORM}`; if it was trained with the target's, store that one under "
            "this name",
        ),
        refuted_by="a training state whose final norm is ones",
    )


def _problem(item: TensorProblem) -> CheckResult:
    evidence = (Evidence(name=f"{item.name}, expected {item.expected}", value=item.found),)
    if item.problem != "unexpected":
        return INVENTORY.finding(
            f"tensor `{item.name}` is {item.problem.replace('_', ' ')}",
            severity="fatal",
            cause="loading",
            evidence=evidence,
            remedy=(
                "export the drafter again"
                + ("; SGLang leaves a missing tensor at random values" if item.problem == "missing" else ""),
            ),
            refuted_by="the tensor under another name in the drafter's files",
        )
    computing = any(part in item.name for part in COMPUTING)
    return INVENTORY.finding(
        f"tensor `{item.name}` is not used",
        severity="serious" if computing else "minor",
        cause="loading",
        evidence=evidence,
        remedy=(
            ("find the config flag that uses it (`norm_before_fc` for input_norm, `fc_norm` for fc_norm.N) or the name "
             "that the loader expects: engines skip it silently",)
            if computing
            else ("nothing, if it is known to be left over; engines skip it silently",)
        ),
        refuted_by="a trainer that stores it and computes without it",
    )  # fmt: skip


def _contents(checkpoint: CheckpointFacts, *, works: bool) -> tuple[CheckResult, ...]:
    statistics = checkpoint.statistics
    if not statistics:
        return (CONTENTS.cannot_tell("the result holds no statistics of the tensors", needs="a run of this version"),)
    matrices = [item for item in statistics if item.spectral_excess is not None]
    alike = sum(map(_looks_random, matrices)) > len(matrices) / 2
    found = [finding for item in statistics for finding in _oddities(item, checkpoint, alone=not (alike and works))]
    if found:
        return tuple(found)
    if alike and works:
        return (_barely_trained(matrices),)
    excesses = [item.spectral_excess for item in statistics if item.spectral_excess is not None]
    untrained = sum(item.constant == 1.0 for item in statistics)
    idle = sum(item.constant == 0.0 for item in statistics)
    evidence = (
        count("tensors looked at", len(statistics)),
        Evidence(name="least spectral excess of a matrix (1 = random)", value=min(excesses, default=None)),
        count("norms that are 1 throughout (bfloat16 training may never move them)", untrained),
        *((count("biases that are 0 throughout, which add nothing", idle),) if idle else ()),
    )
    return (CONTENTS.passed("no tensor looks random, constant or duplicated", evidence),)


def _barely_trained(matrices: list[TensorStatistics]) -> CheckResult:
    """Seen: a drafter of hidden size 64, trained for a minute, with only its norms far from their first values."""
    return CONTENTS.cannot_tell(
        "most matrices look like random numbers, yet the drafter predicts the target: barely trained, or trained from "
        "a start whose numbers are still there; one that was never loaded would not stand out among them",
        needs="the same tensors in the training state",
        evidence=(count("matrices that look random", sum(map(_looks_random, matrices)), len(matrices)),),
    )


def _oddities(item: TensorStatistics, checkpoint: CheckpointFacts, *, alone: bool) -> list[CheckResult]:
    matrix = item.spectral_excess is not None or item.row_norm_spread is not None
    empty = item.constant == 0.0 and not item.name.endswith(".bias")  # a bias begins at 0, and adds nothing there
    idle = _is_never_served(item.name, checkpoint)
    if item.name == EMBEDDING and idle:
        return []  # K4 compares it with the target's, which is served
    if item.constant is not None and (matrix or empty):
        found = [_constant(item)]
    else:
        found = [_random(item)] if alone and _looks_random(item) and item.name != EMBEDDING else []
        found += [_duplicates(item, checkpoint)] if item.name == HEAD and _duplicated(item, checkpoint) else []
    return [_unused(one) if idle else one for one in found]


def _is_never_served(name: str, checkpoint: CheckpointFacts) -> bool:
    """Whether SGLang puts the target's tensor in place of the drafter's own, whatever that holds."""
    return any(name == f"{item.name}.weight" and item.served == "target" for item in checkpoint.shared)


def _unused(found: CheckResult) -> CheckResult:
    return replace(
        found,
        summary=f"{found.summary}; SGLang never uses it, it takes the target's",
        severity="minor",
        remedy=("delete it from the drafter's files: other engines may use it", *found.remedy),
    )


def _looks_random(item: TensorStatistics) -> bool:
    excess, spread = item.spectral_excess, item.row_norm_spread
    return excess is not None and excess < RANDOM_EXCESS and (spread is None or spread < RANDOM_SPREAD)


def _duplicated(item: TensorStatistics, checkpoint: CheckpointFacts) -> bool:
    pruned = checkpoint.draft_vocab_size < checkpoint.vocab_size
    limit = DUPLICATES_PRUNED if pruned else DUPLICATES_FULL
    return item.duplicate_rows >= 3 and item.duplicate_rows > limit * checkpoint.draft_vocab_size


def _constant(item: TensorStatistics) -> CheckResult:
    return CONTENTS.finding(
        f"tensor `{item.name}` has one value throughout",
        severity="fatal",
        cause="loading",
        evidence=(Evidence(name=f"value of all entries of {item.name}", value=item.constant),),
        remedy=("export the drafter again from its training state",),
        refuted_by="a training state that holds the same",
    )


def _random(item: TensorStatistics) -> CheckResult:
    return CONTENTS.finding(
        f"tensor `{item.name}` looks like random numbers, as if it was never trained or loaded",
        severity="fatal" if item.name in ("lm_head.weight", "fc.weight") else "serious",
        cause="loading",
        evidence=(
            Evidence(name=f"spectral excess of {item.name} (1 = random)", value=item.spectral_excess),
            Evidence(name="spread of its row norms (1 = normal numbers)", value=item.row_norm_spread),
            Evidence(name="standard deviation", value=item.std),
        ),
        remedy=("export the drafter again and compare this tensor with the one in the training state",),
        refuted_by="the training state's tensor being the same and far from its own first value",
    )


def _duplicates(item: TensorStatistics, checkpoint: CheckpointFacts) -> CheckResult:
    return CONTENTS.finding(
        "many rows of lm_head are bit-identical: they were picked with the offsets of d2t taken as row numbers",
        severity="fatal",
        cause="loading",
        evidence=(
            count("rows of lm_head that equal an earlier one", item.duplicate_rows, checkpoint.draft_vocab_size),
        ),
        remedy=(
            "export again and pick the rows `arange(len(d2t)) + d2t` of the full head (TorchSpec's pruning at export "
            "picked the rows `d2t`)",
        ),
        refuted_by="a full head in the training state whose rows at those target ids are identical as well",
    )
