"""K7: whether the captured states are what their labels say. Told from the rows alone.

The embedding output is a pure function of the token id, and points along the token's row of the embedding; the final
state answers the logit lens; in between the residual stream grows with depth. Only what contradicts clearly is a
finding: neighbouring layers look alike, and growth is no law.
"""

import itertools
from dataclasses import replace

from orchestrator.compare.gap import GREEDY_SHARE
from orchestrator.compare.stats import Proportion, wilson
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, led_by, share
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
LEAST_TEACHER = 0.3
EARLY = 0.75
"""Depth below which a state cannot answer the logit lens as the final one does."""
FALLEN = 0.05
"""Share of the logit lens's positions by which a deeper state must surely answer worse than a shallower one, besides
being smaller, before their labels are doubted."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each label that the rows contradict."""
    result = measured.result
    slots, states = result.rows.slots, result.rows.states
    if not slots:
        return (SLOTS.cannot_tell("the captured states were not looked at", needs="a run of this version"),)
    evidence = tuple(line for slot in slots for line in _evidence(slot, states))
    dead = [slot for slot in slots if is_dead(slot)]
    slots = tuple(slot for slot in slots if slot not in dead)  # they say nothing of where they were captured
    found = [_dead(slot) for slot in dead]
    found += [_twice(slot) for slot in slots if slot.equals_slot is not None]
    if states is not None and len(states) >= len(slots) + len(dead):
        found += [item for slot in slots if (item := _mislabelled(slot, states[slot.slot], result)) is not None]
        found += _out_of_order(slots, states)
    if found:
        return tuple(found)
    if states is None:
        needs = "labels: `--states` (HF hidden_states indices, `embed` for 0)"
        return (SLOTS.cannot_tell(f"the states carry no labels{_seen(result)}", needs=needs, evidence=evidence),)
    return (SLOTS.passed(f"nothing contradicts the labels{_seen(result)}", evidence),)


def is_dead(slot: SlotFacts) -> bool:
    """Whether a slot holds one vector for all tokens: the capture never wrote it."""
    return slot.rms == 0.0 if slot.constant is None else slot.constant  # the former by earlier versions' results


def embedding_beside_its_token(result: StandaloneResult) -> int | None:
    """A slot that lies along the embedding of its own tokens, so that its states stand right; None = there is none."""
    along = (slot for slot in result.rows.slots if (slot.embedding_share or 0.0) >= ALONG)
    return next((slot.slot for slot in along), None)


def is_embedding(slot: SlotFacts) -> bool | None:
    """Whether a slot is the embedding output; None = the rows do not tell."""
    if is_dead(slot):
        return False
    if slot.embedding_share is not None and slot.embedding_share >= ALONG:
        return True
    if slot.repeats >= LEAST_REPEATS:
        return slot.repeats_equal >= PURE * slot.repeats
    return False if slot.embedding_share is not None and slot.embedding_share <= NOT_ALONG else None


def is_shifted(slot: SlotFacts) -> bool:
    """Whether a slot is the embedding output, but of the token beside: check K10 names that."""
    own = slot.embedding_share
    return own is not None and own < ALONG and max(slot.embedding_share_beside, default=0.0) >= ALONG


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
    if label == 0 and embedding is False and not is_shifted(slot):
        text = f"slot {slot.slot} is labelled as the embedding output, but is not a function of the token"
        return _proven(text, slot, "token")
    if label != 0 and embedding is True:
        return _proven(f"slot {slot.slot} is labelled as state {label}, but is the embedding output", slot, "token")
    if layers is None or final is None:
        return None
    if final and label < EARLY * layers and _is_true_teacher(result):
        text = f"slot {slot.slot} is labelled as state {label} of {layers}, but answers like the final one"
        return _proven(text, slot, "lens")
    if not final and label == layers and max(slot.lens_normed_hits, slot.lens_raw_hits) < 0.5 * slot.lens_positions:
        text = f"slot {slot.slot} is labelled as the last of {layers} layers, but does not answer so"
        return _proven(text, slot, "lens")
    return None


def early_answers(result: StandaloneResult) -> tuple[tuple[int, int], ...]:
    """(slot, label) of states from far below the end that answer as well as the stored final state: one is wrong."""
    states, layers = result.rows.states, result.declared.target_layers
    if states is None or layers is None:
        return ()
    return tuple(
        (slot.slot, states[slot.slot])
        for slot in result.rows.slots
        if slot.slot < len(states) and states[slot.slot] < EARLY * layers and answers_lens(slot, result)
    )


