"""Whether a served measurement is one: failed requests, a client at its limit, a warm cache, numbers that clash."""

from collections.abc import Iterator, Sequence

from orchestrator.compare.served import CLIENT_BOUND, LoadFigures, ServedFigures
from orchestrator.compare.served_speed import tokens_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, figure
from orchestrator.diagnosis.served_arguments import seen
from remote_payload.schema.bench import MachineSample, RequestSample, WorkloadFacts

REQUESTS = Subject(check="K13", title="requests")
CLIENT = Subject(check="K13", title="client")
CACHE = Subject(check="K13", title="prefix cache")
ANSWERS = Subject(check="K13", title="answers' own numbers")
WORKS = Subject(check="K13", title="drafter at work")
BASELINE = Subject(check="K13", title="plain decoding")
TEXT = Subject(check="K13", title="text")
TRAFFIC = Subject(check="K13", title="other traffic")
MACHINE = Subject(check="K13", title="GPU clocks")

NOT_WORKING = 1.05
"""Accept length up to which a drafter is not working at all."""
WARM = 0.01
"""Share of prompt tokens from the prefix cache from which on a run is not comparable with a cold one."""
CLOCK_SPREAD = 0.05
"""Relative spread of the SM clock within a run beyond which the machine is part of what was measured."""
FOREIGN = 0.05
"""Tokens beyond ours that a server may have counted meanwhile, relative, before somebody else is suspected."""
LATE_S = 0.05
"""Delay of a send from which on the load was not the one that was asked for."""


def check_load(load: LoadFigures) -> Iterator[CheckResult]:
    """Findings on one load."""
    where = load_words(load)
    if load.failed:
        yield _failed(load, where)
    if load.client_bound or any(point.client_late_s > LATE_S for point in load.points):
        yield _client(load, where)
    if load.cached_share is not None and load.cached_share > WARM:
        yield _warm(load, where)
    yield from _foreign(load, where)
    if load.side == "spec" and load.requests:
        yield from _works(load, where)


def check_workload(workload: WorkloadFacts) -> Iterator[CheckResult]:
    """Text on which an accept length means little."""
    if workload.form == "random":
        yield TEXT.finding(
            "the prompts are random tokens: their accept length says nothing about any text",
            severity="serious",
            cause="data",
            evidence=(seen("prompts", workload.source),),
            remedy=("give the prompts that you serve (--prompts); random ones serve for step costs alone",),
            refuted_by="the same accept length on real text",
        )
    if workload.ignore_eos:
        yield TEXT.finding(
            "the end of text is ignored: what follows it is no text, and its acceptance is nobody's",
            severity="note",
            cause="data",
            evidence=(seen("ignore_eos", "true"),),
            remedy=("leave --ignore-eos out where accept lengths are compared with served ones",),
            refuted_by="the same accept length with the end respected",
        )


def check_answers(requests: Sequence[RequestSample]) -> CheckResult:
    """Whether the identities of every answer's own numbers hold."""
    broken = [item for item in requests if item.broken_identities]
    told = sum(item.verify_steps is not None for item in requests)
    if not broken:
        return ANSWERS.passed(f"the identities of the answers' own numbers hold in all {told} answers that tell them")
    first = broken[0].broken_identities[0]
    return ANSWERS.finding(
        f"the server's own numbers contradict each other in {len(broken)} of {len(requests)} answers",
        severity="serious",
        cause="engine",
        evidence=(count("answers with a broken identity", len(broken), len(requests)), seen("the first", first)),
        remedy=("this version's acceptance figures cannot be trusted: compare throughput alone, and report it",),
        refuted_by="another version of SGLang with the same prompts",
    )


