"""What was served as answers: training and held-out prompts beside what was foretold, and the effective arguments."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.compare.served import Draft, effective
from orchestrator.compare.stats import MIN_ROWS
from orchestrator.diagnosis.decision.arguments_axis import arguments_signal
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.foretold import Compared, compare
from orchestrator.diagnosis.decision.inputs import SPLITS, Known, Predicted, Served, ServedSplit
from orchestrator.diagnosis.decision.same_weights import doubted, other_words, weights_results
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, figure
from orchestrator.diagnosis.served_engine import SIMULATED, simulates
from orchestrator.diagnosis.served_measurement import NOT_WORKING

FORETOLD = Subject(check="K12", title="served against predicted")
LEAST_STEPS = 30
"""Verify steps below which nothing is called dead."""
FLOAT32 = ("float32", "float")
WHERE = {"train": "training", "held-out": "held-out"}


def served_signals(known: Known) -> Iterator[Signal]:
    """Up to three answers; none where nothing was served."""
    served = known.served
    if served is None:
        return
    found = []
    for split, axis in zip(SPLITS, ("served_train", "served_heldout"), strict=True):
        one = served.split(split)
        if one is not None:
            told = replace(
                _split(known, served, one), axis="served_train" if axis == "served_train" else "served_heldout"
            )
            found.append(doubted(known, told))
    yield from found
    yield arguments_signal(served, weights_results(known, found))


def compared(known: Known, split: ServedSplit) -> Compared | None:
    """One split's requests beside what was foretold of them as served; None = nothing was, or not of these states."""
    served, predicted = known.served, known.foretold(split.split, "as served")
    if served is None or predicted is None or _other_states(known, predicted) is not None or other_words(known):
        return None
    return compare(predicted, split.requests, served.figures.draft.num_steps, exact=is_float32(served))


def is_float32(served: Served) -> bool:
    """Whether every speculating server computed in float32, unquantized."""
    servers = [server for server in served.result.servers if server.side == "spec"]
    return bool(servers) and all(
        effective(server, "dtype") in FLOAT32 and effective(server, "quantization") is None for server in servers
    )


def _other_states(known: Known, predicted: Predicted) -> str | None:
    """Why a prediction is not of what the server feeds; None = as far as is known it is."""
    fed = None if known.fed is None else known.fed.states
    if fed is None or predicted.states is None or None in fed or fed == predicted.states:
        return None
    return f"foretold of the states {list(predicted.states)}, and the server feeds {list(fed)}"


def _split(known: Known, served: Served, one: ServedSplit) -> Signal:
    found = compared(known, one)
    reason = _no_prediction(known, served, one)
    if found is not None and reason is None:
        if found.answer == "as_predicted":  # also where nothing is accepted: that was foretold
            return _signal("as_predicted", _as_predicted(found), *_differing(found))
        if is_dead(one):
            return _signal("dead", _dead(one))
        if found.answer in ("below", "above"):
            return _signal(found.answer, _apart(found, served.figures.draft))
        needs = f"{MIN_ROWS} prompts or more, or more of them: an interval within ±0.1 tokens decides"
        unsure = FORETOLD.cannot_tell(_numbers(found), needs=needs, evidence=_evidence(found))
        return _signal("open", unsure, *_differing(found))
    if is_dead(one) and served.figures.valid and not simulates(served.result):
        return _signal("dead", _dead(one))
    needs = "the standalone test over rows of prompt and served output, walked with the served number of steps"
    words = f"{_length_words(one)} on {WHERE[one.split]} prompts, and {reason or 'nothing was foretold of them'}"
    return _signal("untold", FORETOLD.cannot_tell(words, needs=needs))


def is_dead(one: ServedSplit) -> bool:
    """Whether nothing is accepted, over enough verify steps to say so."""
    found = one.acceptance
    return found is not None and found.verify_steps >= LEAST_STEPS and (found.length.value or 9.0) <= NOT_WORKING


