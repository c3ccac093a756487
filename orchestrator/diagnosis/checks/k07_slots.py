"""K7: whether the captured states are what their labels say. Told from the rows alone.

The embedding output is a pure function of the token id, and points along the token's row of the embedding; the final
state answers the logit lens; in between the residual stream grows with depth. Only what contradicts clearly is a
finding: neighbouring layers look alike, and growth is no law.
"""

import itertools

from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, share
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import SlotFacts, StandaloneResult

SLOTS = Subject(check="K7", title="captured states")

PURE = 0.98
"""Share of repeated tokens that have the very same vector: all, in an embedding, but for a flaw of the capture."""
LEAST_REPEATS = 20
ALONG = 0.9
"""Share of tokens that point along their embedding row."""
NOT_ALONG = 0.1
FINAL = 0.97
"""Share of the teacher's agreement with the next token that the logit lens must reach to call a state the final one."""
LEAST_TEACHER = 0.5
EARLY = 0.75
"""Depth below which a state cannot answer the logit lens as the final one does."""
SHRUNK = 0.5
"""RMS of a deeper state over that of a shallower one below which their labels are doubted."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each label that the rows contradict."""
    result = measured.result
    slots, states = result.rows.slots, result.rows.states
    if not slots:
        return (SLOTS.cannot_tell("the captured states were not looked at", needs="a run of this version"),)
    evidence = tuple(line for slot in slots for line in _evidence(slot, states))
    found = [_twice(slot) for slot in slots if slot.equals_slot is not None]
    if states is not None and len(states) >= len(slots):
        found += [item for slot in slots if (item := _mislabelled(slot, states[slot.slot], result)) is not None]
        found += _shrinking(slots, states)
    if found:
        return tuple(found)
    if states is None:
        needs = "labels: `--states` (HF hidden_states indices, `embed` for 0)"
        return (SLOTS.cannot_tell(f"the states carry no labels{_seen(result)}", needs=needs, evidence=evidence),)
    return (SLOTS.passed(f"nothing contradicts the labels{_seen(result)}", evidence),)


def is_embedding(slot: SlotFacts) -> bool | None:
    """Whether a slot is the embedding output; None = the rows do not tell."""
    if slot.embedding_share is not None and slot.embedding_share >= ALONG:
        return True
    if slot.repeats >= LEAST_REPEATS:
        return slot.repeats_equal >= PURE * slot.repeats
    return False if slot.embedding_share is not None and slot.embedding_share <= NOT_ALONG else None


def answers_lens(slot: SlotFacts, result: StandaloneResult) -> bool | None:
    """Whether a slot answers the logit lens as the stored final state does; None = the rows do not tell."""
    teacher = result.rows.teacher
    if not slot.lens_positions or teacher is None or not teacher.positions:
        return None
    agreement = teacher.agrees / teacher.positions
    if agreement < LEAST_TEACHER:
        return None
    return max(slot.lens_normed_hits, slot.lens_raw_hits) >= FINAL * agreement * slot.lens_positions


def _mislabelled(slot: SlotFacts, label: int, result: StandaloneResult) -> CheckResult | None:
    embedding, final = is_embedding(slot), answers_lens(slot, result)
    layers = result.declared.target_layers
    if label == 0 and embedding is False:
        return _finding(
            f"slot {slot.slot} is labelled as the embedding output, but is not a function of the token", slot
        )
    if label != 0 and embedding is True:
        return _finding(f"slot {slot.slot} is labelled as state {label}, but is the embedding output", slot)
    if layers is None or final is None:
        return None
    if final and label < EARLY * layers:
        return _finding(
            f"slot {slot.slot} is labelled as state {label} of {layers}, but answers like the final one", slot
        )
    if not final and label == layers and max(slot.lens_normed_hits, slot.lens_raw_hits) < 0.5 * slot.lens_positions:
        return _finding(f"slot {slot.slot} is labelled as the last of {layers} layers, but does not answer so", slot)
    return None


def _twice(slot: SlotFacts) -> CheckResult:
    return _finding(
        f"slots {slot.equals_slot} and {slot.slot} hold the same numbers: one state was captured twice", slot
    )


def _finding(summary: str, slot: SlotFacts, severity: Severity = "serious") -> CheckResult:
    return SLOTS.finding(
        summary,
        severity=severity,
        cause="data",
        evidence=_evidence(slot, None),
        remedy=(
            "give the labels that the capture really had (`--states`, HF hidden_states indices: i is the output of "
            "layer i-1, so an engine's layer id may be one less), or capture again",
        ),
        refuted_by="check `capture`: a fresh forward of the target that agrees with the label",
    )


def _shrinking(slots: tuple[SlotFacts, ...], states: tuple[int, ...]) -> list[CheckResult]:
    """Deeper states that are much smaller; the embedding's size says nothing, nor does a normed final state's."""
    by_depth = sorted((slot for slot in slots if states[slot.slot] != 0), key=lambda slot: states[slot.slot])
    found = []
    for shallow, deep in itertools.pairwise(by_depth):
        if deep.rms < SHRUNK * shallow.rms and deep.lens_raw_hits <= deep.lens_normed_hits:
            text = (
                f"slot {deep.slot} (state {states[deep.slot]}) is much smaller than slot {shallow.slot} "
                f"(state {states[shallow.slot]}), though the residual stream grows with depth: are they swapped?"
            )
            found.append(_finding(text, deep, "note"))
    return found


def _seen(result: StandaloneResult) -> str:
    """What was recognised, in words."""
    embeddings = [slot.slot for slot in result.rows.slots if is_embedding(slot)]
    finals = [slot.slot for slot in result.rows.slots if answers_lens(slot, result)]
    parts = [f"slot {slot} is the embedding output" for slot in embeddings]
    parts += [f"slot {slot} answers like the final state" for slot in finals]
    return f": {', '.join(parts)}" if parts else ""


def _evidence(slot: SlotFacts, states: tuple[int, ...] | None) -> tuple[Evidence, ...]:
    label = f" (state {states[slot.slot]})" if states is not None and slot.slot < len(states) else ""
    where = f"slot {slot.slot}{label}"
    lines = [Evidence(name=f"{where}: median RMS", value=slot.rms, n=slot.tokens)]
    if slot.embedding_share is not None:
        along = round(slot.embedding_share * slot.tokens)
        lines.append(share(f"{where}: tokens along their embedding row", along, slot.tokens))
    if slot.repeats:
        lines.append(share(f"{where}: repeated tokens with the same vector", slot.repeats_equal, slot.repeats))
    if slot.lens_positions:
        lines.append(
            share(f"{where}: logit lens with norm is the next token", slot.lens_normed_hits, slot.lens_positions)
        )
        lines.append(share(f"{where}: logit lens without norm", slot.lens_raw_hits, slot.lens_positions))
    if slot.equals_slot is not None:
        lines.append(count(f"{where}: equals slot", slot.equals_slot))
    return tuple(lines)
