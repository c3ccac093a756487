"""The part that the checks of the computation share: what the sweep says about some of its choices."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.diagnosis.effects import changed, effects
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, figure
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.remedies import remedy
from orchestrator.diagnosis.verdict import CHANGE_SEPARATION, Effect, MeasuredReading
from orchestrator.diagnosis.wiring import Ranking, rank
from remote_payload.schema import ReadingFacts

FATAL_LENGTH = 1.15
"""Accept length below which speculation is as good as off."""
SERIOUS_LOSS = 0.1
"""Share of the accept length."""
SURE_ERRORS = 4.0
"""Standard errors by which a change must be ahead on few rows, picked from many, to be more than chance."""
FULL_SWEEP = "a run with `--sweep full`, which tries it"


def ranking_of(measured: Measured) -> Ranking | None:
    """The ranking; None where nothing was measured on all rows."""
    known = any(facts.stage == "full" and facts.name in measured.train.figures for facts in measured.result.readings)
    return rank(measured) if known else None


def named_keys(measured: Measured) -> set[str]:
    """Choices that some check of the computation names: surely better than what is served, or than the checkpoint's."""
    ranking = ranking_of(measured)
    if ranking is None:
        return set()
    result = measured.result
    return {
        key
        for other in (result.declared.changes, ())
        for effect in effects(ranking.best, other, ranking.ranked, result.checkpoint, ranking.confidence)
        if effect.proven
        for key in effect.keys
    }


def severity_of(best: MeasuredReading, lost: float | None) -> Severity:
    """By what is left of the accept length when `lost` accepted drafts a position go."""
    length = best.figures.accept_length_mean.value
    if length is None or lost is None:
        return "serious"
    if length - lost < FATAL_LENGTH:
        return "fatal"
    return "serious" if lost >= SERIOUS_LOSS * length else "minor"


def factor_results(subject: Subject, measured: Measured, keys: Sequence[str]) -> tuple[CheckResult, ...]:
    """One finding for each choice that is served otherwise than the drafter reads best, or that all is well."""
    ranking = ranking_of(measured)
    if ranking is None:
        return (subject.cannot_tell("no reading was measured on all rows", needs="rows that can be measured"),)
    result = measured.result
    served = effects(ranking.best, result.declared.changes, ranking.ranked, result.checkpoint, ranking.confidence)
    own = effects(ranking.best, (), ranking.ranked, result.checkpoint, ranking.confidence)
    ours = [effect for effect in served if set(effect.keys) & set(keys)]
    found = [_misread(subject, measured, ranking.best, effect) for effect in ours if effect.proven]
    named = {key for effect in ours for key in effect.keys}
    found += [
        _odd_config(subject, measured, effect)
        for effect in own
        if effect.proven and set(effect.keys) & set(keys) and not set(effect.keys) & named
    ]
    unmeasured = [effect for effect in ours if effect.difference is None]
    found += [_unmeasured(subject, effect) for effect in unmeasured]
    return tuple(found) if found else (_all_well(subject, measured, ranking.best, keys, ours),)


def _misread(subject: Subject, measured: Measured, best: MeasuredReading, effect: Effect) -> CheckResult:
    lost = effect.difference.value if effect.difference else None
    text = ", ".join(
        f"`{key}={value}`, it is served `{served}`"
        for key, value, served in zip(effect.keys, effect.best, effect.served, strict=True)
    )
    found = subject.finding(
        f"the drafter reads best with {text}",
        severity=severity_of(best, lost),
        cause="wiring",
        evidence=_against(effect),
        remedy=_remedies(measured, effect),
        refuted_by=f"`{effect.reverted.facts.name if effect.reverted else ''}` as good on more rows",
    )
    return replace(found, effect=lost)


def _odd_config(subject: Subject, measured: Measured, effect: Effect) -> CheckResult:
    """Served right, by luck: the checkpoint itself says otherwise."""
    text = ", ".join(
        f"`{key}={value}` although config and tensors mean `{own}`"
        for key, value, own in zip(effect.keys, effect.best, effect.served, strict=True)
    )
    return subject.finding(
        f"the drafter reads best with {text}; SGLang happens to compute it so, other engines may not",
        severity="minor",
        cause="wiring",
        evidence=_against(effect),
        remedy=_remedies(measured, effect),
        refuted_by="the checkpoint's own computation as good on more rows",
    )