def check_baseline(figures: ServedFigures) -> Iterator[CheckResult]:
    """A speculative step that came out cheaper than a plain one."""
    for item in figures.pairs:
        pairing = item.pairing
        if pairing.suspicious:
            yield BASELINE.finding(
                f"plain decoding looks too slow {load_words(item.plain)}: a speculative step came out cheaper than a "
                f"plain one (r = {pairing.step_cost:.2f}), which no server can do",
                severity="serious",
                cause="engine",
                evidence=(
                    seen("step cost r", round(pairing.step_cost or 0, 3)),
                    figure("plain throughput", item.plain.speed.throughput, "tok/s"),
                ),
                remedy=(
                    "look for what slowed the plain side: graphs, another process, clocks, a cold start; run again",
                ),
                refuted_by="r of 1 or more in another run",
            )


def check_machine(samples: Sequence[MachineSample]) -> Iterator[CheckResult]:
    """Clocks that moved, or were held back, while it was measured."""
    busy = [item for item in samples if item.gpu is not None and item.sm_clock_mhz and (item.utilization or 0) > 0.5]
    for gpu in sorted({item.gpu for item in busy if item.gpu is not None}):
        clocks = sorted(item.sm_clock_mhz or 0 for item in busy if item.gpu == gpu)
        spread = (clocks[-1] - clocks[0]) / clocks[-1]
        reasons = sorted({item.throttle for item in busy if item.gpu == gpu and item.throttle})
        if spread > CLOCK_SPREAD:
            yield MACHINE.finding(
                f"GPU {gpu}'s clock moved by {100 * spread:.0f} % while it was measured",
                severity="minor",
                cause="engine",
                evidence=(
                    Evidence(name="SM clock, least and most", value=f"{clocks[0]:.0f} .. {clocks[-1]:.0f} MHz"),
                    Evidence(name="reasons given", value=", ".join(reasons) or "none"),
                ),
                remedy=("compare only sides measured in turn (--repeats), or lock the clocks on the host",),
                refuted_by="the same throughput at a steady clock",
            )


def load_words(load: LoadFigures) -> str:
    """e.g. `at 4 users (spec)`."""
    if load.concurrency is None:
        return f"at {load.request_rate:g} requests/s ({load.side})"
    return f"at {load.concurrency} user{'' if load.concurrency == 1 else 's'} ({load.side})"


def _failed(load: LoadFigures, where: str) -> CheckResult:
    sent = sum(point.requests for point in load.points)
    return REQUESTS.finding(
        f"{load.failed} of {sent} requests failed {where}: this load is no measurement",
        severity="fatal",
        cause="engine",
        evidence=(count("failed requests", load.failed, sent),),
        remedy=("see requests.jsonl.gz for each error; lower the concurrency, or raise request_timeout_s",),
        refuted_by="a run without failed requests",
    )


def _client(load: LoadFigures, where: str) -> CheckResult:
    late = max((point.client_late_s for point in load.points), default=0.0)
    return CLIENT.finding(
        f"the client itself may be the bottleneck {where}: it used {100 * (load.client_cpu or 0):.0f} % of a core"
        + (f" and sent up to {late:.2f} s late" if late > LATE_S else ""),
        severity="serious",
        cause="engine",
        evidence=(
            seen("client CPU, share of one core", round(load.client_cpu or 0, 3)),
            seen("limit taken", CLIENT_BOUND),
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


def _warm(load: LoadFigures, where: str) -> CheckResult:
    share = load.cached_share or 0.0
    flushed = all(point.flushed for point in load.points)
    return CACHE.finding(
        f"{100 * share:.1f} % of the prompt tokens came from the prefix cache {where}",
        severity="minor",
        cause="engine",
        evidence=(
            Evidence(name="cached share of prompt tokens", value=round(share, 4), unit="share"),
            seen("cache flushed before", "yes" if flushed else "no"),
        ),
        remedy=(
            "prompts that share a beginning fill it even after a flush: use more different prompts"
            if flushed
            else "the server did not flush its cache: compare only with runs that were as warm",
        ),
        refuted_by="a run with cached tokens 0",
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
    if length.value is not None and length.value <= NOT_WORKING:
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
