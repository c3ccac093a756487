"""K12 and K6: which states the running server feeds, beside those the drafter was trained on and those of the rule."""

import json
from collections.abc import Iterator, Sequence

from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.fed_standing import Stands, is_other, stands
from orchestrator.diagnosis.decision.inputs import Fed, Known
from orchestrator.diagnosis.decision.rule_axis import contradicts
from orchestrator.diagnosis.decision.state_words import layers
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
    if not all(is_other(fed.states, word) for word in words):
        trained = None  # it feeds what one of the two proofs names, and neither is believed
    if fed.token_offset:
        way = "next" if fed.token_offset > 0 else "previous"
        text = f"each served state is that of the {way} token in the rows: rows or server are off by one token"
        needs = "the standalone test with rows compared to a fresh forward (`--capture-rows`)"
        evidence = _evidence(fed, trained)
        yield Signal(axis="fed", answer="shifted", results=(SERVED.cannot_tell(text, needs=needs, evidence=evidence),))
        return
    by_rule = known.offline is not None and fed.states == known.offline.measured.result.declared.captured
    if trained is None and (known.disputed is not None or by_rule or stands(known, fed.states) == "open"):
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


def _held_against(known: Known, fed: Fed, trained: tuple[int, ...] | None, rule: tuple[CheckResult, ...]) -> Signal:
    """What the server feeds beside what the drafter was trained on, or what it reads best."""
    if not fed.exact and fed.worst_error is not None and fed.worst_error > IDENTIFIED:
        return Signal(axis="fed", answer="unlike", results=(_unlike(fed, trained), *rule))
    odd = _in_other_numbers(fed, trained)
    how = stands(known, fed.states)
    if how == "trained" and odd and odd[0].severity == "serious":
        return Signal(axis="fed", answer="changed", results=(*odd, *rule))
    if how == "trained":
        exactly = "exactly" if fed.exact else "to rounding"
        text = f"the running server feeds {layers(fed.states)}, {exactly} those that it was trained on"
        return Signal(
            axis="fed",
            answer="as_trained",
            results=(SERVED.passed(text, _evidence(fed, trained)), *odd, *rule),
        )
    if how in ("other", "said"):
        return Signal(axis="fed", answer=how, results=(_other(known, fed, trained, how), *odd, *rule))
    if trained is not None and not is_other(fed.states, trained):
        answer: Answer = "unlike" if set(fed.states) == {None} else "partly"
        return Signal(axis="fed", answer=answer, results=(_unlike(fed, trained), *rule))
    return Signal(axis="fed", answer="open" if how == "open" else "alike", results=(_undecided(known, fed, how), *rule))


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
    if known.fed is not None and known.fed.states == read:
        text += f"; the running server feeds what is labelled {layers(read)}: fed well, and word or labels are off"
    unsure = TRAINED.cannot_tell(text, needs=needs, evidence=tuple(evidence))
    yield Signal(axis="trainer", answer="contradicts", results=(unsure,))


def _by_source(known: Known) -> Iterator[Signal]:
    """Where the server was not asked: what the installed source captures, beside what was trained."""
    resolved, trained = known.resolved, known.trained
    if resolved is None or resolved.states is None or known.disputed is not None:
        return
    how = stands(known, resolved.states)
    if how == "trained":
        yield Signal(axis="fed", answer="source_right", results=tuple(rule_results(known)))
        return
    if how not in ("other", "said") or trained is None:
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


def _in_other_numbers(fed: Fed, trained: Sequence[int] | None) -> tuple[CheckResult, ...]:
    """The finding on states of the right layer and other numbers, if there are any."""
    found = [change for change in fed.changed if change is not None]
    if not found:
        return ()
    large, told = any(change.is_large for change in found), layers(fed.states, fed.changed)
    return (other_numbers(told, left_words(found), large=large, evidence=_evidence(fed, trained)),)


def _other(known: Known, fed: Fed, trained: tuple[int, ...] | None, how: Stands) -> CheckResult:
    instead = "others, which it surely reads better" if trained is None else layers(trained)
    by_word = ", by its trainer's word alone" if how == "said" else ""
    remedy: tuple[str, ...] = ("find out first which states it was trained on",)
    if contradicts(known):
        remedy = (
            "find out first which is off, the rule by which config.json was read or the labels of the rows: ids by "
            "that rule mend nothing",
        )
    elif trained is not None and known.disputed is None:
        remedy = spelled(known, tuple(trained))
    elif trained is None and known.offline is not None and known.offline.wiring.verdict == "mis_wired":
        remedy = known.offline.wiring.fix
    return SERVED.finding(
        f"fc is fed with {layers(fed.states)} instead of {instead}{by_word}{_or_else(known)}",
        severity="serious",
        cause="wiring",
        evidence=_evidence(fed, trained),
        remedy=remedy,
        refuted_by="the states of the running server equal to those that it was trained on",
    )


def _undecided(known: Known, fed: Fed, how: Stands) -> CheckResult:
    test = known.offline
    best = None if test is None or test.contest is None else test.contest.best
    text = f"the running server feeds {layers(fed.states)}, and the drafter reads {layers(best or ())} best"
    if how == "alike":
        text = f"{text}; what is fed it reads as well, as far as these rows tell"
        if fed.states == best:
            text = f"the running server feeds {layers(fed.states)}, which the drafter reads best, and others as well"
        return SERVED.cannot_tell(text, needs="more rows, or `--trained`", evidence=_evidence(fed, None))
    needs = "rows that hold what is fed as well, with labels, or `--trained`"
    return SERVED.cannot_tell(f"{text}: the two were not compared", needs=needs, evidence=_evidence(fed, None))


def _or_else(known: Known) -> str:
    return "" if known.disputed is None else f", by its trainer, or of {layers(known.disputed)}, which it reads best"


def _unlike(fed: Fed, trained: Sequence[int] | None) -> CheckResult:
    wanted = "" if trained is None else f", expected {layers(trained)}"
    return SERVED.finding(
        f"the server feeds {layers(fed.states)}: states like none of the captured ones{wanted}",
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
    wiring = None if known.offline is None else known.offline.wiring
    own = wiring is not None and wiring.verdict in ("mis_wired", "cannot_serve") and wiring.spelling is not None
    if wiring is not None and own and wiring.best.facts.states == trained:
        return wiring.fix
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
