"""K15: the accept length above which speculation pays, with its interval, and whether a mended drafter reaches it.

Speculation pays where the accept length is above the step cost r = AL / S, measured on both sides at the lowest load. A
mended length is the walk's of the best reading, on the served text where that was walked (see `mending`). It is
unpaired with r, so only intervals that do not overlap decide. r belongs to this number of steps: what another number
costs is not known. Beside a fault without a measured mended length, whether it pays is not known before it is mended.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.compare.prediction import Prediction, predict
from orchestrator.compare.served import Draft, PairedLoad
from orchestrator.compare.stats import bounded
from orchestrator.diagnosis.decision.axes import Answer, Signal
from orchestrator.diagnosis.decision.inputs import Known, Served
from orchestrator.diagnosis.decision.mending import Mending, mending_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, figure
from orchestrator.diagnosis.served_verdict import ServedVerdict

ECONOMICS = Subject(check="K15", title="economics")
NO_SPEED: tuple[ServedVerdict, ...] = ("invalid", "simulated", "suspicious_baseline", "not_comparable",
                                       "nothing_measured")  # fmt: skip
"""Verdicts of a served benchmark after which its speed-up is not to be used."""


@dataclass(frozen=True, kw_only=True)
class Economics:
    """One load's balance."""

    load: PairedLoad
    draft: Draft
    mending: Mending
    """What lowers the accept length, and what it would be without."""
    foretold: Prediction | None
    """The best reading at every depth by a known step cost; None = nobody said what a step costs."""

    @property
    def answer(self) -> Answer:
        """As the axis names it."""
        pairing, ceiling = self.load.pairing, self.draft.ceiling
        if pairing.refused is not None or pairing.suspicious:
            return "open"
        if pairing.pays is not False:
            return "pays" if pairing.pays else "open"
        if self.mending.is_other_drafter:
            return "until_mended"  # the step cost is another drafter's
        low = pairing.step_cost_low
        if low is not None and ceiling is not None and low >= ceiling:
            return "cannot"
        return self._mended() if self.mending.faults else "loses"

    def _mended(self) -> Answer:
        """Beside a fault that lowers the accept length: what is served is below r, and a mended one may be above."""
        low, high = self.load.pairing.step_cost_low, self.load.pairing.step_cost_high
        if not self.mending.is_measurable:
            return "until_mended"
        mended = self.mending.length
        if mended is None or mended.low is None or mended.high is None or low is None or high is None:
            return "mend_open"
        if mended.low > high:
            return "mendable"
        return "loses" if mended.high < low else "mend_open"


def economics(known: Known) -> Economics | None:
    """The lowest load's balance; None = no load was measured on both sides."""
    served = known.served
    if served is None or not served.figures.pairs:
        return None
    pairs = served.figures.pairs
    lowest = min(pairs, key=lambda item: (item.spec.concurrency is None, item.spec.concurrency or 0))
    return Economics(load=lowest, draft=served.figures.draft, mending=mending_of(known), foretold=every_depth(known))


def every_depth(known: Known) -> Prediction | None:
    """What each number of draft steps would give, on held-out rows where there are; None = no cost, or no rows."""
    offline = known.offline
    if offline is None or known.cost is None:
        return None
    reading, measured = offline.wiring.best.facts.name, offline.measured
    heldout = measured.heldout
    rows = heldout if heldout is not None and reading in heldout.figures else measured.train
    if not any(item.reading == reading for item in rows.hits):
        return None
    return predict(reading, rows.rows, rows.hits, known.cost)


def depth_words(found: Prediction) -> str:
    """Whether any number of steps pays, e.g. `by r = 1.47 + 0.16 k no number of steps pays: at best 0.93x at 2`."""
    depth, cost = found.judged, found.cost
    if depth is None or cost is None or depth.speedup is None:
        return "whether another number of steps pays is not known"
    speed = depth.speedup
    ends = "" if speed.low is None or speed.high is None else f" [{speed.low:.2f}, {speed.high:.2f}]"
    best = f"{speed.value or 0.0:.2f}x{ends} at {depth.steps} step{'' if depth.steps == 1 else 's'}"
    told = {True: "it pays", False: "no number of steps pays", None: "whether any number of steps pays is open"}
    return f"by r = {cost.words} ({cost.source or 'given'}) {told[found.pays]}: at best {best}, read as it reads best"


def pays_signals(known: Known) -> Iterator[Signal]:
    """Whether speculation pays; none where it was not measured on both sides."""
    served, found = known.served, economics(known)
    if served is None or found is None:
        return
    if served.diagnosis.verdict in NO_SPEED:
        needs = "a run whose figures are a measurement"
        unsure = ECONOMICS.cannot_tell(served.diagnosis.headline, needs=needs, evidence=_evidence(found))
        yield Signal(axis="pays", answer="open", results=(unsure,))
        return
    yield Signal(axis="pays", answer=found.answer, results=(_result(found, served),))


