"""K12 and K6: which states the running server feeds, beside those the drafter was trained on and those of the rule."""

import json
from collections.abc import Iterator, Sequence

from orchestrator.diagnosis.changed_states import Changed
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.inputs import Fed, Known
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count
from orchestrator.diagnosis.installed_ids import spelling_for
from orchestrator.diagnosis.recognised_states import SERVED, left_words, other_numbers
from orchestrator.diagnosis.sglang_config import eagle_block

TRAINED = Subject(check="K5", title="trainer's word against what is read best")
RESOLVER = Subject(check="K6", title="rule against running server")

IDENTIFIED = 0.2
"""Relative error up to which a served state is a captured one in another format: of one target, two neighbouring states
differ by 0.3 and more, one state in 16 bits from itself by about 0.01."""


def fed_signals(known: Known) -> Iterator[Signal]:
    """What the running server returned, or what its source says; none where there is neither."""
    yield from _trainers(known)
    fed, trained = known.fed, known.trained
    if fed is None:
        yield from _by_source(known)
        return
    rule = tuple(rule_results(known))
    words = [] if known.disputed is None or trained is None else [known.disputed, trained]
    if not all(_is_other(fed, word) for word in words):
        trained = None  # it feeds what one of the two proofs names, and neither is believed
    if fed.token_offset:
        way = "next" if fed.token_offset > 0 else "previous"
        text = f"each served state is that of the {way} token in the rows: rows or server are off by one token"
        needs = "the standalone test with rows compared to a fresh forward (`--capture-rows`)"
        evidence = _evidence(fed, trained)
        yield Signal(axis="fed", answer="open", results=(SERVED.cannot_tell(text, needs=needs, evidence=evidence),))
        return
    if trained is None:
        needs = "`--trained` with the states it was trained on, or a standalone test that reads them"
        lack = "not known" if known.disputed is None else "disputed"
        text = f"the server feeds {layers(fed.states, fed.changed)}; what the drafter was trained on is {lack}"
        yield Signal(
            axis="fed",
            answer="open",
            results=(SERVED.cannot_tell(text, needs=needs, evidence=_evidence(fed, trained)), *rule),
        )
        return
    yield _held_against(known, fed, trained, rule)


def _held_against(known: Known, fed: Fed, trained: tuple[int, ...], rule: tuple[CheckResult, ...]) -> Signal:
    """What the server feeds beside what the drafter was trained on."""
    if not fed.exact and fed.worst_error is not None and fed.worst_error > IDENTIFIED:
        return Signal(axis="fed", answer="unlike", results=(_unlike(fed, trained), *rule))
    odd = _in_other_numbers(fed, trained)
    if fed.states == trained and odd and odd[0].severity == "serious":
        return Signal(axis="fed", answer="changed", results=(*odd, *rule))
    if fed.states == trained:
        exactly = "exactly" if fed.exact else "to rounding"
        text = f"the running server feeds {layers(fed.states)}, {exactly} those that it was trained on"
        return Signal(
            axis="fed",
            answer="as_trained",
            results=(SERVED.passed(text, _evidence(fed, trained)), *odd, *rule),
        )
    if _is_other(fed, trained):
        return Signal(axis="fed", answer="other", results=(_other(known, fed, trained), *odd, *rule))
    answer: Answer = "unlike" if set(fed.states) == {None} else "partly"
    return Signal(axis="fed", answer=answer, results=(_unlike(fed, trained), *rule))


def _is_other(fed: Fed, trained: Sequence[int]) -> bool:
    """Whether a state that is surely a captured one is not the one it was trained on there."""
    identified = any(state is not None for state in fed.states)
    pairs = zip(fed.states, trained, strict=False)
    return identified and (
        len(fed.states) != len(trained) or any(state is not None and state != wanted for state, wanted in pairs)
    )


def _trainers(known: Known) -> Iterator[Signal]:
    """The trainer's word beside what was read; none where nobody said."""
    if known.word is None:
        return
    said, read = layers(known.word), known.disputed
    evidence = [Evidence(name="trained on, by its trainer", value=said)]
    if read is None:
        told = TRAINED.passed(f"trained on {said}, by its trainer", tuple(evidence))
        yield Signal(axis="trainer", answer="agrees", results=(told,))
        return
    held = known.offline.measured.result.rows.states if known.offline is not None else None
    missing = tuple(state for state in known.word if held is not None and state not in held)
    lack = f" ({layers(missing)} not in these rows)" if missing else ""
    text = f"`--trained` says {said}{lack}, and of what the rows hold it reads {layers(read)} best, and well"
    evidence.append(Evidence(name="states that it reads best", value=layers(read)))
    needs = "the word corrected (hidden_states indices: 0 = embed, i = output of layer i-1), or rows checked for labels"
    unsure = TRAINED.cannot_tell(text, needs=needs, evidence=tuple(evidence))
    yield Signal(axis="trainer", answer="contradicts", results=(unsure,))


