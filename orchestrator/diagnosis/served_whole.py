"""A served benchmark as a whole: its text, its warm-up, the answers' own numbers, the machine's clocks."""

from collections.abc import Iterator, Sequence

from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count
from orchestrator.diagnosis.served_asked import seen
from remote_payload.schema.bench import PointFacts, RequestSample
from remote_payload.schema.bench_machine import MachineSample
from remote_payload.schema.workload import WorkloadFacts

ANSWERS = Subject(check="load", title="answers' own numbers")
TEXT = Subject(check="load", title="text")
WARM_UP = Subject(check="load", title="warm-up")
MACHINE = Subject(check="load", title="GPU clocks")

SLOWDOWNS = {0x08: "hardware slowdown", 0x20: "software thermal limit", 0x40: "heat", 0x80: "power brake"}
"""Bits of nvidia-smi's active clock reasons that slow a GPU below what it can (nvml.h, nvmlClocksEventReason*)."""
USUAL = {0x01: "idle", 0x02: "clocks set by an application", 0x04: "power cap", 0x10: "sync boost", 0x100: "display"}
"""The others: a power cap is the usual state of a GPU at work."""
BUSY = 0.5
"""Share of time busy from which on a GPU counts as at work."""
CLOCK_SPREAD = 0.05
"""Relative spread of the SM clock within a run beyond which the machine is part of what was measured."""


def check_workload(workload: WorkloadFacts) -> Iterator[CheckResult]:
    """Text on which an accept length means little."""
    if workload.form == "random":
        yield TEXT.finding(
            "the prompts are random tokens: their accept length says nothing about any text",
            severity="serious",
            cause="data",
            evidence=(seen("prompts", workload.source),),
            remedy=("give the prompts that you serve (--prompts); random ones serve for step costs alone",),
            refuted_by="the same accept length on real text",
        )
    if workload.ignore_eos:
        yield TEXT.finding(
            "the end of text is ignored: what follows it is no text, and its acceptance is nobody's",
            severity="note",
            cause="data",
            evidence=(seen("ignore_eos", "true"),),
            remedy=("leave --ignore-eos out where accept lengths are compared with served ones",),
            refuted_by="the same accept length with the end respected",
        )


def check_answers(requests: Sequence[RequestSample]) -> CheckResult:
    """Whether the identities of every answer's own numbers hold."""
    broken = [item for item in requests if item.broken_identities]
    told = sum(item.verify_steps is not None for item in requests)
    if not broken and not told:
        return ANSWERS.cannot_tell(
            "no answer tells of verify steps: there are no identities to hold", needs="answers with spec_verify_ct"
        )
    if not broken:
        return ANSWERS.passed(f"the identities of the answers' own numbers hold in all {told} answers that tell them")
    first = broken[0].broken_identities[0]
    return ANSWERS.finding(
        f"the server's own numbers contradict each other in {len(broken)} of {len(requests)} answers",
        severity="serious",
        cause="engine",
        evidence=(count("answers with a broken identity", len(broken), len(requests)), seen("the first", first)),
        remedy=("this version's acceptance figures cannot be trusted: compare throughput alone, and report it",),
        refuted_by="another version of SGLang with the same prompts",
    )


def check_warm_up(points: Sequence[PointFacts]) -> Iterator[CheckResult]:
    """A warm-up that had to ask what is measured."""
    again = [point for point in points if point.warmup_repeats_prompts]
    if not again:
        return
    kept = [point for point in again if not point.flushed]
    yield WARM_UP.finding(
        f"the warm-up asked prompts that are measured, in {len(again)} of {len(points)} points: the workload has no "
        + ("others, and the prefix cache kept them" if kept else "others; the prefix cache was flushed after it"),
        severity="minor" if kept else "note",
        cause="data",
        evidence=(count("points whose warm-up did", len(again), len(points)),),
        remedy=("leave some prompts for it: more lines in --prompts, or a lower --max-prompts",),
        refuted_by="cached tokens 0",
    )


def slowdowns(samples: Sequence[MachineSample]) -> tuple[tuple[int, str], ...]:
    """(GPU, why) of those that were held back while they worked; each once, in order of time."""
    found: dict[tuple[int, str], None] = {}
    for item in samples:
        if item.gpu is not None and (item.utilization or 0) > BUSY:
            bits = _bits(item.throttle)
            found |= {(item.gpu, words): None for bit, words in SLOWDOWNS.items() if bits & bit}
    return tuple(found)


def _bits(text: str | None) -> int:
    try:
        return int(text or "0", 16)
    except ValueError:
        return 0  # words of another tool


def reasons_in_words(samples: Sequence[MachineSample]) -> str:
    """Every reason that was given for a clock below the highest, slowing or not."""
    found = 0
    for item in samples:
        found |= _bits(item.throttle)
    words = [text for bit, text in {**USUAL, **SLOWDOWNS}.items() if found & bit]
    return ", ".join(words) or "none"


def check_machine(samples: Sequence[MachineSample]) -> Iterator[CheckResult]:
    """Clocks that moved, or were held back, while it was measured."""
    for gpu, why in slowdowns(samples):
        own = [item for item in samples if item.gpu == gpu and (item.utilization or 0) > BUSY]
        yield MACHINE.finding(
            f"GPU {gpu} was slowed down while it was measured: {why}",
            severity="serious",
            cause="engine",
            evidence=tuple(
                Evidence(name=name, value=f"{min(values):.0f} .. {max(values):.0f} {unit}")
                for name, unit, values in (
                    ("SM clock, least and most", "MHz", [item.sm_clock_mhz for item in own if item.sm_clock_mhz]),
                    ("temperature, least and most", "C", [item.temperature_c for item in own if item.temperature_c]),
                    ("power, least and most", "W", [item.power_w for item in own if item.power_w]),
                )
                if values
            ),
            remedy=("see to its cooling and power, or take another GPU, and measure again",),
            refuted_by="the same throughput with no reason given",
        )
    busy = [item for item in samples if item.gpu is not None and item.sm_clock_mhz and (item.utilization or 0) > BUSY]
    for gpu in sorted({item.gpu for item in busy if item.gpu is not None}):
        clocks = sorted(item.sm_clock_mhz or 0 for item in busy if item.gpu == gpu)
        spread = (clocks[-1] - clocks[0]) / clocks[-1]
        reasons = reasons_in_words([item for item in busy if item.gpu == gpu])
        if spread > CLOCK_SPREAD:
            yield MACHINE.finding(
                f"GPU {gpu}'s clock moved by {100 * spread:.0f} % while it was measured",
                severity="minor",
                cause="engine",
                evidence=(
                    Evidence(name="SM clock, least and most", value=f"{clocks[0]:.0f} .. {clocks[-1]:.0f} MHz"),
                    Evidence(name="reasons given", value=reasons),
                ),
                remedy=("compare only sides measured in turn (--repeats), or lock the clocks on the host",),
                refuted_by="the same throughput at a steady clock",
            )
