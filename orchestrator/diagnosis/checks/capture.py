"""The capture against a fresh forward of the target: a broken capture scores well offline and fails in serving."""

from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, share
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import CaptureCheck, CaptureSlot

CAPTURE = Subject(check="capture", title="capture against a fresh forward")

CLOSE = 0.1
"""Relative error of a sound captured state: bfloat16 gives 0.5 to 5 %, growing with depth."""
FAR = 0.3
"""Beyond it a state is another one. Between the two a quantized target or another kernel is as likely."""
SAME_ANSWERS = 0.97
OTHER_ANSWERS = 0.9


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each state that is another one than its label says, and one for states nobody recognises."""
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
    found = [item for slot in slots if (item := _slot(slot, evidence, capture)) is not None]
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


def _slot(slot: CaptureSlot, evidence: tuple[Evidence, ...], capture: CaptureCheck) -> CheckResult | None:
    name = "the final state" if slot.slot is None else f"slot {slot.slot}"
    own = _proof(slot, capture)
    evidence = (*own, *(line for line in evidence if line not in own))
    if slot.error > FAR:
        return _finding(f"{name} is no state of this target: off by {100 * slot.error:.0f} % at the nearest", evidence)
    other = slot.labelled_error is not None and slot.labelled_error > max(CLOSE, 2 * slot.error)
    if other and slot.error < slot.next_error:
        return _finding(f"{name} is state {slot.nearest} of the target, not the one its label says", evidence)
    return None


def _finding(summary: str, evidence: tuple[Evidence, ...]) -> CheckResult:
    return CAPTURE.finding(
        summary,
        severity="serious",
        cause="data",
        evidence=evidence,
        remedy=(
            "capture again with the target as it is served, and train on that: such a drafter scores well offline and "
            "fails in serving",
            "if only the label is wrong, give the right ones with `--states`",
        ),
        refuted_by="a fresh forward in the engine that captured, which agrees with the rows",
    )


def _evidence(slot: CaptureSlot, capture: CaptureCheck) -> tuple[Evidence, ...]:
    name = "final state" if slot.slot is None else f"slot {slot.slot}"
    lines = [
        Evidence(name=f"{name}: nearest fresh state", value=slot.nearest),
        Evidence(name=f"{name}: relative error there", value=slot.error, n=capture.tokens),
        Evidence(name=f"{name}: relative error at the next nearest", value=slot.next_error, n=capture.tokens),
    ]
    if slot.labelled_error is not None:
        lines.append(Evidence(name=f"{name}: relative error at its label", value=slot.labelled_error, n=capture.tokens))
    return tuple(lines)


def _proof(slot: CaptureSlot, capture: CaptureCheck) -> tuple[Evidence, ...]:
    """This slot's numbers, the error at its label first where there is one."""
    lines = _evidence(slot, capture)
    return tuple(sorted(lines, key=lambda line: ("at its label" not in line.name, "error there" not in line.name)))


def _answers(capture: CaptureCheck) -> tuple[Evidence, ...]:
    return (
        (share("tokens with the same teacher's choice", capture.same_answers, capture.answers),)
        if capture.answers
        else ()
    )
