"""K13: what was asked of a server against what it runs with, each silent difference a finding with its remedy.

What SGLang does is read from the server itself (`/server_info`, its log) and from the source that is installed there;
the texts here name what was seen, not what some version is known to do.
"""

from collections.abc import Iterator

from orchestrator.compare.served import decoded, effective
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_asked import (
    ARGUMENTS,
    by_full_name,
    changed,
    has_line,
    is_unknown_launch,
    log_evidence,
    requested,
    seen,
    where_to,
)
from orchestrator.diagnosis.served_shape import check_shape
from remote_payload.schema.bench import ArgumentFact, ServerFacts, SglangFacts

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
    asked = by_full_name(server.arguments)
    found = list(_requests_cap(asked, server, sglang, users))
    if server.side == "spec":
        found += [*check_shape(asked, server, sglang), *_draft_model(asked, server), *_lossy(server)]
    found += _others(asked)
    return tuple(found) if found else (_nothing_found(asked),)


def _nothing_found(asked: dict[str, ArgumentFact]) -> CheckResult:
    """Only what the server told was compared; what it did not is named."""
    wanted = [fact for fact in asked.values() if fact.requested is not None]
    untold = [fact.name for fact in wanted if fact.effective is None]
    if len(untold) == len(wanted):
        return ARGUMENTS.cannot_tell(
            f"the server tells none of the {len(wanted)} arguments that it was asked for",
            needs="/server_info with these arguments, or the launch flags of the server that is up",
        )
    rest = f"; not told: {len(untold)} ({', '.join(untold[:5])}{', ...' if len(untold) > 5 else ''})" if untold else ""
    compared = len(wanted) - len(untold)
    return ARGUMENTS.passed(
        f"the server runs with the {compared} argument{'' if compared == 1 else 's'} that it was asked for and tells"
        f"{rest}"
    )


def _requests_cap(
    asked: dict[str, ArgumentFact], server: ServerFacts, sglang: SglangFacts, users: int
) -> Iterator[CheckResult]:
    cap = effective(server, _CAP)
    line = has_line(server, "running_requests_reset")
    if not isinstance(cap, int) or requested(asked, _CAP) is not None:
        return
    chosen = line is not None or (server.side == "spec" and cap == sglang.running_requests_cap)
    who = "runs with max_running_requests" if is_unknown_launch(server) else "set max_running_requests to"
    by = "" if is_unknown_launch(server) else " by itself"
    if not chosen and cap >= users:
        return
    hit = users > cap
    tail = f"; {users} requests at once were sent, so some waited" if hit else ""
    yield ARGUMENTS.finding(
        f"the server {who} {cap}{by}{tail}",
        severity="serious" if hit else "note",
        cause="engine",
        evidence=(seen("max_running_requests", cap), seen("most requests at once", users), *log_evidence(line)),
        remedy=(f"--server-arg --max-running-requests --server-arg {max(users, cap)}{where_to(server)}",),
        refuted_by="max_running_requests in the launch command",
    )


def _draft_model(asked: dict[str, ArgumentFact], server: ServerFacts) -> Iterator[CheckResult]:
    line = has_line(server, "token_map_ignored")
    told = asked[_MAP].effective if _MAP in asked else None  # null is an answer, and no answer is none
    if line is not None or (requested(asked, _MAP) is not None and told is not None and decoded(told) is None):
        yield ARGUMENTS.finding(
            "the token map that was given is ignored: an EAGLE-3 drafter brings its own (d2t)",
            severity="minor",
            cause="engine",
            evidence=log_evidence(line),
            remedy=("take --speculative-token-map out; to change the map, change d2t in the checkpoint",),
            refuted_by="another accept length with another map",
        )
    target, drafts = effective(server, "quantization"), effective(server, _QUANTIZATION)
    if target is not None and drafts == target and requested(asked, _QUANTIZATION) is None:
        yield ARGUMENTS.finding(
            f"the drafter inherited the target's quantization: {target}",
            severity="minor",
            cause="engine",
            evidence=(seen("speculative_draft_model_quantization", drafts),),
            remedy=(f"--draft-quantization unquant keeps a bfloat16 drafter as it is{where_to(server)}",),
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
        if (
            not known
            and not _is_structured(decoded(fact.effective))
            and fact.requested is not None
            and fact.effective is not None
            and not _same(fact)
        ):
            yield changed(fact, fact.name)


def _same(fact: ArgumentFact) -> bool:
    """Whether both mean the same: `[1]` and `1` do, and `0.5` and `.50`, and words but for their case."""
    wanted, value = decoded(fact.requested), decoded(fact.effective)
    if fact.name == "speculative_algorithm" and (wanted, value) == ("NEXTN", "EAGLE"):
        return True  # its older name
    if isinstance(value, list) and not isinstance(wanted, list):
        wanted = [wanted]
    return wanted == value or str(wanted).lower() == str(value).lower()


def _is_structured(value: object) -> bool:
    """Whether the server tells objects where words were given (`--lora-paths a=b`): not to be compared as texts."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