def _result(found: Economics, served: Served) -> CheckResult:
    answer, evidence = found.answer, _evidence(found)
    if answer == "pays":
        return ECONOMICS.passed(f"faster than plain decoding, {_speed(found)}; {break_even_words(found)}", evidence)
    faults = " and ".join(found.mending.faults)
    if answer == "until_mended":
        text = f"measured {_speed(found)}: whether speculation pays is not known until this is mended: {faults}"
        return ECONOMICS.cannot_tell(text, needs="the benchmark once more, mended", evidence=evidence)
    if answer == "mend_open":
        text = f"{break_even_words(found)}; measured {_speed(found)}: whether it pays once mended ({faults}) is open"
        needs = "the walk of the best reading over what is served, more repeats and prompts"
        return ECONOMICS.cannot_tell(text, needs=needs, evidence=evidence)
    if answer == "open":
        return ECONOMICS.cannot_tell(f"{_speed(found)}: {_undecided(found)}", needs="more --repeats", evidence=evidence)
    if answer == "mendable":
        mended = 0.0 if found.mending.length is None else found.mending.length.value or 0.0
        return ECONOMICS.passed(
            f"it would pay once mended, at accept length {mended:.2f}: {break_even_words(found)}", evidence
        )
    return ECONOMICS.finding(
        f"{break_even_words(found)}; measured {_speed(found)}",
        severity="serious",
        cause="economics",
        evidence=evidence,
        remedy=_remedy(found, served),
        refuted_by="a speed-up surely above 1 at an accept length below r",
    )


def _undecided(found: Economics) -> str:
    pairing, repeats = found.load.pairing, len(found.load.spec.speed.throughputs)
    if pairing.refused is not None:
        return pairing.refused
    if pairing.speedup.low is None:
        return f"speed is not judged on {repeats} repeat{'' if repeats == 1 else 's'}, which has no interval"
    return "the interval of the speed-up holds 1"


def break_even_words(found: Economics) -> str:
    """e.g. `speculation cannot pay below accept length 3.0 to 3.7 at this step cost (now 1.90, at most 2 ...)`."""
    pairing = found.load.pairing
    if pairing.step_cost is None:
        return "what a speculative step costs is not known"
    low, high = pairing.step_cost_low, pairing.step_cost_high
    at = f"about {pairing.step_cost:.1f}" if low is None or high is None else _span(low, high)
    now = "unknown" if pairing.accept_length is None else f"{pairing.accept_length:.2f}"
    ceiling = "" if found.draft.ceiling is None else f", at most {found.draft.ceiling} with this draft"
    mended = ""
    told = found.mending.length
    if told is not None and told.value is not None and found.answer != "mendable":
        mended = f", {told.value:.2f} foretold once mended {found.mending.where}"
    pays = "pays above" if found.answer in ("pays", "mendable", "mend_open") else "cannot pay below"
    return f"speculation {pays} accept length {at} at this step cost (now {now}{ceiling}{mended})"


def _span(low: float, high: float) -> str:
    """Ends with as few decimals as tell them apart."""
    digits = 1 if f"{low:.1f}" != f"{high:.1f}" else 2
    return (
        f"{low:.{digits}f}" if f"{low:.{digits}f}" == f"{high:.{digits}f}" else f"{low:.{digits}f} to {high:.{digits}f}"
    )


def _speed(found: Economics) -> str:
    item = found.load
    ours, theirs = item.spec.speed.throughput.value or 0.0, item.plain.speed.throughput.value or 0.0
    factor = item.pairing.speedup.value
    return f"{ours:.1f} against {theirs:.1f} tok/s" + ("" if factor is None else f" ({factor:.2f}x)")


def _remedy(found: Economics, served: Served) -> tuple[str, ...]:
    lines = [] if found.foretold is None else [depth_words(found.foretold)]
    if found.answer == "cannot":
        lines.append("serve without speculation, or with a draft whose steps are cheaper: fewer nodes, fewer steps")
    else:
        lines.append("fewer draft steps cost less a step: measure 1, 2 and 3 with `sweep`, each beside plain decoding")
    users = found.load.spec.concurrency
    if users is not None and users > 1:
        lines.append("fewer users at once leave more room for verification: measure 1 user too")
    if any(item.title == "speculation path" and item.outcome == "finding" for item in served.diagnosis.findings):
        lines.append("mend the speculation path first: what it costs is in r")
    return tuple(lines)


def _evidence(found: Economics) -> tuple[Evidence, ...]:
    pairing = found.load.pairing
    acceptance = found.load.spec.acceptance
    known = pairing.step_cost_low is not None
    parts = [
        Evidence(
            name="break-even accept length r, of the step cost",
            value=pairing.step_cost,
            n=len(found.load.spec.speed.throughputs),
            low=pairing.step_cost_low,
            high=pairing.step_cost_high,
            confidence=0.95 if known else None,
        ),
        figure("speed-up over plain decoding, by repeat", pairing.speedup, ""),
    ]
    if acceptance is not None:
        depth = found.draft.depth
        length = acceptance.accept_length if depth is None else bounded(acceptance.accept_length, 1, depth + 1)
        parts.insert(1, figure("accept length, served", length, "tokens"))
    if found.mending.length is not None:
        name = f"accept length foretold of the best reading{found.mending.how}"
        parts.append(figure(name, found.mending.length, "tokens"))
    return tuple(parts)
