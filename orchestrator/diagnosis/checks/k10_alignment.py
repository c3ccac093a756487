"""K10: whether tokens and states lie on each other, and the loss mask (`k10_mask`) on both."""

from orchestrator.compare.figures import first_step_difference, same_rows
from orchestrator.diagnosis.checks import k10_mask
from orchestrator.diagnosis.checks.factors import SURE_ERRORS, ranking_of, tried_evidence
from orchestrator.diagnosis.checks.k07_slots import embedding_beside_its_token, is_shifted
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, led_by, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import (
    CHANGE_SEPARATION,
    GOOD_FIT,
    LEAST_FIT,
    SEPARATION,
    SERVED_OFFSET,
    MeasuredReading,
)
from orchestrator.diagnosis.wiring import Ranking
from remote_payload.schema import SlotFacts, StandaloneResult

OFFSET = Subject(check="K10", title="token offset")
ROLLED = {"states=later": "late", "states=earlier": "early"}
"""Controls that read the state one token on or back, and how the states stand where one is ahead."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The pairing of states and tokens, then the mask."""
    return (_offset(measured), *k10_mask.check(measured))


def _offset(measured: Measured) -> CheckResult:
    ranking = ranking_of(measured)
    tried = {facts.token_offset for facts in measured.result.readings}
    if ranking is None or len(tried) < 2:
        return OFFSET.cannot_tell("only one token offset was tried", needs="a run with `token_offsets` -1 .. 2")
    best = ranking.best
    if beside := shifted_states(measured.result):
        return beside[0]
    if rolled := _states_rolled(measured.result):
        return rolled
    evidence = tuple(_by_offset(measured.result, offset) for offset in sorted(tried))
    shifted, right = _final_states_shifted(measured.result), embedding_beside_its_token(measured.result)
    if shifted and right is not None:
        return OFFSET.cannot_tell(
            f"the captured states stand beside their own tokens (slot {right} is the embedding of its own), the final "
            "states do not answer the next one: no offset can be judged by them",
            needs="rows whose final states answer the next token: see the check of the teacher",
            evidence=evidence,
        )
    if best.facts.token_offset == SERVED_OFFSET:
        return OFFSET.passed(
            "the state of token t goes with the embedding of token t+1, as every server pairs them", evidence
        )
    if (best.figures.first_step.value or 0.0) < LEAST_FIT or not _surely_ahead(ranking):
        return OFFSET.cannot_tell(
            f"the best reading has offset {best.facts.token_offset:+d}, but is not surely ahead",
            needs="more rows",
            evidence=evidence,
        )
    return _reads_best_elsewhere(best, evidence, shifted=bool(shifted))


def _reads_best_elsewhere(best: MeasuredReading, evidence: tuple[Evidence, ...], *, shifted: bool) -> CheckResult:
    return OFFSET.finding(
        f"the drafter reads best with token t{best.facts.token_offset:+d} beside state t; every server pairs t with t+1"
        + (": the rows' states and tokens are shifted against each other" if shifted else ""),
        severity="serious",
        cause="data" if shifted else "wiring",
        evidence=led_by(evidence, f"offset {best.facts.token_offset:+d}", f"offset {SERVED_OFFSET:+d}"),
        remedy=(
            ("capture the rows again: the final states answer another token than the next one",)
            if shifted
            else (
                "look at how training paired tokens and states: no config mends it, the drafter must be trained again",
                "if the rows were captured by other code than the training's, capture them again first",
            )
        ),
        refuted_by="rows that are known to be aligned, on which offset +1 reads best",
    )


def shifted_states(result: StandaloneResult) -> tuple[CheckResult, ...]:
    """A finding where a slot is the embedding output of the token beside; told from the rows alone."""
    slot = next((slot for slot in result.rows.slots if is_shifted(slot)), None)
    return () if slot is None else (_states_beside(slot),)


def _states_beside(slot: SlotFacts) -> CheckResult:
    shares = slot.embedding_share_beside
    place, evidence = shares.index(max(shares)), []
    for where, value in zip(("before", "after"), shares, strict=False):
        name = f"slot {slot.slot}: states along the embedding of the token {where}"
        evidence.append(Evidence(name=name, value=value, unit="share", n=slot.tokens))
    return OFFSET.finding(
        f"the captured states stand one token too {('late', 'early')[place]}: slot {slot.slot} is the embedding of the "
        f"token {('before', 'after')[place]}",
        severity="serious",
        cause="data",
        evidence=led_by(evidence, ("token before", "token after")[place]),
        remedy=("capture the rows again, or shift the states: the state of token t must stand beside token t",),
        refuted_by="check `capture`: a fresh forward that agrees with the rows",
    )


def _states_rolled(result: StandaloneResult) -> CheckResult | None:
    """Whether the drafter reads better with the states of the token beside: they were stored at the wrong tokens.

    Only where the final states stand right: where these are shifted, sound states look shifted the other way.
    """
    if _final_states_shifted(result):
        return None
    right = embedding_beside_its_token(result)
    but = "" if right is None else f" (all but slot {right}, which is the embedding of its own token)"
    for facts in result.readings:
        change = next((item for item in facts.changes if item in ROLLED), None)
        paired, error = facts.paired_leading_hits, facts.paired_error
        if change is None or paired is None or error is None or facts.leading_hits is None or not facts.positions:
            continue
        ahead = (facts.leading_hits - paired) / facts.positions
        # A drafter that is broken otherwise may do better with any other input: only one that then reads well tells.
        reads_well = facts.first_step_hits >= GOOD_FIT * facts.positions
        if not reads_well or ahead - SURE_ERRORS * error <= CHANGE_SEPARATION:
            continue
        return OFFSET.finding(
            f"the captured states{but} stand one token too {ROLLED[change]} beside tokens and final states: the "
            f"drafter reads best with those of the token {'behind' if ROLLED[change] == 'late' else 'before'}",
            severity="serious",
            cause="data",
            evidence=(
                share("step-1 accuracy with the states of the token beside", facts.first_step_hits, facts.positions),
                share("the same as the rows have them", facts.paired_first_step_hits or 0, facts.positions),
                *tried_evidence(facts),
            ),
            remedy=("capture the rows again, or shift the states: the state of token t must stand beside token t",),
            refuted_by="check `capture`: a fresh forward that agrees with the rows",
        )
    return None


def _surely_ahead(ranking: Ranking) -> bool:
    """Whether the best reading is surely ahead of every one with the served offset."""
    rivals = [item for item in ranking.ranked if item.facts.token_offset == SERVED_OFFSET]
    if not rivals or not same_rows(ranking.best.figures, rivals[0].figures):
        return False
    ahead = first_step_difference(ranking.best.figures, rivals[0].figures, ranking.confidence)
    return ahead.low is not None and ahead.low > SEPARATION


def _by_offset(result: StandaloneResult, offset: int) -> Evidence:
    best = max(
        (facts for facts in result.readings if facts.token_offset == offset),
        key=lambda facts: facts.first_step_hits / max(1, facts.positions),
    )
    return share(
        f"step-1 accuracy, best reading at offset {offset:+d} ({best.stage})", best.first_step_hits, best.positions
    )


def _final_states_shifted(result: StandaloneResult) -> bool:
    """Whether the final states answer another token than the next one."""
    teacher = result.rows.teacher
    return teacher is not None and bool(teacher.shifted_agrees) and max(teacher.shifted_agrees) > teacher.agrees
