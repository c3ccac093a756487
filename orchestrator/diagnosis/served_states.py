"""What a capture says: which states SGLang feeds the drafter (K12), and whether its source's rule says the same (K6).

States are HF `hidden_states` indices: 0 = embedding output, i = output of layer i-1.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.effective_capture import Effective, layers_of, names, resolve
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.installed_ids import Source, spelling_for
from orchestrator.diagnosis.pipeline_stages import stages_of
from orchestrator.diagnosis.recognised_states import (
    LEAST_TOKENS,
    SERVED,
    Recognised,
    is_other,
    left_words,
    other_numbers,
    recognised,
    told,
)
from orchestrator.diagnosis.sglang_config import eagle_block
from remote_payload.schema.capture import CaptureResult, ServedState, StateMatch

RULE = Subject(check="K6", title="rule of the installed source against the server")
CaptureVerdict = Literal[
    "not_returned", "as_trained", "other_states", "changed", "shifted", "unlike", "identified", "not_compared"
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


def judge_capture(result: CaptureResult, trained: tuple[int, ...] | None = None) -> CaptureDiagnosis:
    """Judge what came; `trained` are the states that the drafter was trained on, in the order of its fc."""
    stages = stages_of(result.server)
    rule = resolve(result.rule, result.draft_config, result.target_config, pipeline_stages=stages)
    matches = tuple(recognised(served) for served in result.served)
    states = tuple(None if one is None or one.match.token_offset else one.match.state for one in matches)
    verdict, served, fix = _served(result, matches, states, trained)
    odd = _in_other_numbers(result, matches)
    beside = () if odd is None or odd == served or verdict == "shifted" else (odd,)
    return CaptureDiagnosis(
        verdict=verdict,
        headline=served.summary,
        states=states,
        rule=rule,
        results=(served, _agreement(result, states, rule), *beside),
        fix=fix,
    )


def _served(
    result: CaptureResult,
    matches: tuple[Recognised | None, ...],
    states: tuple[int | None, ...],
    trained: tuple[int, ...] | None,
) -> tuple[CaptureVerdict, CheckResult, tuple[str, ...]]:
    if not result.served:
        return _none_came(result)
    evidence, fed = tuple(_evidence(result)), told(matches)
    fix: tuple[str, ...]
    shifted = [one.match.token_offset for one in matches if one is not None and one.match.token_offset]
    if shifted:
        way = "next" if shifted[0] > 0 else "previous"
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
    if trained is not None and states != trained:
        fix = _spelled(result, trained)
        text = f"SGLang feeds {fed}; the drafter was trained on {names(trained)}"
        return "other_states", _finding(text, evidence, fix), fix
    odd = _in_other_numbers(result, matches)
    if odd is not None and odd.severity == "serious":
        return "changed", odd, odd.remedy
    known: CaptureVerdict = "identified" if trained is None else "as_trained"
    which = "" if trained is None else ", which the drafter was trained on"
    return known, SERVED.passed(f"SGLang feeds {fed}{which}", evidence), ()


def _none_came(result: CaptureResult) -> tuple[CaptureVerdict, CheckResult, tuple[str, ...]]:
    if result.why_not is not None:
        needs = "a SGLang that returns them; until then the rule of its source tells (K6)"
        return "not_returned", SERVED.cannot_tell(f"no state came: {result.why_not}", needs=needs), ()
    needs = "captured training rows (`--rows`) to hold them against"
    return "not_compared", SERVED.cannot_tell("the served states were not compared", needs=needs), ()


def _in_other_numbers(result: CaptureResult, matches: tuple[Recognised | None, ...]) -> CheckResult | None:
    """The finding on states of the right layer and other numbers; None = there are none."""
    found = [one.changed for one in matches if one is not None and one.changed is not None]
    if not found:
        return None
    large = any(one.is_large for one in found)
    return other_numbers(told(matches), left_words(found), large=large, evidence=tuple(_evidence(result)))


def _finding(text: str, evidence: tuple[Evidence, ...], fix: tuple[str, ...]) -> CheckResult:
    return SERVED.finding(
        text,
        severity="fatal",
        cause="wiring",
        evidence=evidence,
        remedy=fix,
        refuted_by="another capture from the same server, whose states are those that the drafter was trained on",
    )


def source_of(result: CaptureResult) -> Source | None:
    """The source of the server that was asked, by which ids are spelled; None = there was none to read."""
    if result.rule is None:
        return None
    stages = stages_of(result.server)
    return Source(rule=result.rule, target_config=result.target_config, pipeline_stages=stages)


def _spelled(result: CaptureResult, trained: tuple[int, ...]) -> tuple[str, ...]:
    rule = result.rule
    layers = layers_of(result.target_config)
    source = source_of(result)
    spelling = spelling_for(trained, None if rule is None else rule.target_class, layers, source)
    if spelling.ids is None or spelling.needs is not None:
        return (f"this SGLang cannot be told to feed {names(trained)}: {spelling.needs or spelling.problem}",)
    return (
        f'set in the drafter\'s config.json: "eagle_config": {json.dumps(eagle_block(spelling.ids))}',
        f"this feeds {names(tuple(sorted(trained)))} {spelling.basis}",
    )


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
    yield from itertools.islice((one for one in served.matches[1:] if is_other(best, one)), 1)


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