def _signal(answer: Answer, *results: CheckResult) -> Signal:
    return Signal(axis="served_train", answer=answer, results=results)


def _no_prediction(known: Known, served: Served, one: ServedSplit) -> str | None:
    """Why these answers are held against no prediction; None = they are."""
    if (unusable := _unusable(served, one) or other_words(known)) is not None:
        return unusable
    predicted = known.foretold(one.split, "as served")
    if predicted is None:
        return "nothing was foretold of them"
    if (other := _other_states(known, predicted)) is not None:
        return other
    found = compared(known, one)
    return "no request's output is that of a row that was walked" if found is None or not found.requests else None


def _unusable(served: Served, one: ServedSplit) -> str | None:
    """Why no walk foretells such answers."""
    draft, temperature = served.figures.draft, served.result.workload.temperature
    if not served.figures.valid:
        return f"the run is no measurement ({served.diagnosis.verdict})"
    if one.acceptance is None:
        return "no answer tells of verify steps"
    if simulates(served.result):
        return f"the accept length is simulated ({SIMULATED.title})"
    if temperature > 0:
        return f"sampling at temperature {temperature:g} follows no walk"
    return "trees and adaptive steps follow no walk" if draft.eagle_topk not in (None, 1) or draft.adaptive else None


def _length_words(one: ServedSplit) -> str:
    length = None if one.acceptance is None else one.acceptance.length.value
    return "accept length unknown" if length is None else f"accept length {length:.2f}"


def _numbers(found: Compared) -> str:
    served, predicted = found.served.value or 0.0, found.predicted.value or 0.0
    return (
        f"accept length {served:.2f} served, {predicted:.2f} predicted on {WHERE[found.split]} prompts, "
        f"{found.identical} of {found.requests} requests identical"
    )


def _as_predicted(found: Compared) -> CheckResult:
    return FORETOLD.passed(f"{_numbers(found)}: as predicted", _evidence(found))


def _differing(found: Compared) -> tuple[CheckResult, ...]:
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
            evidence=_evidence(found),
            remedy=(
                "in float32 the walk and the server are the same, request by request: look at the first one above; "
                "on a GPU see that TF32 is off on both sides",
            ),
            refuted_by="the same histograms in another run",
        ),
    )


def _apart(found: Compared, draft: Draft) -> CheckResult:
    lower = found.answer == "below"
    first = found.first_below
    where = (
        "" if not lower or first is None else f", from draft {first} on" if first > 1 else ", from the first draft on"
    )
    how = "; rounding sends requests both ways" if not found.exact and lower else ""
    text = (
        f"the server accepts {'less' if lower else 'more'} than the same weights, states and text give offline"
        f"{where}: {_numbers(found)} ({found.lower} lower, {found.higher} higher{how})"
    )
    if found.exact:
        text += f"; {'; '.join(found.first[:1])}"
    result = FORETOLD.finding(
        text,
        severity="serious",
        cause="engine",
        evidence=_evidence(found),
        remedy=_remedies(first, draft) if lower else ("find out what the server feeds: `run capture`",),
        refuted_by="the served lengths equal to the predicted ones on the same prompts",
    )
    return replace(result, effect=-(found.difference.value or 0.0) if lower else None)


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


def _dead(one: ServedSplit) -> CheckResult:
    found = one.acceptance
    length = None if found is None else found.length
    steps = 0 if found is None else found.verify_steps
    evidence = () if length is None else (figure("accept length", length, "tokens"),)
    return FORETOLD.finding(
        f"nothing that the drafter drafts is accepted on {WHERE[one.split]} prompts: {_length_words(one)} over "
        f"{steps} verify steps",
        severity="fatal",
        cause="engine",
        evidence=(*evidence, count("verify steps", steps)),
        remedy=("ask the running server what it feeds the drafter (`run capture`), and read its log for the drafter",),
        refuted_by="an accept length well above 1 on the same prompts",
    )


def _evidence(found: Compared) -> tuple[Evidence, ...]:
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
