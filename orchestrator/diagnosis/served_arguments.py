"""K13: what was asked of a server against what it runs with, each silent difference a finding with its remedy.

What SGLang does is read from the server itself (`/server_info`, its log) and from the source that is installed there;
the texts here name what was seen, not what some version is known to do.
"""

from collections.abc import Iterator

from orchestrator.compare.served import decoded, effective
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from remote_payload.schema.bench import ArgumentFact, ServerFacts, SglangFacts

ARGUMENTS = Subject(check="K13", title="effective arguments")

_STEPS, _TOPK = "speculative_num_steps", "speculative_eagle_topk"
_TOKENS, _MAP = "speculative_num_draft_tokens", "speculative_token_map"
_QUANTIZATION = "speculative_draft_model_quantization"
_CAP = "max_running_requests"
_THRESHOLDS = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
TOLD_APART = (_TOKENS, _STEPS, _TOPK, _MAP, _QUANTIZATION, _CAP, "speculative_adaptive", "draft_class", *_THRESHOLDS)
"""Arguments with findings of their own."""
SPELLED_FREELY = ("model_path", "speculative_draft_model_path", "tokenizer_path", "served_model_name", "device")
"""Asked for in one spelling and told in another without meaning anything."""


def check_arguments(server: ServerFacts, sglang: SglangFacts, users: int) -> tuple[CheckResult, ...]:
    """Every difference on one server; `users`: the most requests that were in flight at once."""
    if not server.arguments:
        needs = "/server_info (a server that answers it)"
        return (ARGUMENTS.cannot_tell("the server does not tell what it runs with", needs=needs),)
    asked = {fact.name: fact for fact in server.arguments}
    found = list(_requests_cap(asked, server, sglang, users))
    if server.side == "spec":
        found += [*_draft_shape(asked, server, sglang), *_draft_model(asked, server), *_lossy(server)]
    found += _others(asked)
    if found:
        return tuple(found)
    compared = sum(fact.requested is not None for fact in server.arguments)
    return (ARGUMENTS.passed(f"the server runs with all {compared} arguments that it was asked for"),)


def has_line(server: ServerFacts, *rules: str) -> str | None:
    """The first of the log's lines that matched one of these rules."""
    return next((line.line for line in server.lines if line.rule in rules), None)


def seen(name: str, value: object) -> Evidence:
    """A plain word or number as evidence."""
    shown = value if isinstance(value, int | float | str) and not isinstance(value, bool) else str(value)
    return Evidence(name=name, value=shown)


def log_evidence(line: str | None) -> tuple[Evidence, ...]:
    """The log's own words, where there are any."""
    return () if line is None else (Evidence(name="the log says", value=line),)


def _draft_shape(asked: dict[str, ArgumentFact], server: ServerFacts, sglang: SglangFacts) -> Iterator[CheckResult]:
    steps, topk, tokens = (effective(server, name) for name in (_STEPS, _TOPK, _TOKENS))
    wanted = _requested(asked, _TOKENS)
    if wanted is not None and tokens is not None and wanted != tokens:
        why = f"with eagle_topk {topk} it takes num_steps + 1 = {tokens}" if topk == 1 else f"num_steps is {steps}"
        yield ARGUMENTS.finding(
            f"asked for {wanted} draft tokens, the server runs with {tokens}: {why}",
            severity="serious",
            cause="engine",
            evidence=(
                seen("draft tokens asked for", wanted),
                seen("draft tokens in effect", tokens),
                seen("num_steps in effect", steps),
                *log_evidence(has_line(server, "draft_tokens_adjusted")),
                *_source(sglang),
            ),
            remedy=(
                f"for a chain that deep: --num-steps {_less_one(wanted)} --eagle-topk 1",
                f"for a tree of {wanted} nodes: --eagle-topk 2 or more (and num_steps for its depth)",
            ),
            refuted_by=f"/server_info with speculative_num_draft_tokens {wanted}",
        )
    for name, value, word in ((_STEPS, steps, "num_steps"), (_TOPK, topk, "eagle_topk")):
        wanted = _requested(asked, name)
        if wanted is not None and value is not None and wanted != value:
            yield _changed(asked[name], word)
    if steps is not None and all(_requested(asked, name) is None for name in (_STEPS, _TOPK, _TOKENS)):
        yield _auto_chosen(server, sglang)
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
        remedy=(f"to fix them: --num-steps {steps} --eagle-topk {topk} --num-draft-tokens {tokens}",),
        refuted_by="step flags in the launch command",
    )


