"""What was served as answers: training and held-out prompts beside what was foretold, and the effective arguments."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.compare.served import effective
from orchestrator.compare.statistics.alike import LEAST_EQUAL
from orchestrator.compare.stats import MIN_ROWS
from orchestrator.diagnosis.decision.arguments_axis import arguments_signal
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.foretold import MARGIN, Compared, compare
from orchestrator.diagnosis.decision.foretold_words import (
    FORETOLD,
    LEAST_STEPS,
    apart,
    as_predicted,
    asked_words,
    dead,
    differing,
    differs,
    evidence_of,
    length_words,
    numbers,
)
from orchestrator.diagnosis.decision.inputs import SPLITS, Known, Predicted, Served, ServedSplit
from orchestrator.diagnosis.decision.same_weights import doubted, other_words, weights_results
from orchestrator.diagnosis.decision.state_words import layers
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_engine import SIMULATED, simulates
from orchestrator.diagnosis.served_measurement import NOT_WORKING

FLOAT32 = ("float32", "float")


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
    found = compare(predicted, split.requests, served.figures.draft.num_steps, exact=is_float32(served))
    return replace(found, exact=False) if found.answer in ("differs", "little_below") and _draws(known) else found


def _draws(known: Known) -> bool:
    """Whether a tensor is served at random: no walk foretells which of its drafts are right by chance."""
    shared = () if known.offline is None else known.offline.measured.result.checkpoint.shared
    return any(item.served == "random" for item in shared)


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
            return _signal("as_predicted", as_predicted(found))
        if found.answer == "differs":
            return _signal("differs", differs(found), *differing(found))
        if found.answer in ("below", "little_below", "above"):
            return _signal(found.answer, apart(found, served.figures.draft, dead=is_dead(one)))
        needs = f"{MIN_ROWS} prompts or more, or more of them: an interval within ±0.1 tokens decides"
        unsure = FORETOLD.cannot_tell(numbers(found), needs=needs, evidence=evidence_of(found))
        return _signal("open", unsure, *differing(found))
    tested = _as_tested(known, served, one)
    if tested is not None:
        return _signal("as_tested", tested)
    other = _as_other(known, served, one)
    if other is not None:
        return _signal("as_other", other)
    source = served.result.workload.source
    if is_dead(one) and served.figures.tells_acceptance and not simulates(served.result):
        return _signal("dead", dead(one, source))
    needs = "the standalone test over rows of prompt and served output, walked with the served number of steps"
    words = f"{length_words(one)} on {asked_words(source, one)} prompts, and {reason or 'nothing was foretold of them'}"
    return _signal("untold", FORETOLD.cannot_tell(words, needs=needs))


def is_dead(one: ServedSplit) -> bool:
    """Whether nothing is accepted, over enough verify steps to say so."""
    found = one.acceptance
    return found is not None and found.verify_steps >= LEAST_STEPS and (found.length.value or 9.0) <= NOT_WORKING


def _as_other(known: Known, served: Served, one: ServedSplit) -> CheckResult | None:
    """The answers are, one by one, what was foretold of states that the server is said not to feed; None = no."""
    if known.fed is None or _unusable(served, one) is not None or other_words(known):
        return None
    for predicted in known.predicted:
        if predicted.split != one.split or _other_states(known, predicted) is None or predicted.states is None:
            continue
        found = compare(predicted, one.requests, served.figures.draft.num_steps, exact=is_float32(served))
        if _is_proof(found):
            text = f"{numbers(found)}, of a drafter fed {layers(predicted.states)}; the capture says that "
            text += f"{layers(known.fed.states)} are fed"
            needs = "the capture once more, on the server that is measured"
            return FORETOLD.cannot_tell(text, needs=needs, evidence=evidence_of(found))
    return None


def _is_proof(found: Compared) -> bool:
    """Whether requests, one by one, came as only what was walked gives them."""
    tells = (found.predicted.value or 0.0) > 1 + MARGIN  # of a walk that accepts nothing all drafters are alike
    return tells and found.prompts >= LEAST_EQUAL and found.identical == found.requests


def _as_tested(known: Known, served: Served, one: ServedSplit) -> CheckResult | None:
    """The answers are, one by one, those of the tested weights, where other ones are said to be served; None = no."""
    said, predicted = other_words(known), known.foretold(one.split, "as served")
    if said is None or predicted is None or _unusable(served, one) is not None or _other_states(known, predicted):
        return None
    found = compare(predicted, one.requests, served.figures.draft.num_steps, exact=is_float32(served))
    if not _is_proof(found):
        return None
    text = f"{numbers(found)}, of the weights that were tested; and yet {said}"
    needs = "test and benchmark once more, one after the other: a folder may have been written anew between them"
    return FORETOLD.cannot_tell(text, needs=needs, evidence=evidence_of(found))


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
    if not served.figures.tells_acceptance:
        return f"the run is no measurement ({served.diagnosis.verdict})"
    if one.acceptance is None:
        return "no answer tells of verify steps"
    if simulates(served.result):
        return f"the accept length is simulated ({SIMULATED.title})"
    if temperature > 0:
        return f"sampling at temperature {temperature:g} follows no walk"
    return "trees and adaptive steps follow no walk" if draft.eagle_topk not in (None, 1) or draft.adaptive else None
