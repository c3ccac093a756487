"""What a capture says: which states SGLang feeds the drafter (K12), and whether its source's rule says the same (K6).

States are HF `hidden_states` indices: 0 = embedding output, i = output of layer i-1.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.effective_capture import Effective, names, resolve
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.installed_ids import spell_installed
from orchestrator.diagnosis.sglang_config import eagle_block
from orchestrator.diagnosis.sglang_ids import spell
from remote_payload.schema.capture import CaptureResult, ServedState, StateMatch

SERVED = Subject(check="K12", title="states that the server feeds")
RULE = Subject(check="K6", title="rule of the installed source against the server")
CLOSE = 0.1
"""|served - known| / |known| of the same state: bfloat16 gives 0.5 to 5 %, growing with depth."""
APART = 2.0
"""Times the nearest's error that the next nearest must be off: else either could be meant."""
LEAST_TOKENS = 32
CaptureVerdict = Literal[
    "not_returned", "as_trained", "other_states", "shifted", "unlike", "identified", "not_compared"
]


@dataclass(frozen=True, kw_only=True)
class CaptureDiagnosis:
    """What is made of a capture."""

    verdict: CaptureVerdict
    headline: str
    states: tuple[int | None, ...]
    """Of each served state; None = none of the known ones, or an unlabelled one."""
    rule: Effective
    results: tuple[CheckResult, ...]
    fix: tuple[str, ...] = ()


def identified(served: ServedState) -> StateMatch | None:
    """The known state that a served one surely is: near, and nothing else nearly as near. None = none is.

    A captured state and the target's own embedding may be the same thing under two names.
    """
    if served.tokens < LEAST_TOKENS or not served.matches:
        return None
    best, *others = served.matches
    if best.error > CLOSE:
        return None
    if best.state is None:  # the same state may have a name besides
        best = next((one for one in others if one.error <= best.error and one.state is not None), best)
    rivals = (one for one in others if _is_other(best, one))
    return None if any(one.error < max(APART * best.error, 1e-6) for one in rivals) else best


def _is_other(best: StateMatch, one: StateMatch) -> bool:
    if best.token_offset != one.token_offset:
        return True
    known = best.state is not None and one.state is not None
    return best.state != one.state if known else (best.against, best.slot) != (one.against, one.slot)


def judge_capture(result: CaptureResult, trained: tuple[int, ...] | None = None) -> CaptureDiagnosis:
    """Judge what came; `trained` are the states that the drafter was trained on, in the order of its fc."""
    rule = resolve(result.rule, result.draft_config, result.target_config)
    matches = tuple(identified(served) for served in result.served)
    states = tuple(None if one is None or one.token_offset else one.state for one in matches)
    verdict, served, fix = _served(result, matches, states, trained)
    return CaptureDiagnosis(
        verdict=verdict,
        headline=served.summary,
        states=states,
        rule=rule,
        results=(served, _agreement(result, states, rule)),
        fix=fix,
    )


def _served(
    result: CaptureResult,
    matches: tuple[StateMatch | None, ...],
    states: tuple[int | None, ...],
    trained: tuple[int, ...] | None,
) -> tuple[CaptureVerdict, CheckResult, tuple[str, ...]]:
    evidence = tuple(_evidence(result))
    if result.why_not is not None:
        needs = "a SGLang that returns them; until then the rule of its source tells (K6)"
        return "not_returned", SERVED.cannot_tell(f"no state came: {result.why_not}", needs=needs), ()
    if not result.served:
        needs = "captured training rows (`--rows`) to hold them against"
        return "not_compared", SERVED.cannot_tell("the served states were not compared", needs=needs), ()
    fed = told(matches)
    fix: tuple[str, ...]
    shifted = [one for one in matches if one is not None and one.token_offset]
    if shifted:
        way = "next" if shifted[0].token_offset > 0 else "previous"
        text = f"SGLang feeds states of the {way} token, as the training rows have them: {fed}"
        fix = ("the rows or the server are off by one token: capture a row anew and compare",)
        return "shifted", _finding(text, evidence, fix), fix
    if any(one is None for one in matches):
        few = result.compared_tokens < LEAST_TOKENS
        text = f"SGLang feeds {fed}: not each of them is one of the captured states"
        if few:
            needs = f"{LEAST_TOKENS} tokens or more, there were: {result.compared_tokens}"
            return "not_compared", SERVED.cannot_tell(text, needs=needs, evidence=evidence), ()
        fix = (
            "capture more states (`?` may be one that was not captured), or compare target, quantization and dtype of "
            "the capture with those that are served",
        )
        return "unlike", _finding(text, evidence, fix), fix
    if trained is None:
        return "identified", SERVED.passed(f"SGLang feeds {fed}", evidence), ()
    if states == trained:
        return "as_trained", SERVED.passed(f"SGLang feeds {fed}, which the drafter was trained on", evidence), ()
    fix = _spelled(result, trained)
    text = f"SGLang feeds {fed}; the drafter was trained on {names(trained)}"
    return "other_states", _finding(text, evidence, fix), fix


