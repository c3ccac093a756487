"""Whether a load of a served benchmark is a measurement: failed requests, a client at its limit, a warm cache."""

from collections.abc import Iterator, Sequence

from orchestrator.compare.served import CLIENT_BOUND, LoadFigures
from orchestrator.compare.served_acceptance import LEAST_STEPS
from orchestrator.compare.served_pairing import LEAST_TOKENS
from orchestrator.compare.served_refused import too_long, without
from orchestrator.compare.served_speed import tokens_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, figure
from orchestrator.diagnosis.served_asked import seen

REQUESTS = Subject(check="load", title="requests")
CLIENT = Subject(check="load", title="client")
CACHE = Subject(check="load", title="prefix cache")
WORKS = Subject(check="drafter", title="drafter at work")
TRAFFIC = Subject(check="load", title="other traffic")
LENGTH = Subject(check="load", title="output length")
USERS = Subject(check="load", title="users")

NOT_WORKING = 1.05
"""Accept length up to which a drafter is not working at all."""
WARM = 0.01
"""Share of prompt tokens from the prefix cache from which on a run is not comparable with a cold one."""
FOREIGN = 0.05
"""Tokens beyond ours that a server may have counted meanwhile, relative, before somebody else is suspected."""
LATE_S = 0.05
"""Delay of a send from which on the load was not the one that was asked for."""
SOME_WAITING = 0.05
"""Share of the time without a core from which on that is worth a word."""


def check_load(load: LoadFigures) -> Iterator[CheckResult]:
    """Findings on one load."""
    where = load_words(load)
    if load.failed:
        yield _failed(load, where)
    if load.client_bound or any(point.client_late_s > LATE_S for point in load.points):
        yield _client(load, where)
    if load.cached_share is not None and load.cached_share > WARM:
        yield _warm((load,))
    yield from _asked_load(load)
    yield from _foreign(load, where)
    if load.side == "spec" and load.requests:
        yield from _works(load, where)
        yield from _told_by_some(load, where)


def load_words(load: LoadFigures) -> str:
    """e.g. `at 4 users (spec)`; `at 2 of 64 users (spec)` where fewer requests were sent than users asked for."""
    if load.concurrency is None:
        return f"at {load.request_rate:g} requests/s ({load.side})"
    of = "" if load.at_once == load.concurrency else f"{load.at_once} of "
    return f"at {of}{load.concurrency} user{'' if load.concurrency == 1 else 's'} ({load.side})"


def _told_by_some(load: LoadFigures, where: str) -> Iterator[CheckResult]:
    """An accept length over some answers alone: which ones is the server's choice."""
    told = None if load.acceptance is None else load.acceptance.requests
    if told is not None and told < len(load.requests):
        yield WORKS.finding(
            f"{told} of {len(load.requests)} answers tell of verify steps {where}: the accept length is theirs alone",
            severity="serious",
            cause="engine",
            evidence=(count("answers that tell", told, len(load.requests)),),
            remedy=("see requests.jsonl.gz for what the others have in common; compare throughput alone",),
            refuted_by="every answer with spec_verify_ct",
        )


def is_not_working(load: LoadFigures) -> bool:
    """Whether enough verify steps accepted next to nothing."""
    found = load.acceptance
    if found is None or found.length.value is None:
        return False
    return found.length.value <= NOT_WORKING and found.verify_steps >= LEAST_STEPS


def _failed(load: LoadFigures, where: str) -> CheckResult:
    sent = sum(point.requests for point in load.points)
    if load.refused and load.answered:
        return _refused(load, f"{load.failed} of {sent} requests failed {where}", count("failed", load.failed, sent))
    return REQUESTS.finding(
        f"{load.failed} of {sent} requests failed {where}: this load is no measurement",
        severity="fatal",
        cause="engine",
        evidence=(count("failed requests", load.failed, sent),),
        remedy=("see requests.jsonl.gz for each error; lower the concurrency, or raise --request-timeout-s",),
        refuted_by="a run without failed requests",
    )


def _refused(load: LoadFigures, told: str, failed: Evidence) -> CheckResult:
    """Nothing failed but what is too long, whatever the load: the server did as it must."""
    shorter = ", or lower --max-new-tokens" if any(one.answer is not None for one in load.refused) else ""
    return REQUESTS.finding(
        f"{told}, {too_long(load.refused)}: this load is no measurement of speed",
        severity="fatal",
        cause="data",
        evidence=(failed, *(seen(one.place, one.words) for one in load.refused)),
        remedy=(f"{without(load.refused)}{shorter}, or serve a longer context (--context-length)",),
        refuted_by="a run without failed requests",
    )


def _client(load: LoadFigures, where: str) -> CheckResult:
    late = max((point.client_late_s for point in load.points), default=0.0)
    waited = load.client_waited or 0.0
    told = "not told" if load.client_waited is None else round(waited, 3)
    return CLIENT.finding(
        f"the client itself may be the bottleneck {where}: it used {100 * (load.client_cpu or 0):.0f} % of a core"
        + (f", waited for one {100 * waited:.0f} % of the time" if waited >= SOME_WAITING else "")
        + (f" and sent up to {late:.2f} s late" if late > LATE_S else ""),
        severity="serious",
        cause="engine",
        evidence=(
            seen("client CPU, share of one core", round(load.client_cpu or 0, 3)),
            seen("client waiting for a core, share of the time", told),
            seen("limit taken, both together", CLIENT_BOUND),
            seen("largest delay of sending, s", round(late, 4)),
        ),
        remedy=("the server may be faster than this: lower the concurrency, or read `--harness sglang` beside it",),
        refuted_by="the same throughput from two clients",
    )


