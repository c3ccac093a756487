"""The top line of a served benchmark: is it a measurement, does the drafter work, is it faster than plain decoding."""

from collections.abc import Sequence

from orchestrator.compare.served import Draft, LoadFigures, PairedLoad, ServedFigures
from orchestrator.compare.served_harness import HarnessFigures
from orchestrator.compare.served_refused import too_long
from orchestrator.compare.served_speed import LEAST_REPEATS
from orchestrator.diagnosis.served_engine import simulates
from orchestrator.diagnosis.served_measurement import is_not_working, load_words
from orchestrator.diagnosis.served_tool import harness_line
from orchestrator.diagnosis.served_verdict import ServedVerdict
from remote_payload.schema.bench import BenchResult

WIDE = 1.25
"""From so much between the ends of the step cost's interval on, its middle is no break-even to speak of."""


def top_line(
    result: BenchResult,
    figures: ServedFigures,
    harness: Sequence[HarnessFigures] = (),
    voided: Sequence[str] = (),
) -> tuple[ServedVerdict, str]:
    """The verdict and its sentence; what stands first here hides what follows.

    `voided`: what makes a load no measurement for everybody who compares it later.
    """
    if figures.part is not None:
        return "invalid", f"the run ended early, {figures.part.words}: no measurement"
    if not figures.loads:
        return harness_line(harness) if harness else ("nothing_measured", "nothing was measured")
    if not figures.valid:
        return "invalid", _invalid(figures)
    spec = [load for load in figures.loads if load.side == "spec"]
    if simulates(result):
        return "simulated", "the accept length is simulated (SGLANG_SIMULATE_ACC_LEN): no statement about the drafter"
    told = [load for load in spec if load.acceptance is not None]
    if told and all(is_not_working(load) for load in told):
        most = max(load.acceptance.length.value or 0 for load in told if load.acceptance is not None)
        return "not_working", f"the drafter is not working: accept length {most:.2f}, nothing is accepted"
    suspicious = [item for item in figures.pairs if item.pairing.suspicious]
    if suspicious:
        worst = min(suspicious, key=lambda item: item.pairing.step_cost or 1.0)
        return "suspicious_baseline", (
            f"plain decoding looks too slow {load_words(worst.plain)} (step cost r = {worst.pairing.step_cost:.2f} "
            f"< 1): the speed-up cannot be trusted"
        )
    if voided:
        return "invalid", f"{'; '.join(voided)}: no measurement"
    alone = "; ".join(measured_words(load, figures.draft) for load in (spec or figures.loads)[:1])
    return _paired(figures.pairs, figures.draft) if figures.pairs else ("measured", alone)


def direction(item: PairedLoad) -> int:
    """1 = speculation is surely faster, -1 = surely slower, 0 = no telling."""
    pays = item.pairing.pays
    return 0 if pays is None else 1 if pays else -1


def measured_words(load: LoadFigures, draft: Draft) -> str:
    """One load in a line, e.g. `56.8 tok/s at 1 user (spec), accept length 1.90 of 2`."""
    line = f"{load.speed.throughput.value or 0:.1f} tok/s {load_words(load)}"
    found = load.acceptance
    if found is None:
        return line if load.side == "plain" else f"{line}, acceptance unknown: the answers do not tell of verify steps"
    if found.accept_length.value is None:
        return f"{line}, {found.tokens_per_verify.value or 0:.2f} tokens per verify step (accept length not told)"
    ceiling = "" if draft.ceiling is None else f" of {draft.ceiling}"
    return f"{line}, accept length {found.accept_length.value:.2f}{ceiling}"


def _invalid(figures: ServedFigures) -> str:
    bad = [load for load in figures.loads if not load.valid]
    failed = sum(load.failed for load in bad)
    if not failed:
        return f"no request was answered {load_words(bad[0])}: no measurement"
    more = ", ..." if len(bad) > 1 else ""
    told = f"{failed} request{'' if failed == 1 else 's'} failed"
    refused = {one.prompt: one for load in bad for one in load.refused}
    if refused and all(load.answered for load in bad):
        long = too_long([refused[prompt] for prompt in sorted(refused)])
        told = f"{told}, {long}"
    return f"{told} ({load_words(bad[0])}{more}): no measurement"


