"""The capture against a fresh forward of the target: a broken capture scores well offline and fails in serving."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.diagnosis.changed_states import CLOSE, Changed, Known, changed, scaled
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, led_by, share
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.recognised_states import left_words
from remote_payload.schema import CaptureCheck, CaptureSlot
from remote_payload.schema.state_change import StateChange

CAPTURE = Subject(check="capture", title="capture against a fresh forward")

FAR = 0.3
"""Beyond it a state is another one. Between the two a quantized target or another kernel is as likely."""
SAME_ANSWERS = 0.97
OTHER_ANSWERS = 0.9


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for states that are others than their labels say, and one for states nobody recognises."""
    capture = measured.result.capture
    if capture is None or not capture.ran or not capture.tokens:
        why = "it was not asked for" if capture is None else capture.why_not or "no tokens were compared"
        asked = capture is not None
        needs = (
            f"{'' if asked else 'a run with `--capture-rows 2` on '}a host with `transformers` that can load the target"
        )
        return (CAPTURE.cannot_tell(f"not compared: {why}", needs=needs),)
    slots = (*capture.slots, *((capture.final,) if capture.final is not None else ()))
    evidence = (*(line for slot in slots for line in _evidence(slot, capture)), *_answers(capture))
    odd = {slot.slot: one for slot in slots if (one := _in_other_numbers(slot)) is not None}
    strangers = [slot for slot in slots if slot.error > FAR and slot.slot not in odd]
    found = [_strangers(strangers, evidence)] if strangers else []
    found += (
        [_scaled(large, capture, evidence)]
        if (large := {at: one for at, one in odd.items() if one[1].is_large})
        else []
    )
    found += (
        [_mislabelled(wrong, capture, evidence)]
        if (wrong := [slot for slot in slots if slot.slot not in odd and _is_other(slot)])
        else []
    )
    if found:
        return tuple(found)
    if capture.answers and capture.same_answers < OTHER_ANSWERS * capture.answers:
        return (_finding("the captured final state answers otherwise than a fresh forward", evidence[::-1]),)
    unsure = [slot for slot in slots if slot.error > CLOSE]
    if unsure or (capture.answers and capture.same_answers < SAME_ANSWERS * capture.answers):
        return (
            CAPTURE.cannot_tell(
                "captured states differ from a fresh forward by more than rounding, but are recognisable",
                needs="to know whether the capture ran another number format, quantization or kernel",
                evidence=evidence,
            ),
        )
    return (CAPTURE.passed("captured states are those of a fresh forward", evidence),)


def _strangers(slots: Sequence[CaptureSlot], evidence: Sequence[Evidence]) -> CheckResult:
    """States that no state of the target comes near: one finding for all of them, as one capture wrote them."""
    worst = max(slots, key=lambda slot: slot.error)
    text = f"{_names(slots)} no state of this target: off by {100 * worst.error:.0f} % at the nearest"
    return _finding(text, led_by(evidence, f"{_name(worst)}: relative error there", f"{_name(worst)}: relative error"))


def _in_other_numbers(slot: CaptureSlot) -> tuple[int, Changed] | None:
    """The state that a slot is, scaled; None = as it is, or none of them."""
    known = [Known(name=index, error=_off(change), change=change) for index, change in enumerate(slot.changes)]
    if not known:
        return None
    if slot.error <= CLOSE:
        own = scaled(known[slot.nearest])
        return None if own is None else (slot.nearest, own)
    found = changed(known)
    return None if found is None else (known.index(found[0]), found[1])


def _off(change: StateChange) -> float:
    """|stored - fresh| / |fresh|: what the factor makes, and what it leaves at a right angle to that."""
    return math.hypot(1 - change.factor, change.factor * change.scaled_error)


def _scaled(
    odd: Mapping[int | None, tuple[int, Changed]], capture: CaptureCheck, evidence: Sequence[Evidence]
) -> CheckResult:
    """States of the target in other numbers: one finding for all of them."""
    slots = [slot for slot in (*capture.slots, capture.final) if slot is not None and slot.slot in odd]
    each = ", ".join(f"{_name(slot)} is state {odd[slot.slot][0]} {odd[slot.slot][1].words}" for slot in slots)
    left = left_words([one for _, one in odd.values()])
    return _finding(f"{each} of this target, but for {left}: the capture scaled or normed it", evidence)


def _is_other(slot: CaptureSlot) -> bool:
    """Whether a state is recognised as another one than its label says."""
    other = slot.labelled_error is not None and slot.labelled_error > max(CLOSE, 2 * slot.error)
    return slot.error <= FAR and other and slot.error < slot.next_error


def _mislabelled(wrong: Sequence[CaptureSlot], capture: CaptureCheck, evidence: Sequence[Evidence]) -> CheckResult:
    first, labels = wrong[0], ",".join("embed" if slot.nearest == 0 else str(slot.nearest) for slot in capture.slots)
    each = ", ".join(f"{_name(slot)} is state {slot.nearest}" for slot in wrong)
    text = f"{each} of the target, not {'what its label says' if len(wrong) == 1 else 'what their labels say'}"
    proof = (f"{_name(first)}: relative error at its label", f"{_name(first)}: relative error there")
    found = _finding(text, led_by(evidence, *proof))
    if len({slot.nearest for slot in capture.slots}) < len(capture.slots):
        return found  # one state twice: no labels mend that
    return replace(found, remedy=(f"run again with the labels that the states have: `--states {labels}`",))


def _names(slots: Sequence[CaptureSlot]) -> str:
    names = [_name(slot) for slot in slots]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _name(slot: CaptureSlot) -> str:
    return "final state" if slot.slot is None else f"slot {slot.slot}"


def _finding(summary: str, evidence: Sequence[Evidence]) -> CheckResult:
    return CAPTURE.finding(
        summary,
        severity="serious",
        cause="data",
        evidence=tuple(evidence),
        remedy=(
            "capture again with the target as it is served, and train on that: such a drafter scores well offline and "
            "fails in serving",
            "if only the label is wrong, give the right ones with `--states`",
        ),
        refuted_by="a fresh forward in the engine that captured, which agrees with the rows",
    )


def _evidence(slot: CaptureSlot, capture: CaptureCheck) -> tuple[Evidence, ...]:
    name = _name(slot)
    lines = [
        Evidence(name=f"{name}: nearest fresh state", value=slot.nearest),
        Evidence(name=f"{name}: relative error there", value=slot.error, n=capture.tokens),
        Evidence(name=f"{name}: relative error at the next nearest", value=slot.next_error, n=capture.tokens),
    ]
    if slot.labelled_error is not None:
        lines.append(Evidence(name=f"{name}: relative error at its label", value=slot.labelled_error, n=capture.tokens))
    return tuple(lines)


def _answers(capture: CaptureCheck) -> tuple[Evidence, ...]:
    return (
        (share("tokens with the same teacher's choice", capture.same_answers, capture.answers),)
        if capture.answers
        else ()
    )
