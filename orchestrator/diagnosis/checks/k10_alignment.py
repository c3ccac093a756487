"""K10: whether tokens, states and loss mask lie on each other: token offset, the mask's edges, accuracy there."""

from collections.abc import Sequence

import numpy as np

from orchestrator.compare.chains import Chains, masked, segments, unpack_row
from orchestrator.compare.figures import first_step_difference, same_rows
from orchestrator.compare.stats import MIN_ROWS
from orchestrator.diagnosis.checks.factors import ranking_of
from orchestrator.diagnosis.checks.k07_slots import is_shifted
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import LEAST_FIT, SEPARATION, SERVED_OFFSET
from orchestrator.diagnosis.wiring import Ranking
from remote_payload.schema import MaskEdge, SlotFacts, StandaloneResult

OFFSET = Subject(check="K10", title="token offset")
MASK = Subject(check="K10", title="loss mask")

UNIFORM = 0.95
"""Share of responses with the same token at one place: a template's, not an answer's."""
VARIED = 0.8
LEAST_RESPONSES = 8


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The pairing of states and tokens, then the mask."""
    return (_offset(measured), _mask(measured))


def _offset(measured: Measured) -> CheckResult:
    ranking = ranking_of(measured)
    tried = {facts.token_offset for facts in measured.result.readings}
    if ranking is None or len(tried) < 2:
        return OFFSET.cannot_tell("only one token offset was tried", needs="a run with `token_offsets` -1 .. 2")
    best = ranking.best
    if shifted_slot := next((slot for slot in measured.result.rows.slots if is_shifted(slot)), None):
        return _states_beside(shifted_slot)
    evidence = tuple(_by_offset(measured.result, offset) for offset in sorted(tried))
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
    shifted = _states_shifted(measured.result)
    return OFFSET.finding(
        f"the drafter reads best with token t{best.facts.token_offset:+d} beside state t; every server pairs t with t+1"
        + (": the rows' states and tokens are shifted against each other" if shifted else ""),
        severity="serious",
        cause="data" if shifted else "wiring",
        evidence=evidence,
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
        evidence=tuple(evidence),
        remedy=("capture the rows again, or shift the states: the state of token t must stand beside token t",),
        refuted_by="check `capture`: a fresh forward that agrees with the rows",
    )


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


def _states_shifted(result: StandaloneResult) -> bool:
    teacher = result.rows.teacher
    return teacher is not None and bool(teacher.shifted_agrees) and max(teacher.shifted_agrees) > teacher.agrees


def _mask(measured: Measured) -> CheckResult:
    """The prompt's stated length against the mask, then the tokens around its edges."""
    evidence = (*_zones(measured.result), *_edges(measured.result), *_shifts(measured))
    shift, rows = _prompt_shift(measured)
    if shift is not None and shift != 0:
        return MASK.finding(
            f"the loss mask begins {abs(shift)} token{'s' if abs(shift) > 1 else ''} "
            f"{'after' if shift > 0 else 'before'} the prompt's stated end, in every row",
            severity="minor",
            cause="data",
            evidence=(count("mask's first token minus n_prompt_tokens, every row", shift, rows, "tokens"), *evidence),
            remedy=(
                "mark exactly the response's tokens; a shifted mask trains on other positions than serving drafts at",
            ),
            refuted_by="a template whose last tokens are meant to be trained on",
        )
    edges = _edge_shares(_lint_edges(measured.result))
    if not edges:
        few = measured.result.rows.lint is not None
        text = "too few responses to see what is common at the mask's edges" if few else "the mask was not looked at"
        needs = f"{LEAST_RESPONSES} responses at least" if few else "a run of this version"
        return MASK.cannot_tell(text, needs=needs, evidence=evidence)
    late = edges.get("before", 1.0) < VARIED and edges.get("two_before", 0.0) >= UNIFORM
    if late:
        return MASK.finding(
            "the loss mask seems to begin one token late: the token before it varies like an answer's first",
            severity="minor",
            cause="data",
            evidence=evidence,
            remedy=("look at one row's tokens around its mask; mark the response's first token as well",),
            refuted_by="a template whose last token differs from row to row",
        )
    early = all(edges.get(place, 0.0) >= UNIFORM for place in ("two_before", "before", "first"))
    if early and edges.get("second", 1.0) < VARIED and edges.get("after", 1.0) < VARIED:
        return MASK.finding(
            "the loss mask seems to begin and end one token early: every response begins with one and the same token, "
            "and goes on behind the mask's end",
            severity="minor",
            cause="data",
            evidence=evidence,
            remedy=("look at one row's tokens around its mask; mark the response's last token, not its template's",),
            refuted_by="answers that all begin so (`<think>`) and rows that go on with other text at once",
        )
    return MASK.passed("nothing speaks against where the mask begins and ends", evidence)


def _prompt_shift(measured: Measured) -> tuple[int | None, int]:
    """Mask's beginning minus the prompt's stated end, where it is the same in all rows; and the rows."""
    shifts = []
    for facts in measured.train.rows:
        runs = segments(unpack_row(facts).loss_mask)
        if runs:
            shifts.append(runs[0][0] - facts.prompt_tokens)
    constant = len(shifts) >= MIN_ROWS and len(set(shifts)) == 1
    return (shifts[0] if constant else None), len(shifts)


def _lint_edges(result: StandaloneResult) -> Sequence[MaskEdge]:
    return result.rows.lint.edges if result.rows.lint is not None else ()


def _edge_shares(edges: Sequence[MaskEdge]) -> dict[str, float]:
    return {edge.place: edge.most_common / edge.responses for edge in edges if edge.responses >= LEAST_RESPONSES}


def _edges(result: StandaloneResult) -> list[Evidence]:
    return [
        share(f"responses with token {edge.token} at `{edge.place}`", edge.most_common, edge.responses)
        for edge in _lint_edges(result)
        if edge.responses
    ]


def _zones(result: StandaloneResult) -> list[Evidence]:
    return [
        share(f"step-1 accuracy, {zone.place.replace('_', ' ')}", zone.hits, zone.positions) for zone in result.zones
    ]


def _shifts(measured: Measured) -> list[Evidence]:
    """Step-1 accuracy of the best reading under the mask shifted by -1, 0, +1, as far as positions were judged."""
    ranking = ranking_of(measured)
    chains = () if ranking is None else measured.train.chains(ranking.best.facts.name)
    if not chains:
        return []
    lines = []
    for shift in (-1, 0, 1):
        hits, n = (sum(pair) for pair in zip(*(_shifted(item, shift) for item in chains), strict=True))
        lines.append(share(f"step-1 accuracy, mask shifted by {shift:+d}", hits, n))
    return lines


def _shifted(chains: Chains, shift: int) -> tuple[int, int]:
    """(hits, positions) at step 1 where the token that is proposed would be a response's under the shifted mask."""
    judged = masked(chains.row.loss_mask, chains.positions + 1 - shift) & (chains.positions + 1 < chains.row.tokens)
    return int(np.count_nonzero(chains.hits[:, 0] & judged)), int(np.count_nonzero(judged))
