"""K10, the loss mask: whether it marks the responses at all, and where it begins and ends."""

import itertools
from collections.abc import Sequence
from statistics import median

import numpy as np

from orchestrator.compare.chains import Chains, masked, segments, unpack_row
from orchestrator.compare.stats import MIN_ROWS
from orchestrator.diagnosis.checks.factors import ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, led_by, share
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import MaskEdge, StandaloneResult

MASK = Subject(check="K10", title="loss mask")

MANY = 0.1
"""Share of rows beyond which an odd mask is more than one odd row."""
LEAST_ODD = 3
HOLE = 2
"""Tokens between two marked runs that are no turn of another speaker: a template alone takes more."""
UNIFORM = 0.95
"""Share of responses with the same token at one place: a template's, not an answer's."""
VARIED = 0.8
LEAST_RESPONSES = 8
INVERTED = 0.9
"""Share of rows whose mask marks the first token and leaves the end unmarked, from which on it marks the prompts."""
LEAST_TAIL = 8
"""Median of unmarked tokens at the rows' ends; fewer are a template's end, or a last token without a label."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """An inverted mask, masks that contradict each other, marks where no response can be, then the mask's edges."""
    inverted = _inverted(measured)
    odd = (inverted, _contradiction(measured), None if inverted else _at_the_start(measured), _holes(measured))
    found = tuple(item for item in odd if item is not None)
    return found if found else (_mask(measured),)


def _inverted(measured: Measured) -> CheckResult | None:
    """No response begins with a row's first token, and none is left to mark behind the last one."""
    masks = [unpack_row(facts).loss_mask for facts in measured.train.rows]
    tails = [len(mask) - int(np.flatnonzero(mask)[-1]) - 1 for mask in masks if mask.any() and mask[0]]
    odd = sum(tail > 0 for tail in tails)
    if len(masks) < MIN_ROWS or odd < INVERTED * len(masks) or median(tails) < LEAST_TAIL:
        return None
    return MASK.finding(
        "the loss mask looks inverted: it marks each row from its first token on and leaves the row's end unmarked, "
        "so prompts were judged instead of responses",
        severity="serious",
        cause="data",
        evidence=(
            share("rows that are marked at their first token and unmarked at their end", odd, len(masks)),
            Evidence(name="unmarked tokens at the end, median row", value=median(tails), unit="tokens", n=len(tails)),
            *_zones(measured.result),
        ),
        remedy=(
            "write the mask as 1 on response tokens and 0 elsewhere, and run again; nothing else here can be trusted",
            "look at the same code in training: a drafter that was trained under this mask learnt prompts",
        ),
        refuted_by="rows that are known to begin with the response",
    )


def _at_the_start(measured: Measured) -> CheckResult | None:
    """Rows that are marked from their first token on, though not throughout: a mask rolled too far wraps around."""
    masks = [unpack_row(facts).loss_mask for facts in measured.train.rows]
    begun = [segments(mask) for mask in masks if len(mask) and mask[0] and not mask.all()]
    odd = [runs[0][1] for runs in begun]
    if len(odd) < LEAST_ODD or len(odd) <= MANY * len(masks):
        return None
    rolled = len(odd) == len(masks) and len(set(odd)) == 1 and all(len(runs) > 1 for runs in begun)
    marked = f"the first {odd[0]} tokens of every row" if rolled else f"{len(odd)} of {len(masks)} rows from token 0 on"
    return MASK.finding(
        f"the loss mask marks {marked}, where no response can be"
        + (f": as a mask does that was rolled {odd[0]} tokens too far" if rolled else ""),
        severity="minor",
        cause="data",
        evidence=(
            share("rows that are marked at their first token, but not throughout", len(odd), len(masks)),
            Evidence(name="marked tokens there, median row", value=median(odd), unit="tokens", n=len(odd)),
            *_zones(measured.result),
        ),
        remedy=("look at one row's tokens around its mask; mark exactly the response's tokens",),
        refuted_by="rows that are known to begin with a response",
    )


def _holes(measured: Measured) -> CheckResult | None:
    """Marked tokens with one or two unmarked ones between them: another speaker's turn takes more than that."""
    runs = [segments(unpack_row(facts).loss_mask) for facts in measured.train.rows]
    odd = sum(any(b[0] - a[1] <= HOLE for a, b in itertools.pairwise(row)) for row in runs)
    if odd < LEAST_ODD or odd <= MANY * len(runs):
        return None
    return MASK.finding(
        f"the loss mask has holes of one or two tokens within responses, in {odd} of {len(runs)} rows",
        severity="minor",
        cause="data",
        evidence=(share("rows with such a hole", odd, len(runs)), *_zones(measured.result)),
        remedy=("look at one row's tokens around a hole; mark every token of a response",),
        refuted_by="tokens that are left out of the loss on purpose",
    )