def _paired(pairs: Sequence[PairedLoad], draft: Draft) -> tuple[ServedVerdict, str]:
    """Of several loads the decided ones lead; every other one is told with its figure."""
    alike = [item for item in pairs if item.pairing.refused is None]
    if not alike:
        first = pairs[0]
        return "not_comparable", (
            f"speculation and plain decoding cannot be compared {_where(first)}: {first.pairing.refused}"
        )
    sides = {direction(item) for item in alike}
    verdict: ServedVerdict = "mixed" if {1, -1} <= sides else "faster" if 1 in sides else "slower"
    if sides == {0}:
        has_interval = any(item.pairing.speedup.low is not None for item in alike)
        verdict = "no_difference" if has_interval else "cannot_tell"
    leading = [next(item for item in alike if direction(item) == side) for side in (-1, 1) if side in sides]
    leading = leading or [next((item for item in alike if item.pairing.speedup.low is not None), alike[0])]
    lines = [_pair_words(item, draft) for item in leading]
    rest = [_short(item) for item in pairs if all(item is not one for one in leading)]
    return verdict, "; ".join([*lines, *([f"other loads: {', '.join(rest)}"] if rest else [])])


def _where(item: PairedLoad) -> str:
    return load_words(item.spec).removesuffix(" (spec)")


def _short(item: PairedLoad) -> str:
    if item.pairing.refused is not None or item.pairing.speedup.value is None:
        return f"not comparable {_where(item)}"
    word = {1: "faster", -1: "slower", 0: "no telling"}[direction(item)]
    return f"{item.pairing.speedup.value:.2f}x {_where(item)} ({word})"


def _repeats_words(item: PairedLoad) -> str:
    """How many repeats there are, and why they give no interval."""
    ours, theirs = len(item.spec.speed.throughputs), len(item.plain.speed.throughputs)
    if ours != theirs:
        return f"{ours} repeats of one side and {theirs} of the other: no pairs to tell their spread by"
    if ours >= LEAST_REPEATS:
        return f"{ours} repeats of each side that do not differ at all: their spread is unknown, not 0"
    plural = "" if ours == 1 else "s"
    return f"{ours} repeat{plural} of each side, {LEAST_REPEATS} are needed (--repeats {LEAST_REPEATS})"


def _pair_words(item: PairedLoad, draft: Draft) -> str:
    pairing = item.pairing
    ours, theirs = item.spec.speed.throughput.value, item.plain.speed.throughput.value
    figures = f"{ours or 0:.1f} against {theirs or 0:.1f} tok/s"
    if pairing.speedup.value is not None:
        figures += f" ({pairing.speedup.value:.2f}x)"
    if pairing.speedup.low is None:
        line = (
            f"cannot tell whether speculation is faster than plain decoding {_where(item)}: {figures} in "
            f"{_repeats_words(item)}"
        )
    else:
        word = {1: "faster than", -1: "slower than", 0: "not surely different from"}[direction(item)]
        line = f"{word} plain decoding {_where(item)}: {figures}{_only_by_itself(item)}"
    if pairing.accept_length is None:
        return line
    ceiling = "" if draft.ceiling is None else f" of {draft.ceiling}"
    return f"{line} at accept length {pairing.accept_length:.2f}{ceiling}{_cost_words(item, draft)}"


def _only_by_itself(item: PairedLoad) -> str:
    """Where the load alone would have decided, but not among so many."""
    speedup = item.pairing.speedup
    if direction(item) or speedup.low is None or speedup.high is None or speedup.low <= 1 <= speedup.high:
        return ""
    return " (by itself it would be, not after Holm's correction over the loads)"


def _cost_words(item: PairedLoad, draft: Draft) -> str:
    """What a step costs and from where on that pays; nothing where it is not known how surely."""
    cost, low, high = item.pairing.step_cost, item.pairing.step_cost_low, item.pairing.step_cost_high
    if cost is None:
        return ""
    if low is None or high is None:
        return f"; a speculative step costs about {cost:.2f} plain steps (no interval, so no break-even)"
    line = f"; a speculative step costs {cost:.2f} ({low:.2f} to {high:.2f}) plain steps, "
    if draft.ceiling is not None and low >= draft.ceiling:
        return f"{line}so it cannot pay: no accept length is above {draft.ceiling}"
    if draft.ceiling is not None and high >= draft.ceiling:
        return f"{line}so whether it can pay at all is open: no accept length is above {draft.ceiling}"
    if high > WIDE * low:
        return f"{line}so it pays above an accept length of {low:.2f} to {high:.2f}, more --repeats tell it closer"
    return f"{line}so it pays above that accept length"
