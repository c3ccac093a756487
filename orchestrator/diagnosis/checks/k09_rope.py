"""K9: rotary parameters: whether another base or scaling is the better one, and accuracy holds as positions grow."""

from collections.abc import Sequence

import numpy as np

from orchestrator.compare.acceptance import counted
from orchestrator.compare.chains import Chains
from orchestrator.compare.stats import MIN_ROWS, Estimate, paired_difference
from orchestrator.diagnosis.checks.factors import factor_results, ranking_of, tried_evidence
from orchestrator.diagnosis.checks.rope_growth import where_rows_are_longest
from orchestrator.diagnosis.effects import effects
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, figure, share
from orchestrator.diagnosis.measured import Measured

ROPE = Subject(check="K9", title="rotary parameters")
TARGETS = Subject(check="K9", title="rotary parameters against the target's")
POSITIONS = Subject(check="K9", title="accuracy by position")

EDGES = (0, 256, 1024, 2048, 4096, 8192, 16384, 32768, 1 << 62)
"""Buckets of draft positions, half open; drafters are usually trained on 2048 or 4096 tokens."""
LEAST_POSITIONS = 200
"""Positions a bucket must hold to be judged."""
FALL = 0.15
"""Points of step-1 accuracy by which a later bucket must surely lie below the first: rows alone vary by 11 to 16."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """Rope readings, whether they are the target's, then accuracy by position."""
    read = tuple(_by_distance(item, measured) for item in factor_results(ROPE, measured, ("rope", "position_start")))
    known = any(item.outcome == "finding" for item in read)
    return (*read, *(() if known else _unlike_target(measured)), _by_position(measured))


def _by_distance(found: CheckResult, measured: Measured) -> CheckResult:
    """A finding on the rotary parameters that are served, by what is lost where the rows are longest."""
    ranking, result = ranking_of(measured), measured.result
    if found.outcome != "finding" or ranking is None:
        return found
    served = effects(ranking.best, result.declared.changes, ranking.ranked, result.checkpoint, ranking.confidence)
    turned = next((one for one in served if one.keys == ("rope",) and one.proven), None)
    return (
        found if turned is None else where_rows_are_longest(found, measured, ranking.best, turned, ranking.confidence)
    )


def _unlike_target(measured: Measured) -> tuple[CheckResult, ...]:
    """A note where the drafter turns otherwise than its target: right if it was trained so, else a slip of export."""
    result = measured.result
    own = next((flag.value for flag in result.checkpoint.graph if flag.name == "rope"), "the checkpoint's own")
    skip = next((item.reason for item in result.skipped_readings if item.name == "rope=target's"), "")
    twin = skip.removeprefix("it is `").removesuffix("`") if skip.startswith("it is `") else None
    name = f"rope={twin}" if twin else "rope=target's"
    tried = [facts for facts in result.readings if facts.changes == (name,)]
    lines = tuple(line for facts in tried for line in tried_evidence(facts))
    if (twin is None and not tried) or any(line.high is not None and line.high < 0 for line in lines):
        return ()  # the same, or the target's are surely worse: it was trained with its own
    evidence = (
        Evidence(name="the drafter's", value=own),
        Evidence(name="the target's", value=twin or "see the target's config.json"),
        *lines,
    )
    return (
        TARGETS.finding(
            f"the drafter's rotary parameters ({own}) are not the target's{f' ({twin})' if twin else ''}: as it should "
            "be if it was trained so; these rows do not tell the two apart",
            severity="note",
            cause="wiring",
            evidence=evidence,
            remedy=(
                "compare rope_theta and rope_scaling with the training's config; a wrong one costs more the longer "
                "the context",
            ),
            refuted_by="a training config with these very values",
        ),
    )


def _by_position(measured: Measured) -> CheckResult:
    ranking = ranking_of(measured)
    chains = () if ranking is None else measured.train.chains(ranking.best.facts.name)
    if not chains:
        return POSITIONS.cannot_tell("there are no hits to sort by position", needs="the run's hits")
    table = [_sums(item) for item in chains]  # a row each: (hits, positions) by bucket
    hits, n = ([sum(row[side][at] for row in table) for at in range(len(EDGES) - 1)] for side in (0, 1))
    filled = [at for at, positions in enumerate(n) if positions >= LEAST_POSITIONS]
    evidence = tuple(
        share(f"step-1 accuracy at positions {_name(at)}", hits[at], n[at]) for at in range(len(n)) if n[at]
    )
    if len(filled) < 2:
        longest = max(item.row.tokens for item in chains)
        return POSITIONS.cannot_tell(
            f"the rows are too short to tell: the longest has {longest} tokens",
            needs="rows of several thousand tokens, where serving will see such",
            evidence=evidence,
        )
    falls = [(at, _fall(table, filled[0], at)) for at in filled[1:]]
    sure = [(at, fall) for at, fall in falls if fall.low is not None and fall.low > FALL]
    if sure:
        return _falling(sure[0][0], sure[0][1], evidence)
    return POSITIONS.passed("accuracy holds as positions grow", evidence)


def _falling(at: int, fall: Estimate, evidence: tuple[Evidence, ...]) -> CheckResult:
    return POSITIONS.finding(
        f"accuracy falls by {100 * (fall.value or 0.0):.0f} points from position {EDGES[at]} on",
        severity="serious",
        cause="generalization",
        evidence=(*evidence, figure("step-1 accuracy, first positions minus these, same rows", fall, "share")),
        remedy=(
            "train on rows as long as those that are served, or give the drafter the rope scaling it was trained with",
            "until then: SGLang's `--speculative-draft-window-size` keeps the drafter to recent positions",
        ),
        refuted_by="rows whose later responses are as easy for the target, without the fall",
    )


def _sums(chains: Chains) -> tuple[list[int], list[int]]:
    """Step-1 (hits, positions) of a row by bucket."""
    judged = counted(chains, "serving")[:, 0]
    buckets = np.digitize(chains.positions, EDGES[1:-1])
    size = len(EDGES) - 1
    hits = np.bincount(buckets[judged & chains.hits[:, 0]], minlength=size)
    positions = np.bincount(buckets[judged], minlength=size)
    return [int(value) for value in hits], [int(value) for value in positions]


def _fall(table: Sequence[tuple[list[int], list[int]]], first: int, later: int) -> Estimate:
    """Accuracy in one bucket minus that in a later one over the rows that have both."""
    both = [row for row in table if row[1][first] and row[1][later]]
    if len(both) < MIN_ROWS:
        return Estimate(value=None, rows=len(both))
    return paired_difference(
        ([row[0][first] for row in both], [row[1][first] for row in both]),
        ([row[0][later] for row in both], [row[1][later] for row in both]),
    )


def _name(at: int) -> str:
    return f"{EDGES[at]}..{EDGES[at + 1] - 1}" if EDGES[at + 1] < EDGES[-1] else f"{EDGES[at]} and beyond"