def told(matches: tuple[StateMatch | None, ...]) -> str:
    """`[embed, layer 3, ?]`; an unlabelled state by its place in the training rows."""

    def one(match: StateMatch | None) -> str:
        if match is None:
            return "?"
        if match.state is not None:
            return names((match.state,))[1:-1]
        return "the final state" if match.against == "final" else f"slot {match.slot}"

    return f"[{', '.join(one(match) for match in matches)}]"


def _finding(text: str, evidence: tuple[Evidence, ...], fix: tuple[str, ...]) -> CheckResult:
    return SERVED.finding(
        text,
        severity="fatal",
        cause="wiring",
        evidence=evidence,
        remedy=fix,
        refuted_by="another capture from the same server, whose states are those that the drafter was trained on",
    )


def _spelled(result: CaptureResult, trained: tuple[int, ...]) -> tuple[str, ...]:
    rule = result.rule
    layers = _layers(result.target_config)
    spelling = spell(trained, None if rule is None else rule.target_class, layers)
    here = spell_installed(rule, result.target_config, tuple(sorted(trained)), spelling)
    if here is not None:
        if here.needs is not None or here.ids is None:
            return (f"this SGLang cannot be told to feed {names(trained)}: {here.needs}",)
        return (
            f'set in the drafter\'s config.json: "eagle_config": {json.dumps(eagle_block(here.ids))}',
            f"this feeds {names(tuple(sorted(trained)))} by {here.version}",
        )
    if spelling.ids is None:
        return (f"this SGLang cannot be told to feed {names(trained)}: {spelling.problem}",)
    return (
        f'set in the drafter\'s config.json: "eagle_config": {json.dumps(eagle_block(spelling.ids))}',
        f"this feeds {names(tuple(sorted(trained)))} by the rule `{spelling.rule}`, {spelling.valid_for}",
    )


def _layers(target_config: str | None) -> int | None:
    try:
        value = json.loads(target_config or "{}")
        found = value.get("text_config", value).get("num_hidden_layers")
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, int) else None


def _evidence(result: CaptureResult) -> Iterator[Evidence]:
    for served in result.served:
        for place, match in zip(("nearest", "next nearest"), _two(served), strict=False):
            name = f"fed state {served.slot}: relative error to the {place} known one, {_named(match)}"
            yield Evidence(name=name, value=match.error, n=match.tokens)
        best = served.matches[0]
        yield Evidence(
            name=f"fed state {served.slot}: tokens equal to it number by number", value=best.exact, n=best.tokens
        )


def _two(served: ServedState) -> Iterator[StateMatch]:
    """The nearest known state, and the nearest that is another one."""
    best = served.matches[0]
    yield best
    yield from itertools.islice((one for one in served.matches[1:] if _is_other(best, one)), 1)


def _named(match: StateMatch) -> str:
    name = f"slot {match.slot}" if match.against == "captured" else match.against
    label = "" if match.state is None else f" (state {match.state})"
    shift = "" if not match.token_offset else f" of token {match.token_offset:+d}"
    return f"{name}{label}{shift}"


def _agreement(result: CaptureResult, states: tuple[int | None, ...], rule: Effective) -> CheckResult:
    version = f"SGLang {rule.version or 'of unknown version'}"
    if result.draft_config is None and result.why_not is None:
        text = "no drafter's config.json could be read, so there are no ids to follow the source's rule with"
        return RULE.cannot_tell(text, needs="a capture with `--draft`")
    if rule.states is None:
        return RULE.cannot_tell(
            f"the installed source does not tell: {rule.problem}", needs="the states that the server feeds (K12)"
        )
    text = f"{version} captures {names(rule.states)} by its source"
    if not states or None in states:
        return RULE.cannot_tell(text, needs="the states that the server feeds, each of them identified (K12)")
    if states == rule.states:
        return RULE.passed(f"{text}, and the server feeds just these")
    return RULE.finding(
        f"{text}, but the server feeds others",
        severity="minor",
        cause="engine",
        evidence=(Evidence(name="by the source", value=names(rule.states)),),
        remedy=("trust the server; see that the source that was read is the one it runs",),
        refuted_by="a capture whose states are those of the rule",
    )
