"""K18: acceptance by context length and output position; by server age, and K19, beside them.

Text differs with context and position by itself, so those two only ever note; but where the same weights over the same
text do not fall offline, it is the server that does. A prompt, or a conversation, is one sample however often asked.
"""

import json
from collections.abc import Iterator, Sequence

from orchestrator.compare.served_acceptance import samples_of
from orchestrator.compare.stats import MIN_ROWS, Estimate, paired_difference, unpaired_difference
from orchestrator.diagnosis.decision.falls import judged
from orchestrator.diagnosis.decision.foretold import compare
from orchestrator.diagnosis.decision.inputs import Known, Offline
from orchestrator.diagnosis.decision.server_age import AGED, by_age
from orchestrator.diagnosis.finding import CheckResult, Severity, Subject, count, figure
from orchestrator.diagnosis.samples import has_drafts, length_of, sample_of, sums_by_sample
from orchestrator.diagnosis.served_sampled import SAMPLING
from remote_payload.schema.bench import RequestSample

CONTEXT = Subject(check="K18", title="acceptance by context length")
POSITION = Subject(check="K18", title="acceptance by output position")
LARGE = 0.3
"""Accept length by which a part must surely fall before it is worth a finding."""
LEAST_STEPS = 8
"""Verify steps of an answer that is cut in two."""
LEAST_PROMPTS = 5
SPREAD = 1.5
"""The longest third's shortest prompt, by the shortest third's longest, from which on they differ in length."""
_NOT_SAMPLED = SAMPLING.cannot_tell("one temperature was served", needs="`diagnose --sampled`, `run bench --sampled 1`")
_MINOR: Severity = "minor"
_NOTE: Severity = "note"
_LONGER = "see max_position_embeddings and rope of the drafter, and train on contexts as long as served"
_LATER = "train on answers as long as those that are served"


def drift_checks(known: Known) -> Iterator[CheckResult]:
    """Four answers on the speculating side at the lowest load; none where nothing was served."""
    served = known.served
    if served is None:
        return
    loads = [load for load in served.figures.loads if load.side == "spec" and load.acceptance is not None]
    if not loads:
        return
    lowest = min(loads, key=lambda item: (item.concurrency is None, item.concurrency or 0))
    contents = samples_of(served.result.workload)
    longest = longest_context(known.offline)
    yield by_context(lowest.requests, longest, contents, beside_foretold(known, longest))
    yield by_position(lowest.requests, contents)
    yield by_age(lowest, greedy=served.result.workload.temperature == 0, contents=contents, known=known)
    yield from [item for item in served.diagnosis.results if item.check == SAMPLING.check] or [_NOT_SAMPLED]


def by_context(
    requests: Sequence[RequestSample],
    longest: int | None,
    contents: Sequence[str] = (),
    beside: Estimate | None = None,
) -> CheckResult:
    """The longest third of the prompts against the shortest; `longest`: what the drafter's config allows.

    `beside`: served minus foretold, of the requests beyond `longest` minus those within; None = not known.
    """
    told = [item for item in requests if item.prompt_tokens is not None and has_drafts(item)]
    beyond = [] if longest is None else [item for item in told if _total(item) > longest]
    if beyond and longest is not None:
        within = [item for item in told if _total(item) <= longest]
        sums = (length_of(sums_by_sample(some, contents)) for some in (beyond, within))
        return _beyond((len(beyond), len(told)), longest, unpaired_difference(*sums), beside)
    tokens = {item.prompt: item.prompt_tokens or 0 for item in told}
    ordered = sorted(tokens, key=lambda prompt: tokens[prompt])
    third = len(ordered) // 3
    if third < LEAST_PROMPTS or tokens[ordered[-third]] <= SPREAD * tokens[ordered[third - 1]]:
        needs = f"prompts of clearly different lengths, {3 * LEAST_PROMPTS} or more"
        return CONTEXT.cannot_tell("the prompts are too few or too alike in length", needs=needs)
    sides = [
        length_of(sums_by_sample((item for item in told if item.prompt in part), contents))
        for part in (set(ordered[-third:]), set(ordered[:third]))
    ]
    limits = (
        count("longest prompt of the shortest third", tokens[ordered[third - 1]], unit="tokens"),
        count("shortest prompt of the longest third", tokens[ordered[-third]], unit="tokens"),
    )
    what = "the longest third of the prompts minus the shortest"
    return judged(CONTEXT, unpaired_difference(*sides), what, (_MINOR, LARGE, _LONGER), limits)