def _foreign(load: LoadFigures, where: str) -> Iterator[CheckResult]:
    """Whether the server's own counters grew by more than our requests account for."""
    for point in load.points:
        before = None if point.before is None else point.before.generation_tokens
        after = None if point.after is None else point.after.generation_tokens
        ours = sum(tokens_of(item) for item in load.requests if item.point == point.point)
        if before is None or after is None or not ours:
            continue
        counted = after - before
        if counted > (1 + FOREIGN) * ours:
            yield TRAFFIC.finding(
                f"somebody else used the server {where}: it made {counted:.0f} tokens, {ours} of them ours",
                severity="serious",
                cause="engine",
                evidence=(count("tokens of ours", ours), seen("tokens it counted", counted)),
                remedy=("measure when nobody else sends requests, or start a server of your own",),
                refuted_by="counters that grow by our tokens alone",
            )
            return


def warm_together(loads: Sequence[LoadFigures]) -> Iterator[CheckResult]:
    """One finding over all loads whose prompts came from the prefix cache: those flushed, and those not."""
    warm = [load for load in loads if load.cached_share is not None and load.cached_share > WARM]
    for flushed in (False, True):
        some = tuple(load for load in warm if load.flushed == flushed)
        if some:
            yield _warm(some)


def _warm(loads: Sequence[LoadFigures]) -> CheckResult:
    """Who filled it: nobody flushed it, prompts were asked twice in a point, or they begin alike."""
    shares = sorted(100 * (load.cached_share or 0.0) for load in loads)
    span = f"{shares[0]:.1f} %" if len(shares) == 1 else f"{shares[0]:.1f} to {shares[-1]:.1f} %"
    where = load_words(loads[0]) if len(loads) == 1 else f"in {len(loads)} loads"
    points = [point for load in loads for point in load.points]
    again = sum(point.repeated_prompts or 0 for point in points)
    flushed = all(load.flushed for load in loads)
    why, remedy = ": they share a beginning", "no fault where it is the same on both sides of a comparison; else: "
    if not flushed:
        why, remedy = ": the server did not flush it", "compare only with runs that were as warm; else: "
    elif again:
        why = f": {again} of {sum(point.requests for point in points)} requests asked a prompt of the same point again"
        remedy = "ask fewer (--requests) or give more prompts (--prompts); else: "
    return CACHE.finding(
        f"{span} of the prompt tokens came from the prefix cache {where}{why}",
        severity="minor",
        cause="data" if flushed else "engine",
        evidence=(
            Evidence(name="most cached of a load's prompt tokens", value=round(shares[-1] / 100, 4), unit="share"),
            seen("cache flushed before", "yes" if flushed else "no"),
            count("requests that asked a prompt again", again),
        ),
        remedy=(f"{remedy}--server-arg --disable-radix-cache",),
        refuted_by="a run with cached tokens 0",
    )


def _asked_load(load: LoadFigures) -> Iterator[CheckResult]:
    """Whether so many users were there, and whether their answers were long enough to have been decoded."""
    if load.at_once != load.concurrency:
        yield USERS.finding(
            f"{load.concurrency} users were asked for, but a point has only {load.at_once} requests: so many at most "
            f"were in flight ({load.side})",
            severity="serious",
            cause="data",
            evidence=(seen("users asked for", load.concurrency), seen("requests a point", load.at_once)),
            remedy=(f"--requests {5 * (load.concurrency or 1)} or more, or a lower --concurrency",),
            refuted_by="as many requests as users in each point",
        )
    if load.mean_tokens is not None and load.mean_tokens < LEAST_TOKENS:
        yield LENGTH.finding(
            f"the answers are {load.mean_tokens:.1f} tokens long {load_words(load)}: that is prefill, not decoding",
            severity="serious",
            cause="data",
            evidence=(
                Evidence(
                    name="output tokens a request",
                    value=round(load.mean_tokens, 2),
                    unit="tokens",
                    n=len(load.requests),
                ),
                seen("how the first ended", load.requests[0].finish or "not told"),
            ),
            remedy=("see that the prompts are in the model's chat format (messages), and --max-new-tokens above 64",),
            refuted_by="longer answers to the same prompts",
        )


def _works(load: LoadFigures, where: str) -> Iterator[CheckResult]:
    found = load.acceptance
    if found is None or found.length.value is None:
        yield WORKS.cannot_tell(
            f"no answer tells of verify steps {where}",
            needs="answers of `/generate` with spec_verify_ct (is speculation on?)",
        )
        return
    length = found.length
    if found.verify_steps < LEAST_STEPS:
        yield WORKS.cannot_tell(
            f"only {found.verify_steps} verify steps {where}, {length.value:.2f} tokens each",
            needs=f"{LEAST_STEPS} verify steps or more: more requests, or longer answers",
        )
    elif is_not_working(load):
        yield WORKS.finding(
            f"the drafter is not working: accept length {length.value:.2f} {where}, nothing it drafts is accepted",
            severity="fatal",
            cause="loading",
            evidence=(figure("accept length", length, "tokens"), count("verify steps", found.verify_steps)),
            remedy=(
                "`run standalone` on captured rows names the cause: tensors under names that SGLang skips, states of "
                "the wrong layers, a d2t that is no delta",
            ),
            refuted_by="an accept length well above 1 on prompts like the training data",
        )
    else:
        yield WORKS.passed(
            f"the drafter works {where}: accept length {length.value:.2f}",
            (figure("accept length", length, "tokens"),),
        )