def _is_true_teacher(result: StandaloneResult) -> bool:
    """Whether some rows look greedy: then the final state is what it claims to be, and the slot is not."""
    teacher = result.rows.teacher
    return teacher is not None and any(agreement >= GREEDY_SHARE for agreement in teacher.rows_agreeing)


def _twice(slot: SlotFacts) -> CheckResult:
    return _proven(
        f"slots {slot.equals_slot} and {slot.slot} hold the same numbers: one state was captured twice",
        slot,
        "equals slot",
    )


def _dead(slot: SlotFacts) -> CheckResult:
    zero = slot.rms == 0.0
    what = "zeros" if zero else "one and the same vector"
    found = _finding(f"slot {slot.slot} holds {what} for every token: the capture wrote nothing there", slot)
    return replace(
        found,
        evidence=led_by(found.evidence, "median RMS") if zero else led_by(found.evidence, "the same vector"),
        remedy=(
            f"capture the rows again: slot {slot.slot} was allocated and never filled; no label and no config mends it",
            "if training used such rows, the drafter learnt without this state: train it again on whole ones",
        ),
    )


def _proven(summary: str, slot: SlotFacts, proof: str) -> CheckResult:
    """A finding whose first evidence is the line that names `proof`."""
    found = _finding(summary, slot)
    return replace(found, evidence=led_by(found.evidence, proof))


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


def _out_of_order(slots: tuple[SlotFacts, ...], states: tuple[int, ...]) -> list[CheckResult]:
    """Deeper states that are smaller and answer the logit lens worse; the embedding's size says nothing."""
    by_depth = sorted((slot for slot in slots if states[slot.slot] != 0), key=lambda slot: states[slot.slot])
    wrong = [pair for pair in itertools.pairwise(by_depth) if _is_fallen(*pair)]
    if not wrong:
        return []
    shallow, deep = wrong[0]
    before, after = (f"slot {slot.slot} (labelled state {states[slot.slot]})" for slot in (shallow, deep))
    text = (
        f"the labels of the states contradict their numbers: {after} is smaller and further from the answer than "
        f"{before}: states or labels are exchanged"
    )
    exchanged = list(states)
    by_answer = sorted(by_depth, key=lambda slot: _lens(slot).value or 0.0)
    for slot, label in zip(by_answer, sorted(states[slot.slot] for slot in by_depth), strict=True):
        exchanged[slot.slot] = label
    names = ",".join("embed" if state == 0 else str(state) for state in exchanged)
    proving = (_lens_evidence(deep, states), _lens_evidence(shallow, states))
    rest = tuple(line for slot in by_depth for line in _evidence(slot, states) if line not in proving)
    remedy = (
        f"run again with the labels in the order of the answers, `--states {names}`: where serving then feeds what "
        "reads best, only the labels were wrong",
        "change no config before that; a fresh forward (`--capture-rows 2`) tells as well which state a slot is",
    )
    return [replace(_finding(text, deep), evidence=(*proving, *rest), remedy=remedy)]


def _lens_evidence(slot: SlotFacts, states: tuple[int, ...]) -> Evidence:
    """The better of the two logit lenses, by which the order is judged."""
    normed = slot.lens_normed_hits >= slot.lens_raw_hits
    return _evidence(slot, states)[-2 if normed else -1]


def _is_fallen(shallow: SlotFacts, deep: SlotFacts) -> bool:
    before, after = (_lens(slot) for slot in (shallow, deep))
    sure = before.low is not None and after.high is not None and before.low - after.high > 0
    return deep.rms < shallow.rms and sure and (before.value or 0.0) - (after.value or 0.0) > FALLEN


def _lens(slot: SlotFacts) -> Proportion:
    return wilson(max(slot.lens_normed_hits, slot.lens_raw_hits), slot.lens_positions)


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
    if slot.constant:
        lines.append(share(f"{where}: tokens with the same vector", slot.tokens, slot.tokens))
    if slot.equals_slot is not None:
        lines.append(count(f"{where}: equals slot", slot.equals_slot))
    return tuple(lines)
