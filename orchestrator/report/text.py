"""The report on one run as a text: the verdict, the two numbers that prove it, the fix, then all figures."""

import textwrap

from orchestrator.compare.stats import CONFIDENCE
from orchestrator.diagnosis.advice import state_names
from orchestrator.diagnosis.verdict import MeasuredReading, WiringVerdict
from orchestrator.report.content import RunReport, StandaloneReport, columns
from orchestrator.report.head import head, labelled
from orchestrator.report.table import table
from orchestrator.report.words import (
    UNKNOWN,
    change,
    length,
    mebibytes,
    percent,
    proportion,
    seconds,
)
from remote_payload.schema import StandaloneResult

DEFINITIONS = (
    "Step s counts while the chain proposes response tokens; a hit equals the target's greedy choice. Step 1 counts "
    "each response position once, step s > 1 those whose earlier steps all hit. [..] is a 95 % interval: Wilson over "
    "positions for shares, over rows for accept lengths. Accept length = accepted draft tokens + 1 a verify step: the "
    "mean over positions, and the walk a server takes (jump by accepted + 1; n = verify steps). "
    "Tokens per verify count the prefill's token too."
)

SHOWN_SKIPPED = 5


def run_text(report: RunReport, *, width: int = 110) -> str:
    """The whole report, lines of at most `width` columns where the content allows."""
    blocks = [head(report.record)]
    if report.standalone is not None:
        blocks = [*_standalone(report.standalone, width), blocks[0]]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _standalone(report: StandaloneReport, width: int) -> list[list[str]]:
    wiring = report.wiring
    fix = [line for item in wiring.fix for line in _wrap(item, width)]
    return [
        [_headline(wiring)],
        _proof(wiring, width),
        ["What to do:", *fix] if fix else [],
        *_figures(wiring, width),
        textwrap.wrap(" ".join([DEFINITIONS, *_widened(wiring)]), width),
        _circumstances(report, width),
    ]


def _widened(wiring: WiringVerdict) -> list[str]:
    """Why the difference in the headline has an interval of its own level."""
    difference = wiring.difference
    if difference is None or difference.low is None or difference.confidence == CONFIDENCE:
        return []
    level = difference.confidence
    return [
        f"The difference in step-1 accuracy has a {100 * level:.4g} % interval, wider than one of 95 %, because the "
        "best of several readings was picked on these very rows."
    ]


def _proof(wiring: WiringVerdict, width: int) -> list[str]:
    """The two numbers: step-1 accuracy and accept length of the best reading and of what it was compared with."""
    best = wiring.best.figures
    other = wiring.declared if wiring.against == "declared" else wiring.runner_up
    if wiring.against is None or other is None or wiring.difference is None or wiring.ratio is None:
        return table(
            [
                ["  step-1 accuracy", f"{percent(best.first_step.value)} best reading ({wiring.best.facts.name})"],
                ["  accept length", f"{_number(best.accept_length_walk.value)} best reading"],
            ]
        )
    names, arrow, sides = ("declared", "runner-up"), "against", (best, other.figures)
    if wiring.against == "declared":
        names, arrow, sides = ("as served", "as it reads best"), "->", (other.figures, best)
    accuracies = [percent(side.first_step.value) for side in sides]
    lengths = [_number(side.accept_length_walk.value) for side in sides]
    measures = (
        ("step-1 accuracy", *accuracies, change(wiring.difference, "points")),
        ("accept length", *lengths, change(wiring.ratio, "%")),
    )
    numbers = table([[label, f"{a} {names[0]}", arrow, f"{b} {names[1]}"] for label, a, b, _ in measures], "  ")
    changes = [difference for *_, difference in measures]
    beside = [f"{line}  {what}" for line, what in zip(_even(numbers), changes, strict=True)]
    if max(map(len, beside)) <= width:
        return beside
    return [part for line, what in zip(numbers, changes, strict=True) for part in (line, f"    {what}")]


def _even(lines: list[str]) -> list[str]:
    size = max(map(len, lines))
    return [line.ljust(size) for line in lines]


