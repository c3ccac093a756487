"""Teacher consistency: whether the stored final state answers the row's next token, and is what it claims to be.

On responses that the target generated greedily its choice is the next token in 99 % of positions. Sampled responses
agree less (38 to 70 % row by row at temperature 0.7 on a small target, more on large ones), answers by other models
less still. So low agreement is a fault only where rows are known to be greedy, where another offset agrees better, or
where it is lower than any model's text would be.
"""

import re
from dataclasses import dataclass
from statistics import median

import numpy as np

from orchestrator.compare.chains import masked, unpack_row
from orchestrator.compare.gap import GREEDY_SHARE
from orchestrator.diagnosis.checks.k07_slots import early_answers, embedding_beside_its_token
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, led_by, share
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import RowFacts, TeacherFacts

TEACHER = Subject(check="teacher", title="teacher consistency")
NORM = Subject(check="teacher", title="final norm")

BROKEN_GREEDY = 0.9
"""Agreement that rows which are named greedy must have; bfloat16 and batching cost a percent or two."""
NO_TEXT = 0.25
"""Median agreement of a row below which no text explains it: one token in four is guessed by any language model."""
GREEDY_MARK = re.compile(r"(?<![\w./-])(?:greedy|temperature\s*[=:]\s*0(?:\.0*)?)(?![\w./-])", re.IGNORECASE)
"""How a row's source says, behind its last `|`, that the response is the target's greedy choice."""
NEGATION = re.compile(r"\b(?:not|no|non|never)\s+$", re.IGNORECASE)
LEAST_POSITIONS = 100
NORM_RMS = (0.85, 1.15)
"""RMS of a final state over the norm's weight after the norm: 1 but for epsilon and rounding."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """Agreement with the next token, then the norm."""
    teacher = measured.result.rows.teacher
    if teacher is None or not teacher.positions:
        nothing = TEACHER.cannot_tell("the final state was not held against the tokens", needs="a run of this version")
        return (nothing,)
    return (_agreement(measured, teacher), *_norm(measured, teacher))


@dataclass(frozen=True, kw_only=True)
class _Agreement:
    """How often the teacher's choice is the next token, counted over all rows and over those that are named greedy."""

    measured: Measured
    teacher: TeacherFacts
    greedy_hits: int
    greedy_n: int
    looks: int
    """Rows that look greedy."""
    evidence: tuple[Evidence, ...]


def _counted(measured: Measured, teacher: TeacherFacts) -> _Agreement:
    named = [_agreeing(row) for row in measured.train.rows if _named_greedy(row)]
    greedy_hits, greedy_n = (sum(pair[side] for pair in named) for side in (0, 1))
    rows = teacher.rows_agreeing
    looks = sum(value >= GREEDY_SHARE for value in rows)
    evidence = (
        share("response positions where the teacher's choice is the next token", teacher.agrees, teacher.positions),
        *(share(f"the same against offset {offset:+d}", hits, teacher.positions)
          for offset, hits in zip((0, 2), teacher.shifted_agrees, strict=False)),
        share("rows that look greedy (97 % or more)", looks, len(rows)),
        *((share("the same in rows that are named greedy", greedy_hits, greedy_n),) if greedy_n else ()),
    )  # fmt: skip
    return _Agreement(
        measured=measured, teacher=teacher, greedy_hits=greedy_hits, greedy_n=greedy_n, looks=looks, evidence=evidence
    )


def _agreement(measured: Measured, teacher: TeacherFacts) -> CheckResult:
    """What low agreement comes of, the surest reason first; else whether rows are greedy, or sampled."""
    counted = _counted(measured, teacher)
    for fault in (_another_offset, _greedy_and_yet_low, _lower_than_any_text, _an_earlier_layer):
        found = fault(counted)
        if found is not None:
            return found
    if counted.looks or counted.greedy_n:
        return TEACHER.passed("greedy rows agree with the teacher, as in a sound capture", counted.evidence)
    if teacher.rows_agreeing and median(teacher.rows_agreeing) >= 0.5:
        return TEACHER.passed("the teacher agrees with the rows as sampled responses do", counted.evidence)
    return TEACHER.cannot_tell(
        "no row looks greedy and agreement is low: sampled at a high temperature, written by another model, or a "
        "broken capture",
        needs="some rows that the target generated greedily, or the check `capture`",
        evidence=counted.evidence,
    )


