"""What names states without reading them: SGLang's rule beside the running server, and the labels of the rows.

A served state is named by the captured one that it equals, so by the rows' labels; the rule counts the target's layers.
Where the two agree both are right. Where they do not, either may be off, and no ids are spelled on them.
"""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.diagnosis.checks.capture import CAPTURE
from orchestrator.diagnosis.contest import is_moved
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.fed_standing import Stands, is_other, stands
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.same_weights import captured_model
from orchestrator.diagnosis.decision.state_words import layers
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.mis_wired import states_text

RULE = Subject(check="K6", title="states by the rule, by the source and by the server")
TABLE, SOURCE = "the rule by table", "the installed source"
LABELS = Subject(check="capture", title="labels of the rows")


def rule_signals(known: Known) -> Iterator[Signal]:
    """Whether the rule names what the server returned, and whether anything but their label says what the rows hold."""
    rules = _rules(known)
    fed = _returned(known)
    if fed is not None and rules:
        yield from _beside_server(known, fed, rules)
    elif len(set(rules.values())) > 1:
        words = "; ".join(f"{name} captures {layers(states)}" for name, states in rules.items())
        needs = "the states of the running server (`run capture`)"
        yield Signal(axis="rule", answer="split", results=(RULE.cannot_tell(words, needs=needs),))
    if known.offline is not None and known.offline.measured.result.rows.states is not None:
        yield _labels(known, fed, rules)


def contradicts(known: Known) -> bool:
    """Whether the running server returned, by the labels of the rows, other states than any rule names."""
    fed, rules = _returned(known), _rules(known)
    return fed is not None and bool(rules) and all(is_other(fed, states) for states in rules.values())


def is_stale(known: Known) -> bool:
    """Whether the running server returned what its source names, and the table, another version's, names others."""
    fed, rules = _returned(known), _rules(known)
    return fed is not None and None not in fed and rules.get(SOURCE) == fed and rules.get(TABLE, fed) != fed


def as_served(known: Known, signal: Signal) -> Signal:
    """The standalone test's answer on the feeding, by what is fed: its table may be another version's."""
    decided = ("as_trained", "mis_fed", "open", "uncompared")
    if signal.axis != "feeding" or signal.answer not in decided or known.fed is None or not is_stale(known):
        return signal
    answers: Mapping[Stands, Answer] = {"trained": "as_trained", "other": "mis_fed", "alike": "open"}
    answer = answers.get(stands(known, known.fed.states), "uncompared")
    text = f"fed {layers(known.fed.states)}, by the running server and its source, whatever the table says"
    needs = "rows that hold what is fed and tell it from others"
    result = RULE.passed(text) if answer in ("as_trained", "mis_fed") else RULE.cannot_tell(text, needs=needs)
    return Signal(axis="feeding", answer=answer, results=(result,))


def _rules(known: Known) -> dict[str, tuple[int, ...]]:
    """States by who names them without a server: the table of rules, and the source that is installed."""
    found: dict[str, tuple[int, ...]] = {}
    if known.offline is not None and known.offline.measured.result.declared.captured:
        found[TABLE] = known.offline.measured.result.declared.captured
    if known.resolved is not None and known.resolved.states:
        found[SOURCE] = known.resolved.states
    return found


def _returned(known: Known) -> tuple[int | None, ...] | None:
    """What the server of this very drafter returned, as far as it is known; None = nothing is."""
    model = captured_model(known)
    if known.fed is None or (model is not None and model.answer != "same") or not any(_known(known.fed.states)):
        return None
    return known.fed.states


def _known(states: Sequence[int | None]) -> list[bool]:
    return [state is not None for state in states]


def _beside_server(known: Known, fed: tuple[int | None, ...], rules: dict[str, tuple[int, ...]]) -> Iterator[Signal]:
    if contradicts(known):
        words = "; ".join(f"{name} captures {layers(states)}" for name, states in rules.items())
        text = f"{words}, and the running server feeds {layers(fed)}, by the labels of the rows"
        needs = "the rows compared to a fresh forward: either their labels are off, or the rule is another version's"
        evidence = (Evidence(name="fed by the running server", value=layers(fed)),)
        found = RULE.cannot_tell(text, needs=needs, evidence=evidence)
        yield Signal(axis="rule", answer="contradicts", results=(found,))
    elif None not in fed:
        stale = is_stale(known)
        named = "as the installed source names, and not the table" if stale else "as SGLang's rule says"
        text = f"the running server feeds {layers(fed)}, {named}"
        yield Signal(axis="rule", answer="stale" if stale else "agrees", results=(RULE.passed(text),))


def _labels(known: Known, fed: tuple[int | None, ...] | None, rules: dict[str, tuple[int, ...]]) -> Signal:
    assert known.offline is not None
    compared = [item for item in known.offline.diagnosis.results if item.title == CAPTURE.title]
    if any(item.outcome == "passed" for item in compared):
        return Signal(
            axis="labels",
            answer="checked",
            results=(LABELS.passed("the rows hold what their labels say, by a fresh forward"),),
        )
    # only a layer can be miscounted: the embedding output is 0 in every numbering
    by_server = fed is not None and any(fed) and any(not is_other(fed, states) for states in rules.values())
    if by_server:
        return Signal(
            axis="labels",
            answer="checked",
            results=(LABELS.passed("the rows hold what their labels say, by the states of the server"),),
        )
    answer: Answer = "doubtful" if is_moved(known.offline.measured) else "unchecked"
    return Signal(axis="labels", answer=answer, results=(_unchecked(known, is_doubtful=answer == "doubtful"),))


def _unchecked(known: Known, *, is_doubtful: bool) -> CheckResult:
    assert known.offline is not None
    held = states_text(known.offline.measured.result.rows.states)
    needs = "the rows compared to a fresh forward (`--capture-rows`), or the states of the running server"
    if not is_doubtful:
        return LABELS.cannot_tell(f"that the rows hold {held} is said, not measured", needs=needs)
    best, captured = known.offline.wiring.best.facts.states, known.offline.measured.result.declared.captured
    text = (
        f"SGLang would feed {states_text(captured)}, and the drafter reads best what is labelled {states_text(best)}: "
        "either config.json counts layers otherwise, or the labels of the rows do, and then it is fed well"
    )
    return LABELS.cannot_tell(text, needs=needs)