def _by_source(known: Known) -> Iterator[Signal]:
    """Where the server was not asked: what the installed source captures, beside what was trained."""
    resolved, trained = known.resolved, known.trained
    if resolved is None or resolved.states is None or trained is None or known.disputed is not None:
        return
    rule = tuple(rule_results(known))
    if resolved.states == trained:
        yield Signal(axis="fed", answer="source_right", results=rule)
        return
    found = RESOLVER.finding(
        f"by the installed source fc is fed with {layers(resolved.states)} instead of {layers(trained)}",
        severity="serious",
        cause="wiring",
        evidence=(
            Evidence(name="captured by the installed source", value=layers(resolved.states)),
            Evidence(name="trained on", value=layers(trained)),
        ),
        remedy=spelled(known, tuple(trained)),
        refuted_by="the running server feeding the states that it was trained on",
    )
    yield Signal(axis="fed", answer="source_wrong", results=(found,))


def rule_results(known: Known) -> Iterator[CheckResult]:
    """K6: whether the installed source's rule names what the server really feeds."""
    resolved, fed = known.resolved, known.fed
    if resolved is None:
        return
    if resolved.states is None:
        needs = "the installed SGLang's source of the target's class, or the states of the running server"
        yield RESOLVER.cannot_tell("the installed source does not tell which states are captured", needs=needs)
        return
    text = f"SGLang {resolved.sglang_version or 'of unknown version'} captures {layers(resolved.states)} by its source"
    if fed is None or None in fed.states:
        needs = "the states of the running server (`run capture`)"
        yield RESOLVER.cannot_tell(f"{text}; the running server was not asked", needs=needs)
    elif fed.states == resolved.states:
        yield RESOLVER.passed(f"{text}, and the running server feeds the same")
    else:
        yield RESOLVER.finding(
            f"{text}, but the running server feeds {layers(fed.states)}",
            severity="minor",
            cause="engine",
            evidence=(Evidence(name="fed by the running server", value=layers(fed.states)),),
            remedy=("trust the running server; see that the source that was read is the one it runs",),
            refuted_by="another capture from the same server",
        )


def layers(states: Sequence[int | None], changed: Sequence[Changed | None] = ()) -> str:
    """e.g. `[embed, layer 3, layer 31 x 0.90]`, by HF `hidden_states` index; `?` is like none of the captured ones."""
    names = ["?" if state is None else "embed" if state == 0 else f"layer {state}" for state in states]
    for place, change in enumerate(changed):
        names[place] += "" if change is None else f" {change.words}"
    return f"[{', '.join(names)}]"


def _in_other_numbers(fed: Fed, trained: Sequence[int]) -> tuple[CheckResult, ...]:
    """The finding on states of the right layer and other numbers, if there are any."""
    found = [change for change in fed.changed if change is not None]
    if not found:
        return ()
    large, told = any(change.is_large for change in found), layers(fed.states, fed.changed)
    return (other_numbers(told, left_words(found), large=large, evidence=_evidence(fed, trained)),)


def _other(known: Known, fed: Fed, trained: Sequence[int]) -> CheckResult:
    return SERVED.finding(
        f"fc is fed with {layers(fed.states)} instead of {layers(trained)}{_or_else(known)}",
        severity="serious",
        cause="wiring",
        evidence=_evidence(fed, trained),
        remedy=("find out first which states it was trained on",)
        if known.disputed is not None
        else spelled(known, tuple(trained)),
        refuted_by="the states of the running server equal to those that it was trained on",
    )


def _or_else(known: Known) -> str:
    return "" if known.disputed is None else f", by its trainer, or of {layers(known.disputed)}, which it reads best"


def _unlike(fed: Fed, trained: Sequence[int]) -> CheckResult:
    return SERVED.finding(
        f"the server feeds {layers(fed.states)}: states like none of the captured ones, expected {layers(trained)}",
        severity="serious",
        cause="engine",
        evidence=_evidence(fed, trained),
        remedy=(
            "compare target, quantization and dtype of the capture with those that are served; a rotated or quantized "
            "target hands the drafter states in another basis: capture and train with that target",
        ),
        refuted_by="served states equal to rows captured from this very target",
    )


def spelled(known: Known, trained: tuple[int, ...]) -> tuple[str, ...]:
    """What to write so that these states are fed; the standalone test's own lines where it has them."""
    if known.offline is not None and known.offline.wiring.verdict in ("mis_wired", "cannot_serve"):
        return known.offline.wiring.fix
    found = spelling_for(trained, *known.target, known.source)
    if found.ids is None or found.needs is not None:
        lack = found.needs or found.problem
        return (f"name {layers(trained)} in the drafter's config.json in SGLang's numbering: {lack}",)
    return (f'set in the drafter\'s config.json: "eagle_config": {json.dumps(eagle_block(found.ids))}',)


def _evidence(fed: Fed, trained: Sequence[int] | None) -> tuple[Evidence, ...]:
    found = (
        Evidence(name="fed by the running server", value=layers(fed.states, fed.changed)),
        Evidence(name="trained on", value="not known" if trained is None else layers(trained)),
        count("tokens compared", fed.tokens),
        Evidence(name="states equal number by number", value="yes" if fed.exact else "no"),
    )
    if fed.worst_error is None:
        return found
    return (*found, Evidence(name="largest relative error of an identified state", value=fed.worst_error))
