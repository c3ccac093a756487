"""Served against predicted, in words and numbers (K12)."""

from dataclasses import replace

from orchestrator.compare.served import Draft
from orchestrator.diagnosis.decision.foretold import Compared
from orchestrator.diagnosis.decision.inputs import ServedSplit
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, figure

FORETOLD = Subject(check="K12", title="served against predicted")
LEAST_STEPS = 30
"""Verify steps below which nothing is called dead."""
WHERE = {"train": "training", "held-out": "held-out"}
BUNDLED = "bundled"
"""Source of a workload that came with the tool."""


def asked_words(source: str, one: ServedSplit) -> str:
    """Which prompts they are, where nothing was foretold of them; the bundled ones nobody named as held out."""
    return "bundled" if source == BUNDLED else WHERE[one.split]


def length_words(one: ServedSplit) -> str:
    """e.g. `accept length 2.83`."""
    length = None if one.acceptance is None else one.acceptance.length.value
    return "accept length unknown" if length is None else f"accept length {length:.2f}"


def numbers(found: Compared) -> str:
    """Both accept lengths, and how many requests are as foretold."""
    served, predicted = found.served.value or 0.0, found.predicted.value or 0.0
    many = "" if found.prompts == 1 else "s"
    prompts = f"{found.prompts} {WHERE[found.split]} prompt{many}"  # those of the workload that were captured as well
    return (
        f"accept length {served:.2f} served, {predicted:.2f} predicted on {prompts}, "
        f"{found.identical} of {found.requests} requests identical"
    )


def as_predicted(found: Compared) -> CheckResult:
    """As foretold, within the margin."""
    return FORETOLD.passed(f"{numbers(found)}: as predicted", evidence_of(found))


def differs(found: Compared) -> CheckResult:
    """In float32 neither as foretold nor surely less: what the server does with these requests is in doubt."""
    ways = f"{found.lower} lower, {found.higher} higher"
    return FORETOLD.cannot_tell(
        f"{numbers(found)} ({ways}), though in float32 the walk and the server are the same",
        needs="the benchmark once more, on a GPU with TF32 off on both sides; the same requests again are the engine's",
        evidence=evidence_of(found),
    )


def differing(found: Compared) -> tuple[CheckResult, ...]:
    """In float32 every request that differs is a finding."""
    if not found.exact or found.identical == found.requests:
        return ()
    ways = f"{found.lower} lower, {found.higher} higher"
    return (
        FORETOLD.finding(
            f"in float32 {found.requests - found.identical} of {found.requests} {WHERE[found.split]} requests differ "
            f"from their prediction ({ways}); {'; '.join(found.first)}",
            severity="minor",
            cause="engine",
            evidence=evidence_of(found),
            remedy=(
                "in float32 the walk and the server are the same, request by request: look at the first one above; "
                "on a GPU see that TF32 is off on both sides",
            ),
            refuted_by="the same histograms in another run",
        ),
    )


def apart(found: Compared, draft: Draft, *, dead: bool) -> CheckResult:
    """Surely less, or more, than foretold; `dead`: nothing is accepted."""
    lower = found.answer != "above"
    first = found.first_below
    where = (
        "" if not lower or first is None else f", from draft {first} on" if first > 1 else ", from the first draft on"
    )
    how = "; rounding sends requests both ways" if not found.exact and lower else ""
    text = (
        f"the server accepts {_how_much(found)} than the same weights, states and text give offline"
        f"{where}: {numbers(found)} ({found.lower} lower, {found.higher} higher{how})"
    )
    if found.exact:
        text += f"; {'; '.join(found.first[:1])}"
    if dead and lower:
        text = f"nothing that the drafter drafts is accepted: {text}"
    result = FORETOLD.finding(
        text,
        severity="fatal" if dead and lower else "serious",
        cause="engine",
        evidence=evidence_of(found),
        remedy=_remedies(first, draft) if lower else ("find out what the server feeds: `run capture`",),
        refuted_by="the served lengths equal to the predicted ones on the same prompts",
    )
    return replace(result, effect=-(found.difference.value or 0.0) if lower else None)


def _how_much(found: Compared) -> str:
    """With its size where that is within the margin."""
    size = f" by {abs(found.difference.value or 0.0):.3f}" if found.answer == "little_below" else ""
    return f"{'more' if found.answer == 'above' else 'less'}{size}"


def _remedies(first: int | None, draft: Draft) -> tuple[str, ...]:
    if first == 1 or first is None:
        return (
            "what reaches the drafter at its first step is not what was captured: compare the served states "
            "(`run capture`), dtype, quantization and parallelism (tp, dp attention, ep) with those of the capture",
        )
    return (
        f"the first draft is as foretold, draft {first} of {draft.num_steps or '?'} is not: look at what is fed back "
        "between steps (norm_output), at the drafter's KV cache (dtype, attention backend), and at its positions",
    )


def dead(one: ServedSplit, source: str) -> CheckResult:
    """Nothing is accepted, and nothing was foretold; `source` of the workload."""
    found = one.acceptance
    length = None if found is None else found.length
    steps = 0 if found is None else found.verify_steps
    evidence = () if length is None else (figure("accept length", length, "tokens"),)
    return FORETOLD.finding(
        f"nothing that the drafter drafts is accepted on {asked_words(source, one)} prompts: {length_words(one)} over "
        f"{steps} verify steps",
        severity="fatal",
        cause="engine",
        evidence=(*evidence, count("verify steps", steps)),
        remedy=("ask the running server what it feeds the drafter (`run capture`), and read its log for the drafter",),
        refuted_by="an accept length well above 1 on the same prompts",
    )


def evidence_of(found: Compared) -> tuple[Evidence, ...]:
    """The comparison in numbers."""
    depths = [pair for pair in found.depths if min(pair.served.n, pair.predicted.n) >= LEAST_STEPS]
    return (
        figure(f"accept length, served minus predicted ({found.split}, by prompt)", found.difference, "tokens"),
        count("requests identical to their prediction", found.identical, found.requests),
        figure("accept length, served", found.served, "tokens"),
        figure("accept length, predicted", found.predicted, "tokens"),
        *(
            figure(f"draft {pair.depth} accepted given those before, served minus predicted", pair.difference, "share")
            for pair in depths
        ),
        *((count("requests held against nothing: other text", found.other_text),) if found.other_text else ()),
        *((count("requests held against nothing: not greedy", found.not_greedy),) if found.not_greedy else ()),
    )