def _figures(wiring: WiringVerdict, width: int) -> list[list[str]]:
    """One column a reading; as many tables as the width asks for."""
    labels = ["", "reading", "states", "step 1 accuracy"]
    labels += [f"step {step} after hit" for step in range(2, wiring.best.figures.steps + 1)]
    labels += ["accept len, mean", "accept len, walk", "accept len, rows", "tokens per verify"]
    cells = [_column(role, item) for role, item in columns(wiring)]
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


def _column(role: str, item: MeasuredReading) -> list[str]:
    figures, walk = item.figures, item.figures.walk
    per_verify = f"{walk.tokens / walk.verifies:.2f} n={walk.verifies}" if walk.verifies else f"{UNKNOWN} n=0"
    return [
        role,
        item.facts.name,
        state_names(item.facts.states),
        proportion(figures.first_step),
        *(proportion(share) for share in figures.conditional[1:]),
        length(figures.accept_length_mean, sum(row.whole for row in figures.counts)),
        length(figures.accept_length_walk, walk.verifies),
        str(figures.accept_length_walk.rows),
        per_verify,
    ]


def _circumstances(report: StandaloneReport, width: int) -> list[str]:
    result, share = report.result, report.coverage
    outside = share.out_of_vocabulary / share.response_tokens if share.response_tokens else None
    rows = result.rows
    lines = [
        (
            "rows",
            f"{rows.used} used of {rows.found}, {len(rows.skipped)} skipped; {rows.response_tokens} response tokens",
        ),
        *(("", f"skipped {row.name}: {row.reason}") for row in rows.skipped[:SHOWN_SKIPPED]),
        *([("", f"and {len(rows.skipped) - SHOWN_SKIPPED} more")] if len(rows.skipped) > SHOWN_SKIPPED else []),
        (
            "vocabulary",
            f"{percent(outside)} of the target's choices cannot be proposed "
            f"({share.out_of_vocabulary} of {share.response_tokens} response tokens)",
        ),
        ("greedy rows", f"{share.greedy_rows} of {share.rows}; only there the walk is exactly what a server would do"),
        ("walk", _walked(report.wiring.best.figures.max_new_tokens)),
        ("readings", f"{report.wiring.readings_tried} tried; {result.steps} steps deep"),
        ("machine", _machine(result)),
        ("time", _time(result)),
        *(("warning", warning) for warning in result.warnings),
    ]
    return labelled(lines, width)


def _walked(max_new_tokens: int | None) -> str:
    if max_new_tokens is None:
        return "each request to the end of its response; `runs show --max-new-tokens N` stops it as a server does"
    return f"each request until {max_new_tokens} tokens are out"


def _machine(result: StandaloneResult) -> str:
    gpu = f", GPU {mebibytes(result.peak_gpu_memory_bytes)}" if result.peak_gpu_memory_bytes is not None else ""
    return (
        f"{result.device} ({result.device_name}), {result.dtype}, torch {result.torch}, Python {result.python}, "
        f"{result.threads} threads, peak memory {mebibytes(result.peak_memory_bytes)}{gpu}"
    )


def _time(result: StandaloneResult) -> str:
    parts = []
    for phase in result.phases:
        speed = f" ({phase.tokens / phase.seconds:.0f} tokens/s)" if phase.tokens and phase.seconds > 0 else ""
        parts.append(f"{phase.name} {seconds(phase.seconds)}{speed}")
    return f"{seconds(sum(phase.seconds for phase in result.phases))}: {', '.join(parts) or UNKNOWN}"


def _wrap(text: str, width: int) -> list[str]:
    """A line of the fix; a config line stays whole, so that it can be copied."""
    if '"eagle_config"' in text:
        return [f"  {text}"]
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _headline(wiring: WiringVerdict) -> str:
    if wiring.verdict == "mis_wired":
        return wiring.headline.replace("mis-wired", "MIS-WIRED", 1)
    return wiring.headline[:1].upper() + wiring.headline[1:]