def _requests_cap(
    asked: dict[str, ArgumentFact], server: ServerFacts, sglang: SglangFacts, users: int
) -> Iterator[CheckResult]:
    cap = effective(server, _CAP)
    line = has_line(server, "running_requests_reset")
    if not isinstance(cap, int) or _requested(asked, _CAP) is not None:
        return
    chosen = line is not None or (server.side == "spec" and cap == sglang.running_requests_cap)
    if not chosen and cap >= users:
        return
    hit = users > cap
    tail = f"; {users} requests at once were sent, so some waited" if hit else ""
    yield ARGUMENTS.finding(
        f"the server set max_running_requests to {cap} by itself{tail}",
        severity="serious" if hit else "note",
        cause="engine",
        evidence=(seen("max_running_requests", cap), seen("most requests at once", users), *log_evidence(line)),
        remedy=(f'server_args = ["--max-running-requests", "{max(users, cap)}"]',),
        refuted_by="max_running_requests in the launch command",
    )


def _draft_model(asked: dict[str, ArgumentFact], server: ServerFacts) -> Iterator[CheckResult]:
    line = has_line(server, "token_map_ignored")
    if line is not None or (_requested(asked, _MAP) is not None and effective(server, _MAP) is None):
        yield ARGUMENTS.finding(
            "the token map that was given is ignored: an EAGLE-3 drafter brings its own (d2t)",
            severity="minor",
            cause="engine",
            evidence=log_evidence(line),
            remedy=("take --speculative-token-map out; to change the map, change d2t in the checkpoint",),
            refuted_by="another accept length with another map",
        )
    target, drafts = effective(server, "quantization"), effective(server, _QUANTIZATION)
    if target is not None and drafts == target and _requested(asked, _QUANTIZATION) is None:
        yield ARGUMENTS.finding(
            f"the drafter inherited the target's quantization: {target}",
            severity="minor",
            cause="engine",
            evidence=(seen("speculative_draft_model_quantization", drafts),),
            remedy=('draft_quantization = "unquant" keeps a bfloat16 drafter as it is',),
            refuted_by="the same accept length with the drafter unquantized",
        )


def _lossy(server: ServerFacts) -> Iterator[CheckResult]:
    for name in _THRESHOLDS:
        value = effective(server, name)
        if isinstance(value, int | float) and value < 1:
            yield ARGUMENTS.finding(
                f"{name} is {value}: drafts are accepted that the target would not have said",
                severity="serious",
                cause="engine",
                evidence=(seen(name, value),),
                remedy=(f"leave {name} at 1.0 where outputs must be the target's",),
                refuted_by="outputs identical to plain decoding",
            )


def _others(asked: dict[str, ArgumentFact]) -> Iterator[CheckResult]:
    for fact in asked.values():
        known = fact.name in TOLD_APART or fact.name in SPELLED_FREELY or decoded(fact.requested) == "auto"
        if not known and fact.requested is not None and fact.effective is not None and not _same(fact):
            yield _changed(fact, fact.name)


def _changed(fact: ArgumentFact, word: str) -> CheckResult:
    wanted, value = decoded(fact.requested), decoded(fact.effective)
    return ARGUMENTS.finding(
        f"asked for {word} {wanted}, the server runs with {value}",
        severity="serious" if fact.name.startswith("speculative_") else "minor",
        cause="engine",
        evidence=(seen(f"{word} asked for", wanted), seen(f"{word} in effect", value)),
        remedy=(f"ask for what it can do, or look in its log for why it changed {word}",),
        refuted_by="/server_info with what was asked for",
    )


def _same(fact: ArgumentFact) -> bool:
    """Whether both mean the same: `[1]` and `1` do, and `0.5` and `.50`, and words but for their case."""
    wanted, value = decoded(fact.requested), decoded(fact.effective)
    if isinstance(value, list) and not isinstance(wanted, list):
        wanted = [wanted]
    return wanted == value or str(wanted).lower() == str(value).lower()


def _requested(asked: dict[str, ArgumentFact], name: str) -> object:
    return decoded(asked[name].requested) if name in asked else None


def _less_one(value: object) -> object:
    return value - 1 if isinstance(value, int) else f"{value} - 1"


def _source(sglang: SglangFacts) -> tuple[Evidence, ...]:
    if not sglang.forces_draft_tokens:
        return ()
    return (seen("the installed SGLang", f"{sglang.version}: its source does so at topk 1"),)
