"""The readings of a checkpoint as text: the two numbers that prove the verdict, and a column of figures a reading."""

from collections.abc import Mapping, Sequence

from orchestrator.compare.counted import counted
from orchestrator.compare.stats import CONFIDENCE, Estimate
from orchestrator.diagnosis.measured import Split
from orchestrator.diagnosis.mis_wired import state_names
from orchestrator.diagnosis.verdict import SEPARATION, Effect, MeasuredReading, WiringVerdict
from orchestrator.report.content import columns
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, change, length, moved, number, percent, proportion
from remote_payload.schema import GraphFlag


def proof(wiring: WiringVerdict, width: int) -> list[str]:
    """The two numbers: step-1 accuracy and accept length of the best reading and of what it was compared with."""
    best = wiring.best.figures
    other = wiring.declared if wiring.against == "declared" else wiring.runner_up
    if wiring.against is None or other is None or wiring.difference is None or wiring.ratio is None:
        return table(
            [
                ["  step-1 accuracy", f"{percent(best.first_step.value)} best reading ({wiring.best.facts.name})"],
                ["  accept length", f"{number(best.accept_length_walk.value)} best reading"],
            ]
        )
    names, arrow, sides = ("declared", "runner-up"), "against", (best, other.figures)
    if wiring.against == "declared":
        names, arrow, sides = ("as served", "as it reads best"), "->", (other.figures, best)
    lengths = [number(side.accept_length_walk.value) for side in sides]
    effect = _blind_to_step_one(wiring)
    if effect is None:
        accuracies = [percent(side.first_step.value) for side in sides]
        first = ("step-1 accuracy", *accuracies, change(wiring.difference, "points"))
    else:
        first = _accepted(effect, wiring.best)
    measures = (first, ("accept length", *lengths, change(wiring.ratio, "%")))
    numbers = table([[label, f"{a} {names[0]}", arrow, f"{b} {names[1]}"] for label, a, b, _ in measures], "  ")
    changes = [difference for *_, difference in measures]
    beside = [f"{line}  {what}" for line, what in zip(_even(numbers), changes, strict=True)]
    if max(map(len, beside)) <= width:
        return beside
    return [part for line, what in zip(numbers, changes, strict=True) for part in (line, f"    {what}")]


def _blind_to_step_one(wiring: WiringVerdict) -> Effect | None:
    """What proves a mis-read drafter that step 1 cannot show, as it does not see how later steps are fed."""
    low = None if wiring.difference is None else wiring.difference.low
    if wiring.against != "declared" or not wiring.misread or (low is not None and low > SEPARATION):
        return None
    return max(wiring.misread, key=lambda effect: _value(effect.difference))


def _accepted(effect: Effect, best: MeasuredReading) -> tuple[str, str, str, str]:
    ahead = _value(effect.difference)
    ours = _value(best.figures.accept_length_mean) - 1
    assert effect.difference is not None  # it is proven
    change_words = moved(effect.difference, "a position") + f", {counted(effect.difference.rows, 'row')}"
    return ("accepted drafts", number(ours - ahead), number(ours), change_words)


def _value(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None or estimate.value is None else estimate.value


def figures(
    wiring: WiringVerdict, heldout: Split | None, graph: Sequence[GraphFlag], width: int, *, verbose: bool
) -> list[list[str]]:
    """One column a reading; as many tables as the width asks for. `graph`: what the checkpoint itself says."""
    shown = columns(wiring)
    own = {flag.name: flag.value for flag in graph}
    differing = _differing(shown)
    labels = ["", "reading", *(["computed with"] if differing else []), "states", "step 1 accuracy"]
    labels += [f"step {step} after hit" for step in range(2, wiring.best.figures.steps + 1)]
    labels += ["accept length"]
    if heldout is not None:
        labels += ["held-out step 1", "held-out accept len"]
    if verbose:
        labels += ["accept len, mean", "accept len, rows", "tokens per verify"]
    told = [_computed(item, differing, own) for _, item in shown]
    cells = [
        _column(role, item, heldout, words, verbose=verbose) for (role, item), words in zip(shown, told, strict=True)
    ]
    label_width = max(map(len, labels)) + 2
    tables: list[list[list[str]]] = []
    used = width
    for column in cells:
        column_width = max(map(len, column))
        if used + column_width > width:
            tables.append([])
            used = label_width
        tables[-1].append(column)
        used += column_width + 2
    return [table([list(row) for row in zip(labels, *group, strict=True)]) for group in tables]


def widened(wiring: WiringVerdict) -> list[str]:
    """Why the difference in the headline has an interval of its own level."""
    difference = wiring.difference
    if difference is None or difference.low is None or difference.confidence == CONFIDENCE:
        return []
    level = difference.confidence
    return [
        f"The first difference has a {100 * level:.4g} % interval, wider than one of 95 %, because the best of several "
        "readings was picked on these very rows."
    ]


def _differing(shown: Sequence[tuple[str, MeasuredReading]]) -> tuple[str, ...]:
    """The choices in which any reading computes otherwise than the checkpoint says."""
    return tuple(dict.fromkeys(change.split("=")[0] for _, item in shown for change in item.facts.changes))


def _computed(item: MeasuredReading, differing: Sequence[str], own: Mapping[str, str]) -> str:
    """How a reading makes these choices; the checkpoint's own value where it changes nothing."""
    changes = dict(change.split("=", 1) for change in item.facts.changes)
    if not changes and not all(key in own for key in differing):
        return "as the checkpoint says"
    return " ".join(f"{key}={changes.get(key, own.get(key, UNKNOWN))}" for key in differing)


def _column(role: str, item: MeasuredReading, heldout: Split | None, told: str, *, verbose: bool) -> list[str]:
    own, walk, facts = item.figures, item.figures.walk, item.facts
    cells = [
        role,
        f"slots {','.join(map(str, facts.slots))} offset {facts.token_offset:+d}",
        *([told] if told else []),
        state_names(item.facts.states),
        proportion(own.first_step),
        *(proportion(share) for share in own.conditional[1:]),
        length(own.accept_length_walk, walk.verifies),
    ]
    if heldout is not None:
        other = heldout.figures.get(item.facts.name)
        unmeasured = "not measured"
        cells.append(unmeasured if other is None else proportion(other.first_step))
        cells.append(unmeasured if other is None else length(other.accept_length_walk, other.walk.verifies))
    if verbose:
        cells.append(length(own.accept_length_mean, sum(row.whole for row in own.counts)))
        cells.append(str(own.accept_length_walk.rows))
        cells.append(f"{walk.tokens / walk.verifies:.2f} n={walk.verifies}" if walk.verifies else f"{UNKNOWN} n=0")
    return cells


def _even(lines: list[str]) -> list[str]:
    size = max(map(len, lines))
    return [line.ljust(size) for line in lines]