def _another_offset(counted: _Agreement) -> CheckResult | None:
    teacher = counted.teacher
    shifted = max(teacher.shifted_agrees, default=0)
    is_clear = teacher.positions >= LEAST_POSITIONS and shifted > 2 * NO_TEXT * teacher.positions
    if not is_clear or shifted <= teacher.agrees:
        return None
    offset = (0, 2)[teacher.shifted_agrees.index(shifted)]
    right = embedding_beside_its_token(counted.measured.result)
    where = (
        "states and tokens are shifted"
        if right is None
        else f"they alone stand a token too {'early' if offset else 'late'}, for slot {right} is the embedding of "
        "its own token"
    )
    return _finding(
        f"the final states answer the token at offset {offset:+d}, not the next one: {where}",
        led_by(counted.evidence, f"offset {offset:+d}"),
        ("capture the rows again; the final state of token t must be the one that predicts token t+1",),
    )


def _greedy_and_yet_low(counted: _Agreement) -> CheckResult | None:
    hits, n = counted.greedy_hits, counted.greedy_n
    if n < LEAST_POSITIONS or hits >= BROKEN_GREEDY * n:
        return None
    return _finding(
        f"greedy responses agree with the teacher in {100 * hits / n:.0f} % of positions instead of "
        "99 %: the final state is of another layer, another model, or a broken capture",
        led_by(counted.evidence, "named greedy"),
        (
            "compare some rows with a fresh forward of the target (check `capture`) and capture again",
            "vLLM counts layers by boundary: the last state is id L, not L-1",
        ),
    )


def _lower_than_any_text(counted: _Agreement) -> CheckResult | None:
    rows = counted.teacher.rows_agreeing
    if counted.teacher.positions < LEAST_POSITIONS or not rows or median(rows) >= NO_TEXT or counted.looks:
        return None
    return _finding(
        f"the teacher's choice is the next token in {100 * median(rows):.0f} % of a typical row: no model's text "
        "agrees so little with its final state",
        counted.evidence,
        ("check that `target` is the model whose states were captured, and compare with a fresh forward",),
    )


def _an_earlier_layer(counted: _Agreement) -> CheckResult | None:
    result = counted.measured.result
    early = early_answers(result)
    if not early or counted.looks:
        return None
    slot, label = early[0]
    return _finding(
        f"the stored final state answers no better than slot {slot} (state {label} of "
        f"{result.declared.target_layers}), and no row looks greedy: it is not the last layer's",
        counted.evidence,
        ("capture the last layer's output again; vLLM counts layers by boundary: the last state is id L, not L-1",),
    )


def _finding(summary: str, evidence: tuple[Evidence, ...], remedy: tuple[str, ...]) -> CheckResult:
    return TEACHER.finding(
        summary,
        severity="serious",
        cause="data",
        evidence=evidence,
        remedy=remedy,
        refuted_by="captured rows that agree with a fresh forward of the target",
    )


def _named_greedy(row: RowFacts) -> bool:
    """Whether the source's mark says so: `book.txt|greedy`, or the mark alone. A file's name is no mark."""
    name, _, mark = (row.source or "").rpartition("|")
    found = GREEDY_MARK.search(mark) if name else GREEDY_MARK.fullmatch(mark.strip())
    return found is not None and NEGATION.search(mark[: found.start()]) is None


def _agreeing(facts: RowFacts) -> tuple[int, int]:
    """(positions where the teacher's choice is the next token, positions) within a row's responses."""
    row = unpack_row(facts)
    inside = row.loss_mask & masked(row.loss_mask, np.arange(row.tokens) + 1)
    return int(np.count_nonzero(row.greedy & inside)), int(np.count_nonzero(inside))


def _norm(measured: Measured, teacher: TeacherFacts) -> tuple[CheckResult, ...]:
    kind = measured.result.rows.final_state
    if kind == "answers":
        return ()
    if teacher.norm_rms is None:
        return (NORM.cannot_tell("the target's final norm is not known", needs="`norm.weight` in the target's folder"),)
    evidence = (Evidence(name="median RMS of final state / norm weight (1 = after the norm)", value=teacher.norm_rms),)
    normed = NORM_RMS[0] <= teacher.norm_rms <= NORM_RMS[1]
    if normed == (kind == "post_norm"):
        words = "after" if normed else "before"
        return (NORM.passed(f"the stored final state is from {words} the target's final norm", evidence),)
    claimed = kind.replace("_", "-")
    return (
        NORM.finding(
            f"the final state was read as {claimed}, but its RMS over the norm's weight is {teacher.norm_rms:.2f}",
            severity="serious",
            cause="data",
            evidence=evidence,
            remedy=(
                "check on which side of the final norm the state was captured: a teacher on the wrong side costs 6 to "
                "33 % of acceptance in serving while training looks fine",
            ),
            refuted_by="check `capture`: final states that agree with a fresh forward",
        ),
    )