def _unmeasured(subject: Subject, effect: Effect) -> CheckResult:
    text = ", ".join(
        f"`{key}={served}` where the best reading has `{value}`"
        for key, value, served in zip(effect.keys, effect.best, effect.served, strict=True)
    )
    return subject.cannot_tell(
        f"SGLang computes {text}; what that costs was not measured on all rows", needs=FULL_SWEEP
    )


def _against(effect: Effect) -> tuple[Evidence, ...]:
    if effect.difference is None:
        return ()
    name = effect.reverted.facts.name if effect.reverted else "served"
    return (figure(f"accepted drafts a position, best reading minus `{name}`", effect.difference, "tokens"),)


def _remedies(measured: Measured, effect: Effect) -> tuple[str, ...]:
    checkpoint = measured.result.checkpoint
    return tuple(
        line
        for key, best, served in zip(effect.keys, effect.best, effect.served, strict=True)
        for line in remedy(key, best, served, checkpoint)
    )


def _all_well(
    subject: Subject, measured: Measured, best: MeasuredReading, keys: Sequence[str], ours: Sequence[Effect]
) -> CheckResult:
    result = measured.result
    tried = [facts for facts in result.readings if set(changed(facts.changes)) & set(keys)]
    skipped = [item for item in result.skipped_readings if item.name.split("=")[0].strip() in keys]
    even = tuple(line for effect in ours for line in _against(effect))
    if not tried and not even:
        why = "; ".join(f"{item.name}: {item.reason}" for item in skipped)
        if why:
            return subject.cannot_tell(f"nothing else was tried: {why}", needs="what the skipped readings lacked")
        return subject.cannot_tell("nothing else was tried", needs=FULL_SWEEP)
    lines = (*even, *(line for facts in tried for line in tried_evidence(facts)))
    promising = [facts for facts in tried if facts.stage != "full" and _looked_better(facts, best, result.readings)]
    if promising:
        text = f"on few rows `{promising[0].name}` looked better, but it was not measured on all of them"
        return subject.cannot_tell(text, needs="more rows, so that the sweep can confirm it", evidence=lines)
    return subject.passed(_all_well_text(best, keys, bool(ours), lines), lines)


def _all_well_text(
    best: MeasuredReading, keys: Sequence[str], served_otherwise: bool, lines: Sequence[Evidence]
) -> str:
    if served_otherwise:
        return "no difference seen on these rows between what is served and the best reading"
    if set(changed(best.facts.changes)) & set(keys):
        return "the best reading is what is served"
    worse = sum(line.high is not None and line.high < 0 for line in lines)
    if not worse:
        return f"no difference seen on these rows: {len(lines)} other readings are as good as the checkpoint's own"
    others = f"{worse} of {len(lines)} others are surely worse, none surely better"
    return f"the checkpoint's own computation reads best: {others}"


def _looked_better(facts: ReadingFacts, best: MeasuredReading, readings: Sequence[ReadingFacts]) -> bool:
    """Whether a change was surely ahead of the best reading itself where both were screened."""
    full = {item.name for item in readings if item.stage == "full"}
    if facts.paired_with != best.facts.name or facts.name in full or facts.paired_error is None:
        return False
    if facts.paired_leading_hits is None or facts.leading_hits is None:
        return False
    ahead = (facts.leading_hits - facts.paired_leading_hits) / max(1, facts.positions)
    return ahead - SURE_ERRORS * facts.paired_error > CHANGE_SEPARATION


def tried_evidence(facts: ReadingFacts) -> tuple[Evidence, ...]:
    """How far a reading fell behind the one it was held against, from the rows of its stage."""
    if facts.paired_with is None or facts.paired_leading_hits is None or facts.leading_hits is None:
        return ()
    value = (facts.leading_hits - facts.paired_leading_hits) / max(1, facts.positions)
    error = facts.paired_error
    known = error is not None
    return (
        Evidence(
            name=f"accepted drafts a position, `{facts.name}` minus `{facts.paired_with}`",
            value=value,
            unit="tokens",
            n=facts.positions,
            low=value - 2 * error if error is not None else None,
            high=value + 2 * error if error is not None else None,
            confidence=0.95 if known else None,
        ),
    )
