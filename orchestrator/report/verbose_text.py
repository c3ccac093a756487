"""What only `--verbose` shows: every reading with its cost, how the drafter was read, what the captured states are."""

from orchestrator.report.findings_text import wrapped
from orchestrator.report.head import labelled
from orchestrator.report.table import listed
from orchestrator.report.words import UNKNOWN, mebibytes, percent
from remote_payload.schema import CheckpointFacts, ReadingFacts, SlotFacts, StandaloneResult

MOST_SEARCHED = 12
"""Readings that only the search looked at and that are listed, best first; the JSON has all."""
ON_FEW = (
    "only searched, on the beginnings of as many rows as stand there: no figures to be held against those above, nor "
    "against those of other rows"
)
LEGEND = "accepted = drafts accepted a position; seconds = time to compute it"
LENS = (
    "embedding = share of the state along the token's embedding; same id = states that repeat exactly where the token "
    "does; lens = next tokens that the target's head reads off the state, with and without the final norm"
)


def reading_lines(result: StandaloneResult, width: int) -> list[str]:
    """Every reading on all rows, the best of those only searched, each with its time; then what was skipped and why."""
    full = sorted((item for item in result.readings if item.stage == "full"), key=lambda item: -_score(item))
    searched = [item for item in result.readings if item.stage != "full"]
    searched.sort(key=lambda item: (item.leading_hits is None, -_score(item)))
    head = ["reading", "stage", "rows", "step 1", "accepted", "seconds"]
    lines = listed([head, *(_reading_cells(item) for item in full)], width)
    if searched:
        lines += wrapped(ON_FEW, width, then="  ")
        lines += listed([_reading_cells(item) for item in searched[:MOST_SEARCHED]], width)
    if len(searched) > MOST_SEARCHED:
        lines.append(f"  and {len(searched) - MOST_SEARCHED} more that read no better, see --json")
    lines += wrapped(LEGEND, width, then="  ")
    for skipped in result.skipped_readings:
        lines += wrapped(f"not tried: {skipped.name}: {skipped.reason}", width)
    return lines


def checkpoint_lines(result: StandaloneResult, width: int) -> list[str]:
    """Dialect, computation, files, tensors that are odd, and what SGLang makes of it."""
    facts = result.checkpoint
    lines = [
        ("draft", facts.draft),
        ("target", facts.target or "none given"),
        ("dialect", _dialect(facts)),
        ("shape", _shape(facts)),
        *(("flag", _flag_words(facts, index)) for index in range(len(facts.graph))),
        *(("config", f"{note.key}: {note.problem}; {note.remedy}") for note in facts.notes),
        *(("tensor", f"{problem.problem}: {problem.name}: {problem.found}") for problem in facts.problems),
        *(("file", words) for words in _files(facts)),
        ("served", _served(result)),
    ]
    return labelled(lines, width)


def slot_lines(result: StandaloneResult, width: int) -> list[str]:
    """What each captured state says about itself."""
    rows = result.rows
    if not rows.slots:
        return [f"  {rows.captured_states} captured states, not looked at one by one"]
    head = ["slot", "label", "RMS", "embedding", "same id", "lens: normed, raw"]
    return [
        *listed([head, *(_slot_cells(slot, rows.states) for slot in rows.slots)], width),
        *wrapped(LENS, width, then="  "),
    ]


def _score(item: ReadingFacts) -> float:
    hits = item.first_step_hits if item.leading_hits is None else item.leading_hits
    return hits / item.positions if item.positions else 0.0


def _reading_cells(item: ReadingFacts) -> list[str]:
    first = item.first_step_hits / item.positions if item.positions else None
    accepted = UNKNOWN
    if item.leading_hits is not None and item.positions:
        accepted = f"{item.leading_hits / item.positions:.2f}"
    return [item.name, item.stage, str(item.rows), percent(first), accepted, f"{item.seconds:.2f}"]


def _dialect(facts: CheckpointFacts) -> str:
    dialect = facts.dialect
    if dialect is None:
        return UNKNOWN
    also = f"; could also be {', '.join(dialect.also_possible)}" if dialect.also_possible else ""
    return f"{dialect.name}: {'; '.join(dialect.evidence)}{also}"


def _shape(facts: CheckpointFacts) -> str:
    vocabulary = f"vocabulary {facts.draft_vocab_size} of {facts.vocab_size}"
    return (
        f"{facts.layers} layer{'' if facts.layers == 1 else 's'}, hidden {facts.hidden_size} (target "
        f"{facts.target_hidden_size}), {facts.slots} states, {facts.attention} attention, {vocabulary}"
    )


def _flag_words(facts: CheckpointFacts, index: int) -> str:
    flag = facts.graph[index]
    words = f"{flag.name}={flag.value} by {flag.source}: {flag.evidence}"
    if flag.contradicted_by is not None:
        words += f"; overruled: {flag.contradicted_by}"
    if flag.served is not None:
        why = f" ({flag.served_why})" if flag.served_why is not None else ""
        words += f"; SGLang computes {flag.name}={flag.served}{why}"
    return words


def _files(facts: CheckpointFacts) -> list[str]:
    return [
        f"{file.name}: {mebibytes(file.size_bytes)}, {file.role}{'' if file.used else ', not used'}"
        + (f"; {file.problem}" if file.problem is not None else "")
        for file in facts.files
    ]


def _served(result: StandaloneResult) -> str:
    declared = result.declared
    states = UNKNOWN if declared.captured is None else ",".join(map(str, declared.captured))
    changes = f"; computes otherwise: {', '.join(declared.changes)}" if declared.changes else ""
    problem = f"; {declared.problem}" if declared.problem is not None else ""
    return f"hidden_states {states} by the rule `{declared.rule}`, {declared.valid_for}{changes}{problem}"


def _slot_cells(slot: SlotFacts, states: tuple[int, ...] | None) -> list[str]:
    label = (
        "none"
        if states is None or slot.slot >= len(states)
        else "embed"
        if states[slot.slot] == 0
        else str(states[slot.slot])
    )
    same = f"{slot.repeats_equal} of {slot.repeats}"
    lens = UNKNOWN
    if slot.lens_positions:
        lens = ", ".join(percent(hits / slot.lens_positions) for hits in (slot.lens_normed_hits, slot.lens_raw_hits))
    return [str(slot.slot), label, f"{slot.rms:.3g}", percent(slot.embedding_share), same, lens]
