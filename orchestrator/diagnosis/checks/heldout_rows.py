"""Whether held-out rows are what they claim to be, by what is asked of training rows, and beside these.

What is wrong with them is a fault of the measurement, not of the pair: it is told, and no gap is judged on such rows.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from orchestrator.diagnosis.checks import k07_slots, k10_alignment, teacher
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import SlotFacts, StandaloneResult

HELDOUT = Subject(check="heldout", title="held-out rows")
UNLIKE = 0.1
"""Share by which a slot's size must differ from that of the training rows' slot before they are called unlike: medians
over all tokens of two texts differ by a percent or two."""
REFUTED = "the same numbers in rows of the same text that were captured as the training rows were"


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each fault that the training rows do not have as well; none where all is well."""
    own = {item.check for item in _faults(measured)}
    return tuple(
        replace(
            item,
            check=HELDOUT.check,
            title=HELDOUT.title,
            severity="minor",
            summary=f"held-out rows, on which no gap is judged: {item.summary}",
        )
        for item in doubts(measured)
        if item.check not in own
    )


def doubts(measured: Measured) -> tuple[CheckResult, ...]:
    """Why held-out rows are not to be trusted; empty = nothing speaks against them, or there are none."""
    heldout = measured.result.heldout
    if heldout is None or measured.heldout is None or not measured.heldout.rows:
        return ()
    as_rows = replace(measured.result, rows=heldout, heldout=None)
    return (
        *_faults(replace(measured, result=as_rows, train=measured.heldout, heldout=None)),
        *_exchanged(measured.result),
    )


def _faults(measured: Measured) -> Iterator[CheckResult]:
    """Those for which no reading on these rows is to be trusted."""
    found = [*k07_slots.check(measured), *teacher.check(measured), *k10_alignment.shifted_states(measured.result)]
    yield from (item for item in found if item.outcome == "finding" and item.severity in ("fatal", "serious"))


def _exchanged(result: StandaloneResult) -> Iterator[CheckResult]:
    """A slot as large as another slot of the training rows, and not as its own: they were captured otherwise."""
    train, heldout = result.rows.slots, () if result.heldout is None else result.heldout.slots
    if len(train) != len(heldout):
        return
    for ours in heldout:
        theirs = {slot.slot: slot for slot in train}
        own = theirs.get(ours.slot)
        if own is None or not _apart(ours, own) or _apart(ours, own) <= UNLIKE:
            continue
        near = min(theirs.values(), key=lambda slot: _apart(ours, slot))
        if near.slot != own.slot and 2 * _apart(ours, near) < _apart(ours, own):
            yield HELDOUT.finding(
                f"slot {ours.slot} is as large as slot {near.slot} of the training rows, not as its own: states were "
                "exchanged",
                severity="serious",
                cause="data",
                evidence=(
                    _size(f"slot {ours.slot} of the held-out rows: median RMS", ours),
                    _size(f"slot {own.slot} of the training rows: median RMS", own),
                    _size(f"slot {near.slot} of the training rows: median RMS", near),
                ),
                remedy=("capture the held-out rows as the training rows were, with the states in the same order",),
                refuted_by=REFUTED,
            )
            return


def _apart(one: SlotFacts, other: SlotFacts) -> float:
    """How unlike two sizes are, as a log ratio; 0 where one of them is nothing."""
    return abs(math.log(one.rms / other.rms)) if one.rms > 0 and other.rms > 0 else 0.0


def _size(name: str, slot: SlotFacts) -> Evidence:
    return Evidence(name=name, value=slot.rms, n=slot.tokens)
