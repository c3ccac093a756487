"""The report on a capture as a text: what is fed, what the source says of it, what rows were made."""

import shlex
import textwrap
from dataclasses import dataclass

from orchestrator.diagnosis.served_states import CaptureDiagnosis, judge_capture
from orchestrator.report.findings_text import check_lines, finding_lines, wrapped
from orchestrator.report.head import labelled
from orchestrator.report.table import table
from remote_payload.schema.capture import CaptureResult, ServedState, StateMatch

DEFINITIONS = (
    "Error = |served - known| / |known|, the median over tokens; equal = tokens whose two vectors are the same, number "
    "by number, in the coarser of the two formats; R2 = the share of the served state that a linear function of the "
    "known one explains on rows that it was not fitted on."
)
SHOWN = 2
"""Known states beside each served one; verbose: all."""


@dataclass(frozen=True, kw_only=True)
class CaptureReport:
    """A capture and what was made of it."""

    result: CaptureResult
    diagnosis: CaptureDiagnosis
    draft: str | None
    """The drafter's folder on the host, for the command that tests it on the rows that were made."""
    model: str | None
    host: str = "HOST"
    """As this laptop names it, for the same."""


def report_capture(
    result: CaptureResult, trained: tuple[int, ...] | None, *, draft: str | None, model: str | None, host: str
) -> CaptureReport:
    """Judge a capture; `trained` are the states that the drafter was trained on, None where nobody said."""
    return CaptureReport(result=result, diagnosis=judge_capture(result, trained), draft=draft, model=model, host=host)


def capture_blocks(report: CaptureReport, width: int, *, verbose: bool) -> list[list[str]]:
    """The blocks of the report, most important first."""
    diagnosis, result = report.diagnosis, report.result
    fix = [line for item in diagnosis.fix for line in wrapped(item, width)]
    findings = [item for item in diagnosis.results if item.outcome == "finding" and item.summary != diagnosis.headline]
    checks = check_lines(diagnosis.results, width) if verbose else finding_lines(findings, width)
    headline = diagnosis.headline[:1].upper() + diagnosis.headline[1:]
    return [
        textwrap.wrap(headline, width, subsequent_indent="  ", break_on_hyphens=False),
        ["What to do:", *fix] if fix else [],
        _states(result, verbose=verbose),
        chain_lines(diagnosis, width),
        [("Checks:" if verbose else "Findings:"), *checks] if checks else [],
        _made(report, width),
        textwrap.wrap(DEFINITIONS, width) if result.served else [],
    ]


def chain_lines(diagnosis: CaptureDiagnosis, width: int) -> list[str]:
    """The rule of the installed source, step by step."""
    rule = diagnosis.rule
    steps = [*rule.reasoning, *([f"but: {rule.problem}"] if rule.problem else [])]
    agreement = next((item for item in diagnosis.results if item.check == "K6"), None)
    told = {
        "passed": "the server agrees",
        "finding": "the server feeds others",
        "cannot_tell": "the server cannot tell",
    }
    title = "By the installed source" + (f" ({told[agreement.outcome]}):" if agreement is not None else ":")
    return [title, *(line for step in steps for line in wrapped(step, width))]


def _states(result: CaptureResult, *, verbose: bool) -> list[str]:
    if not result.served:
        return []
    rows = [["fed state", "nearest known", "error", "equal", "cosine", "scale", "R2"]]
    for served in result.served:
        shown = served.matches if verbose else served.matches[:SHOWN]
        rows += [_row(served, match, first=match is served.matches[0]) for match in shown]
    return table(rows, "")


def _row(served: ServedState, match: StateMatch, *, first: bool) -> list[str]:
    name = match.against if match.against != "captured" else f"slot {match.slot}"
    name += "" if match.state is None else " (embed)" if match.state == 0 else f" (state {match.state})"
    name += "" if not match.token_offset else f", token {match.token_offset:+d}"
    return [
        str(served.slot) if first else "",
        name,
        f"{100 * match.error:.2f} %",
        f"{match.exact} of {match.tokens}",
        f"{match.cosine:.4f}",
        f"{match.scale:.3f}",
        "-" if match.r2 is None else f"{match.r2:.3f} n={match.r2_tokens}",
    ]


def _made(report: CaptureReport, width: int) -> list[str]:
    """The rows that lie on the host now, and the command that tests the drafter on them."""
    lines: list[tuple[str, str]] = []
    for split in report.result.made:
        text = f"{split.rows} of {split.asked} rows, {split.tokens} tokens: {split.folder}"
        lines.append((split.split, f"rows made: {text}"))
        lines += [("", f"skipped: {reason}") for reason in split.skipped[:3]]
    heldout = next((split for split in report.result.made if split.split == "heldout" and split.rows), None)
    if heldout is not None and report.draft is not None and report.model is not None:
        states = [state for state in report.diagnosis.states if state is not None]
        labels: list[str] = []
        if states and len(states) == len(report.diagnosis.states):
            labels = ["--states", ",".join("embed" if state == 0 else str(state) for state in states)]
            labels += [] if 0 in states else ["--add-embedding"]
        words = ["eagle3-remote", "run", "standalone", "--host", report.host, "--draft", report.draft]
        words += ["--target", report.model, "--rows", heldout.folder, *labels]
        lines.append(("next", f"test the drafter on them: {shlex.join(words)}"))
    lines += [("warning", text) for text in report.result.warnings]
    return labelled(lines, width) if lines else []
