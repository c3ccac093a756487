"""Under what circumstances a standalone test was made: rows, machine, time, memory, warnings."""

from orchestrator.compare.counted import counted
from orchestrator.diagnosis.mis_wired import states_text
from orchestrator.report.content import StandaloneReport
from orchestrator.report.head import labelled
from orchestrator.report.words import UNKNOWN, mebibytes, percent, seconds
from remote_payload.schema import RowsFacts, StandaloneResult

COMPUTED = "the embedding output is computed from the target's own table, not captured"
SHOWN = 3
"""Skipped rows and warnings that the short report shows."""


def circumstances(report: StandaloneReport, width: int, *, verbose: bool) -> list[str]:
    """Short: what a reader must not miss. Verbose: everything."""
    result = report.result
    most = None if verbose else SHOWN
    lines = rows_lines("rows", result.rows, most)
    if result.heldout is not None:
        lines += rows_lines("held-out", result.heldout, most)
    if result.resumed_from is not None:
        lines.append(("resumed", _resumed(result.resumed_from, result.resumed_rows)))
    lines += _serves(report)
    lines += _warnings(result.warnings, most)
    if verbose:
        lines += _more(report)
    elif report.question.max_new_tokens is not None:
        lines.append(("walk", _walked(report.question.max_new_tokens)))
    return labelled(lines, width)


def rows_lines(label: str, rows: RowsFacts, most: int | None) -> list[tuple[str, str]]:
    """How many rows there were, and which were left out and why."""
    lines = [
        (
            label,
            f"{rows.used} used of {rows.found}, {len(rows.skipped)} skipped; {rows.response_tokens} response tokens",
        ),
        *(("", f"skipped {row.name}: {row.reason}") for row in rows.skipped[:most]),
    ]
    hidden = 0 if most is None else len(rows.skipped) - most
    lines += [("", f"and {hidden} more")] if hidden > 0 else []
    return [*lines, *[("", COMPUTED) for _ in rows.computed]]


def machine_words(result: StandaloneResult) -> str:
    """Where it was computed, and the memory it took."""
    gpu = f", GPU {mebibytes(result.peak_gpu_memory_bytes)}" if result.peak_gpu_memory_bytes is not None else ""
    return (
        f"{result.device} ({result.device_name}), {result.dtype}, torch {result.torch}, Python {result.python}, "
        f"{result.threads} threads, peak memory {mebibytes(result.peak_memory_bytes)}{gpu}"
    )


def time_words(result: StandaloneResult) -> str:
    """How long each phase took."""
    parts = []
    for phase in result.phases:
        speed = f" ({phase.tokens / phase.seconds:.0f} tokens/s)" if phase.tokens and phase.seconds > 0 else ""
        parts.append(f"{phase.name} {seconds(phase.seconds)}{speed}")
    return f"{seconds(sum(phase.seconds for phase in result.phases))}: {', '.join(parts) or UNKNOWN}"


def _resumed(run: str, rows: int | None) -> str:
    """How much of the figures another run measured."""
    which = "its finished rows were" if rows is None else counted(rows, "row was", "rows were")
    return f"from {run}: {which} measured there"


def _serves(report: StandaloneReport) -> list[tuple[str, str]]:
    """Which SGLang feeds what the config asks for, unless the fix says so already."""
    declared = report.result.declared
    told = any(declared.valid_for in line for line in report.diagnosis.fix)
    if declared.captured is None or declared.problem is not None or report.unloadable or told:
        return []
    return [("served", f"{states_text(declared.captured)}, by the rule of {declared.valid_for}")]


def _warnings(warnings: tuple[str, ...], most: int | None) -> list[tuple[str, str]]:
    lines = [("warning", warning) for warning in warnings[:most]]
    hidden = 0 if most is None else len(warnings) - most
    return [*lines, ("", f"and {hidden} more")] if hidden > 0 else lines


def _more(report: StandaloneReport) -> list[tuple[str, str]]:
    result, share = report.result, report.coverage
    outside = share.out_of_vocabulary / share.response_tokens if share.response_tokens else None
    return [
        (
            "vocabulary",
            f"{percent(outside)} of the target's choices cannot be proposed "
            f"({share.out_of_vocabulary} of {share.response_tokens} response tokens)",
        ),
        (
            "exact rows",
            f"{share.greedy_rows} of {share.rows}, greedy to the last token: only there the walk is a server's own",
        ),
        ("walk", _walked(report.question.max_new_tokens)),
        ("readings", f"{report.wiring.readings_tried} tried; {result.steps} steps deep"),
        ("machine", machine_words(result)),
        *_memory(result),
        ("time", time_words(result)),
    ]


def _memory(result: StandaloneResult) -> list[tuple[str, str]]:
    plan = result.memory
    if plan is None:
        return []
    limit = "no limit asked for" if plan.limit_bytes is None else f"limit {mebibytes(plan.limit_bytes)}"
    parts = ", ".join(f"{part.name} {mebibytes(part.size_bytes)}" for part in plan.parts)
    return [("memory", f"planned {mebibytes(plan.expected_peak_bytes)} ({plan.where}), {limit}: {parts or UNKNOWN}")]


def _walked(max_new_tokens: int | None) -> str:
    if max_new_tokens is None:
        return "each request to the end of its response; `runs show --max-new-tokens N` stops it as a server does"
    return f"each request until {max_new_tokens} tokens are out"