def _contradiction(measured: Measured) -> CheckResult | None:
    """Masks of the row files against those of the merged JSONL."""
    lint, used = measured.result.rows.lint, measured.result.rows.used
    if lint is None or not lint.masks_contradict:
        return None
    inverse = lint.masks_inverse
    return MASK.finding(
        f"in {lint.masks_contradict} of {used} rows the file's loss mask contradicts that of the merged JSONL"
        + (f", in {inverse} it is its very inverse" if inverse else "")
        + "; the merged one was used",
        severity="minor",
        cause="data",
        evidence=(count("rows whose two masks differ", lint.masks_contradict, used), *_zones(measured.result)),
        remedy=("find out which of the two training reads, and write both alike",),
        refuted_by="training code that reads the merged JSONL's mask alone",
    )


def _mask(measured: Measured) -> CheckResult:
    """The prompt's stated length against the mask, then the tokens around its edges."""
    evidence = (*_zones(measured.result), *_edges(measured.result), *_shifts(measured))
    shift, rows = _prompt_shift(measured)
    edges = _edge_shares(_lint_edges(measured.result))
    if shift is not None and shift != 0:
        return _beside_prompt(shift, rows, edges, evidence)
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
            evidence=led_by(evidence, "at `before`", "at `two_before`"),
            remedy=("look at one row's tokens around its mask; mark the response's first token as well",),
            refuted_by="a template whose last token differs from row to row",
        )
    if (early := _early(edges)) is not None:
        return MASK.finding(
            f"the loss mask seems to begin and end {early}, and goes on behind the mask's end",
            severity="minor",
            cause="data",
            evidence=led_by(evidence, "at `first`", "at `after`"),
            remedy=("look at one row's tokens around its mask; mark the response's last token, not its template's",),
            refuted_by="answers that all begin so (`<think>`) and rows that go on with other text at once",
        )
    vary = all(edges.get(place, 1.0) < VARIED for place in ("two_before", "before"))
    lint = measured.result.rows.lint
    stated = shift == 0 and lint is not None and lint.prompts_stated == measured.result.rows.used
    if vary and not stated:
        return MASK.cannot_tell(
            "the two tokens before the mask vary from response to response, as no template's do: there is none, or "
            "there are several, or the mask begins two tokens late or more",
            needs="a merged JSONL with `n_prompt_tokens`, or a look at one row's tokens around its mask",
            evidence=led_by(evidence, "at `before`", "at `two_before`"),
        )
    return MASK.passed("nothing speaks against where the mask begins and ends", evidence)


def _early(edges: dict[str, float]) -> str | None:
    """How much too early a mask seems to stand: the template's end is marked, and answers go on behind the mask."""
    if edges.get("first", 0.0) < UNIFORM or edges.get("after", 1.0) >= VARIED:
        return None
    if edges.get("second", 0.0) >= UNIFORM:
        return "two tokens early or more: every response begins with the same two tokens"
    template = all(edges.get(place, 0.0) >= UNIFORM for place in ("two_before", "before"))
    if not template or edges.get("second", 1.0) >= VARIED:
        return None
    return "one token early: every response begins with one and the same token"


def _beside_prompt(shift: int, rows: int, edges: dict[str, float], evidence: tuple[Evidence, ...]) -> CheckResult:
    """The mask begins elsewhere than the prompt is said to end; between them may stand nothing but a template."""
    places = ("two_before", "before") if shift > 0 else ("first", "second")
    between = places[-shift:] if 0 < shift < len(places) else places[: abs(shift)]
    # One token early is what a mask off by one looks like: the token it marks too soon is always the template's.
    template = shift != -1 and bool(edges) and all(edges.get(place, 0.0) >= UNIFORM for place in between)
    begins = f"begins {abs(shift)} token{'s' if abs(shift) > 1 else ''} {'after' if shift > 0 else 'before'}"
    return MASK.finding(
        f"the loss mask {begins} the prompt's stated end, in every row"
        + ("; the same tokens stand between in all of them, as a template's do" if template else ""),
        severity="note" if template else "minor",
        cause="data",
        evidence=(count("mask's first token minus n_prompt_tokens, every row", shift, rows, "tokens"), *evidence),
        remedy=("mark exactly the response's tokens; a shifted mask trains on other positions than serving drafts at",),
        refuted_by="a template whose last tokens are meant to be trained on",
    )


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
