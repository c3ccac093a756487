"""The shape of the draft - steps, width, nodes - as asked for and as the server runs it."""

import math
from collections.abc import Iterator

from orchestrator.compare.served import effective
from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.diagnosis.served_asked import (
    ARGUMENTS,
    changed,
    has_line,
    is_unknown_launch,
    log_evidence,
    requested,
    seen,
    where_to,
)
from remote_payload.schema.bench import ArgumentFact, ServerFacts, SglangFacts

_STEPS, _TOPK, _TOKENS = "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"
TREE_STEPS = 5
"""Depth of the trees that are advised, where their nodes allow it."""
TREE_WIDTH = 4


def check_shape(asked: dict[str, ArgumentFact], server: ServerFacts, sglang: SglangFacts) -> Iterator[CheckResult]:
    """Steps, width and nodes of the draft: forced, chosen by the server, or changing while it runs."""
    steps, topk, tokens = (effective(server, name) for name in (_STEPS, _TOPK, _TOKENS))
    wanted = requested(asked, _TOKENS)
    if wanted is not None and tokens is not None and wanted != tokens:
        forced = topk == 1 and isinstance(steps, int) and tokens == steps + 1
        why = f": with eagle_topk {topk} it takes num_steps + 1 = {tokens}" if forced else ""
        yield ARGUMENTS.finding(
            f"asked for {wanted} draft tokens, the server runs with {tokens}{why}",
            severity="serious",
            cause="engine",
            evidence=(
                seen("draft tokens asked for", wanted),
                seen("draft tokens in effect", tokens),
                seen("num_steps in effect", steps),
                *log_evidence(has_line(server, "draft_tokens_adjusted")),
                *(_source(sglang) if forced else ()),
            ),
            remedy=shapes_for(wanted, where_to(server)),
            refuted_by=f"/server_info with speculative_num_draft_tokens {wanted}",
        )
    for name, value, word in ((_STEPS, steps, "num_steps"), (_TOPK, topk, "eagle_topk")):
        wanted = requested(asked, name)
        if wanted is not None and value is not None and wanted != value:
            yield changed(asked[name], word)
    if steps is not None and all(requested(asked, name) is None for name in (_STEPS, _TOPK, _TOKENS)):
        yield _unknown_chooser(server) if is_unknown_launch(server) else _auto_chosen(server, sglang)
    if effective(server, "speculative_adaptive") is True:
        yield ARGUMENTS.finding(
            "speculative_adaptive is on: the number of steps changes while the server runs, by its batch size",
            severity="serious",
            cause="engine",
            evidence=(seen("num_steps at the start", steps),),
            remedy=("take --speculative-adaptive out to compare drafters or numbers of steps",),
            refuted_by="a line of the log that says it was turned off",
        )


def _auto_chosen(server: ServerFacts, sglang: SglangFacts) -> CheckResult:
    shape = tuple(effective(server, name) for name in (_STEPS, _TOPK, _TOKENS))
    steps, topk, tokens = shape
    rows = [row for row in sglang.auto_steps if (row.num_steps, row.eagle_topk, row.num_draft_tokens) == shape]
    named = any(row.target_class == server.model_class for row in rows)
    by = f" for {server.model_class}" if named else ""
    return ARGUMENTS.finding(
        f"no step flags were given: SGLang chose {steps} steps, topk {topk}, {tokens} draft tokens by itself{by}",
        severity="note",
        cause="engine",
        evidence=(seen("num_steps, eagle_topk, num_draft_tokens", f"{steps}, {topk}, {tokens}"),),
        remedy=(f"to fix them: --num-steps {steps} --eagle-topk {topk} --num-draft-tokens {tokens}{where_to(server)}",),
        refuted_by="step flags in the launch command",
    )


def _unknown_chooser(server: ServerFacts) -> CheckResult:
    steps, topk, tokens = (effective(server, name) for name in (_STEPS, _TOPK, _TOKENS))
    return ARGUMENTS.cannot_tell(
        f"the server runs {steps} steps, topk {topk}, {tokens} draft tokens; whether they were asked for or are its "
        "own choice is not known",
        needs="a server that tells its launch_command, or the step flags that it was started with",
    )


def shapes_for(wanted: object, end: str = "") -> tuple[str, ...]:
    """Whole sets of flags, a chain and a tree, that a server can run with so many nodes; `end`: where to write them.

    A tree's steps make topk + (steps - 1) * topk * topk drafts; a verify step takes `wanted` - 1 of them and the root.
    """
    if not isinstance(wanted, int) or wanted < 2:
        return (f"num_draft_tokens must be 2 or more, found: {wanted}",)
    chain = f"for a chain that deep: --num-steps {wanted - 1} --eagle-topk 1 --num-draft-tokens {wanted}{end}"
    topk = min(TREE_WIDTH, wanted - 1)
    if topk < 2:
        return (chain,)
    steps = max(min(TREE_STEPS, wanted - 1), math.ceil((wanted - 1 - topk) / topk**2) + 1)
    return (
        chain,
        f"for a tree of {wanted} nodes: --num-steps {steps} --eagle-topk {topk} --num-draft-tokens {wanted}{end}",
    )


def _source(sglang: SglangFacts) -> tuple[Evidence, ...]:
    if not sglang.forces_draft_tokens:
        return ()
    return (seen("the installed SGLang", f"{sglang.version}: its source does so at topk 1"),)