def beside_foretold(known: Known, longest: int | None) -> Estimate | None:
    """Served minus foretold, requests beyond `longest` minus those within; None = too few were foretold."""
    served = known.served
    for one in () if served is None or longest is None else served.splits:
        predicted = known.foretold(one.split, "as served")
        if predicted is None or served is None or longest is None:
            continue
        told = [item for item in one.requests if item.prompt_tokens is not None]
        parts = [[item for item in told if (_total(item) > longest) is beyond] for beyond in (True, False)]
        steps = served.figures.draft.num_steps
        found = [compare(predicted, some, steps, exact=False) for some in parts]
        if min(side.prompts for side in found) >= MIN_ROWS:
            return unpaired_difference(*(side.difference for side in found))
    return None


def _beyond(counts: tuple[int, int], longest: int, difference: Estimate, beside: Estimate | None) -> CheckResult:
    """`counts` requests, of all, longer than the drafter's config allows; a cause only where offline they do not fall.

    Longer text may be harder text, so that they accept less says nothing by itself.
    """
    falls = difference.high is not None and difference.high < 0
    served = falls and beside is not None and beside.high is not None and beside.high < 0
    served = served and beside is not None and (beside.value or 0.0) < -AGED
    shared = falls and beside is not None and beside.low is not None and beside.low > -AGED
    less = f", and accept {-(difference.value or 0.0):.2f} less" if falls else ""
    why = ", which the same weights do not offline" if served else ", as was foretold of their text" if shared else ""
    return CONTEXT.finding(
        f"{counts[0]} of {counts[1]} requests are longer than the {longest} tokens that the drafter's config "
        f"allows{less}{why}",
        severity="serious" if served else "note" if shared else "minor",
        cause="engine" if served else "generalization",
        evidence=(
            count("requests beyond it", *counts),
            figure("accept length, beyond it minus within", difference, "tokens"),
            *(() if beside is None else (figure("the same, served minus foretold", beside, "tokens"),)),
        ),
        remedy=("raise max_position_embeddings only if it was trained so far; else train on contexts so long",),
        refuted_by="the same accept length on the longest requests",
    )


def by_position(requests: Sequence[RequestSample], contents: Sequence[str] = ()) -> CheckResult:
    """Later against earlier verify steps of the same answers, where each step came in a chunk of its own."""
    halves: dict[str, list[tuple[int, int]]] = {}
    for item in requests:
        if item.verify_steps and len(item.chunk_tokens) == item.verify_steps + 1 and item.verify_steps >= LEAST_STEPS:
            steps = item.chunk_tokens[1:-1]  # the first is the prefill's, the last may be cut
            for part in (steps[len(steps) // 2 :], steps[: len(steps) // 2]):
                halves.setdefault(sample_of(item, contents), []).append((sum(part), len(part)))
    if len(halves) < LEAST_PROMPTS:
        needs = f"{LEAST_PROMPTS} prompts or more whose answers came a verify step a chunk (stream_interval 1)"
        return POSITION.cannot_tell("answers do not tell which step yielded how much", needs=needs)
    late, early = (
        ([sum(row[0] for row in rows[side::2]) for rows in halves.values()],
         [sum(row[1] for row in rows[side::2]) for rows in halves.values()])
        for side in (0, 1)
    )  # fmt: skip
    what = "the later half of each answer minus the earlier"
    return judged(POSITION, paired_difference(late, early), what, (_NOTE, LARGE, _LATER))


def longest_context(offline: Offline | None) -> int | None:
    """`max_position_embeddings` of the drafter's config.json; None = not told."""
    if offline is None:
        return None
    try:
        value = json.loads(offline.measured.result.checkpoint.config_json)
    except ValueError:
        return None
    found = value.get("max_position_embeddings") if isinstance(value, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _total(item: RequestSample) -> int:
    return (item.prompt_tokens or 0) + (item.completion_tokens or 0)
