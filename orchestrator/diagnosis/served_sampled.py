"""K19: greedy against sampled answers to the same prompts of one start, beside what theory lets one expect.

On CPU, XPU and most of ROCm SGLang verifies greedily at any temperature (speculative/eagle_utils.py of 0.5.23): there
only the first token, which the prefill gives, is drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.compare.served import LoadFigures, ServedFigures, effective
from orchestrator.compare.served_acceptance import samples_of
from orchestrator.compare.stats import Estimate, paired_difference, pooled_ratio
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, figure
from orchestrator.diagnosis.samples import columns, has_drafts, sums_by_sample
from orchestrator.diagnosis.sampling_theory import Expected, expected, first_share, meaning
from orchestrator.diagnosis.served import SEVERITIES, ServedDiagnosis
from remote_payload.schema.bench import BenchResult, RequestSample, ServerFacts

SAMPLING = Subject(check="K19", title="greedy against sampled")
LARGE = 0.3
"""Accept length by which sampling must surely cost before it is worth a note."""
GREEDY_DEVICES = ("cpu", "xpu")
LEAST_ALIKE = 3
"""Answers that begin alike, from which on it counts that all are equal to the end."""
LEAST_TOKENS = 8
"""Tokens that such an answer has at least."""


def with_sampled(
    told: ServedDiagnosis, result: BenchResult, figures: ServedFigures, requests: Sequence[RequestSample]
) -> ServedDiagnosis:
    """The same with K19 where a load was sampled; `requests`: those of it."""
    found = tuple(sampled_checks(result, figures, requests))
    findings = (*told.findings, *(item for item in found if item.outcome == "finding"))
    ranked = sorted(findings, key=lambda item: SEVERITIES.index(item.severity or "note"))
    return replace(told, results=(*told.results, *found), findings=tuple(ranked))


def sampled_checks(
    result: BenchResult, figures: ServedFigures, requests: Sequence[RequestSample]
) -> Iterator[CheckResult]:
    """One answer; none where nothing was sampled."""
    hot = result.sampled
    if hot is None:
        return
    server = next((item for item in result.servers if item.start == hot.point.start), None)
    key = (hot.point.concurrency, hot.point.request_rate)
    cold = next((load for load in figures.loads if load.side == hot.point.side and load.key == key), None)
    if hot.point.failed or cold is None or not cold.valid:
        yield SAMPLING.cannot_tell("requests of one of the two failed", needs="both without failures")
        return
    contents = samples_of(result.workload)
    yield _compared(server, cold, [item for item in requests if item.error is None], hot.temperature, contents)


def _compared(
    server: ServerFacts | None,
    cold: LoadFigures,
    sampled: Sequence[RequestSample],
    temperature: float,
    contents: Sequence[str],
) -> CheckResult:
    sides = [sums_by_sample(filter(has_drafts, some), contents) for some in (sampled, cold.requests)]
    both = sorted(sides[0].keys() & sides[1].keys())
    sums = [columns(side, both) for side in sides]
    difference = paired_difference(sums[0], sums[1])
    evidence = (
        figure(f"accept length, temperature {temperature:g} minus greedy", difference, "tokens"),
        figure("accept length, greedy", pooled_ratio(*sums[1]), "tokens"),
        figure(f"accept length, temperature {temperature:g}", pooled_ratio(*sums[0]), "tokens"),
        *_first_drafts("greedy: the share of first drafts that are the likeliest token", cold.requests, contents),
        *_first_drafts(f"temperature {temperature:g}: {meaning(server)}", sampled, contents),
    )
    alike, same = _alike(cold.requests, sampled)
    if alike >= LEAST_ALIKE and same == alike:
        return _not_drawn(_device(server), alike, temperature, evidence)
    if _device(server) in GREEDY_DEVICES and alike < LEAST_ALIKE:
        return SAMPLING.cannot_tell(
            f"SGLang verifies greedily on {_device(server)} (as of 0.5.23), and too few answers begin alike to see it",
            needs=f"{LEAST_ALIKE} answers that begin with the greedy one's token",
            evidence=evidence,
        )
    return _told(difference, temperature, evidence, server, expected(cold.requests, sampled, server, contents))


def _told(
    difference: Estimate,
    temperature: float,
    evidence: tuple[Evidence, ...],
    server: ServerFacts | None,
    theory: Expected | None,
) -> CheckResult:
    value, low, high = difference.value, difference.low, difference.high
    if value is None or low is None or high is None:
        return SAMPLING.cannot_tell("too few prompts for an interval", needs="5 prompts or more", evidence=evidence)
    text = f"accept length {value:+.2f} [{low:+.2f}, {high:+.2f}] at temperature {temperature:g} against greedy"
    if theory is not None:
        evidence = (*evidence, *theory.evidence)
        if theory.is_beyond:
            return _beyond(text, evidence)
        text += theory.words
    if high < 0 and value < -LARGE:
        found = SAMPLING.finding(
            f"sampling costs acceptance: {text}",
            severity="note",
            cause="generalization",
            evidence=evidence,
            remedy=(
                f"to be expected in kind: drafts are the drafter's likeliest tokens, and the share that is accepted is "
                f"{meaning(server)}; serve a lower temperature, fewer steps, or a drafter trained on sampled answers",
                f"judge what speculation is worth at temperature {temperature:g} (--temperature), if that is served",
            ),
            refuted_by="the same fall of accept length on other prompts being absent",
        )
        return replace(found, effect=-value)
    if low > -LARGE:
        return SAMPLING.passed(f"sampling costs no more than {LARGE:g}: {text}", evidence)
    return SAMPLING.cannot_tell(f"cannot tell: {text}", needs="more prompts", evidence=evidence)


def _beyond(text: str, evidence: tuple[Evidence, ...]) -> CheckResult:
    return SAMPLING.finding(
        f"sampling accepts more first drafts than the target's own draws allow: {text}",
        severity="minor",
        cause="engine",
        evidence=evidence,
        remedy=("hold sampled answers against plain decoding at the same temperature: they may not be the target's",),
        refuted_by="a share of accepted first drafts of at most half of one plus the greedy share",
    )


def _not_drawn(device: str, alike: int, temperature: float, evidence: tuple[Evidence, ...]) -> CheckResult:
    """Nothing was drawn after the first token; elsewhere than where that is known, the target may be that sure."""
    is_known = device in GREEDY_DEVICES
    why = f"verification is greedy on {device}" if is_known else "verification seems greedy, or the target is that sure"
    return SAMPLING.finding(
        f"temperature {temperature:g} is not sampled while speculating: {why}; all {alike} answers that begin as the "
        "greedy ones do are equal to them",
        severity="minor" if is_known else "note",
        cause="engine",
        evidence=(count("answers that begin alike and are equal to the end", alike, alike), *evidence),
        remedy=("on CUDA it is sampled; elsewhere serve without speculation where answers must be drawn",),
        refuted_by="answers to one prompt that begin alike and then differ",
    )


def _device(server: ServerFacts | None) -> str:
    return "" if server is None else str(effective(server, "device") or "")


def _first_drafts(name: str, requests: Sequence[RequestSample], contents: Sequence[str]) -> Iterator[Evidence]:
    share = first_share(requests, contents)
    if share is not None:
        yield figure(f"first draft accepted, {name}", share, "share")


def _alike(greedy: Sequence[RequestSample], sampled: Sequence[RequestSample]) -> tuple[int, int]:
    """Prompts whose first tokens are equal, and how many of them are equal to the end.

    The first token comes from the prefill, which draws on every device.
    """
    known = {item.prompt: item.output_ids for item in greedy}
    pairs = [(known.get(item.prompt), item.output_ids) for item in sampled]
    told = [(a, b) for a, b in pairs if a and b and min(len(a), len(b)) >= LEAST_TOKENS and a[:1] == b[:1]]
    return len(told), sum(all(x == y for x, y in zip(a, b, strict=False)) for a, b in told)
