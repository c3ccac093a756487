"""The report on one run as a text: the verdict, the two numbers that prove it, the fix, findings, then the figures."""

import textwrap

from orchestrator.diagnosis.finding import CheckResult
from orchestrator.report.bench_text import bench_blocks
from orchestrator.report.circumstances import circumstances
from orchestrator.report.content import RunReport, StandaloneReport, predictions
from orchestrator.report.findings_text import check_lines, evidence_words, finding_lines, tally, wrapped
from orchestrator.report.head import brief_head, head
from orchestrator.report.prediction_text import gap_lines, prediction_lines
from orchestrator.report.table import table
from orchestrator.report.verbose_text import checkpoint_lines, reading_lines, slot_lines
from orchestrator.report.wiring_text import figures, proof, widened

DEFINITIONS = (
    "Step s counts while the chain proposes response tokens; a hit equals the target's greedy choice. Step 1 counts "
    "each response position once, step s > 1 those whose earlier steps all hit. [..] is a 95 % interval: Wilson over "
    "positions for shares, over rows for accept lengths. Accept length = accepted draft tokens + 1 a verify step, on "
    "the walk a server takes (jump by accepted + 1; n = verify steps); its mean is over every position instead. "
    "Tokens per verify count the prefill's token too."
)
BRIEFLY = (
    "Accept length = accepted draft tokens + 1 a verify step, walked as a server does; [..] is a 95 % interval. "
    "More: `runs show RUN --verbose`, `--depths` (every number of steps), `--rules` (as each trainer logs it)."
)
COMPUTING = ("K3", "K4", "K8", "K9")
"""Checks of the computation: their findings are what the wiring verdict calls mis-read."""
EVIDENCE = 2
"""Numbers that prove a verdict."""


def run_text(report: RunReport, *, width: int = 110, verbose: bool = False) -> str:
    """The whole report, lines of at most `width` columns where the content allows."""
    if report.standalone is not None:
        figures = _standalone(report.standalone, width, verbose=verbose)
    elif report.bench is not None:
        figures = bench_blocks(report.bench, width, verbose=verbose)
    else:
        return "\n".join(head(report.record))
    run = head(report.record) if verbose else brief_head(report.record, width)
    blocks = [*figures, run]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _standalone(report: StandaloneReport, width: int, *, verbose: bool) -> list[list[str]]:
    diagnosis, wiring = report.diagnosis, report.wiring
    fix = [line for item in diagnosis.fix for line in wrapped(item, width)]
    told = prediction_lines(predictions(report), width)
    blocks = [
        textwrap.wrap(_headline(diagnosis.headline), width, subsequent_indent="  ", break_on_hyphens=False),
        _proof(report, width),
        ["What to do:", *fix] if fix else [],
        *_findings(report, width, verbose=verbose),
        ["Train against held-out:", *gap_lines(report.gap, width)]
        if report.gap is not None and not _gap_is_on_top(report)
        else [],
        ["Predicted speed-up:", *told] if told else [],
        *figures(wiring, report.measured.heldout, width, verbose=verbose),
    ]
    if verbose:
        blocks += [
            textwrap.wrap(" ".join([DEFINITIONS, *widened(wiring)]), width),
            ["Every reading that was tried:", *reading_lines(report.result, width)],
            ["The drafter as it was read:", *checkpoint_lines(report.result, width)],
            ["The captured states:", *slot_lines(report.result)],
        ]
    else:
        blocks.append(textwrap.wrap(BRIEFLY, width))
    return [*blocks, circumstances(report, width, verbose=verbose)]


def _proof(report: StandaloneReport, width: int) -> list[str]:
    """The two numbers behind the headline: of the wiring where it speaks of that, else of the finding it names."""
    if report.gap is not None and _gap_is_on_top(report):
        return gap_lines(report.gap, width)
    cause = _headline_finding(report)
    if cause is None or not cause.evidence:
        return proof(report.wiring, width)
    return table([[one.name, evidence_words(one)] for one in cause.evidence[:EVIDENCE]], "  ")


def _gap_is_on_top(report: StandaloneReport) -> bool:
    return report.diagnosis.verdict == "generalization_gap"


def _headline_finding(report: StandaloneReport) -> CheckResult | None:
    """The finding that took the top line from the wiring; None where the wiring has it."""
    diagnosis = report.diagnosis
    if diagnosis.verdict == report.wiring.verdict:
        return None
    return next((item for item in diagnosis.findings if diagnosis.headline.startswith(item.summary)), None)


def _findings(report: StandaloneReport, width: int, *, verbose: bool) -> list[list[str]]:
    """Findings that the headline does not name already; verbose: every check."""
    results = report.diagnosis.results
    if verbose:
        return [[f"Checks: {tally(results)}", *check_lines(results, width)]]
    shown = [item for item in report.diagnosis.findings if not _is_on_top(item, report)]
    title = f"Findings (checks: {tally(results)}):" if shown else f"Checks: {tally(results, above=True)}"
    return [[title, *finding_lines(shown, width)]]


def _is_on_top(finding: CheckResult, report: StandaloneReport) -> bool:
    """Whether the headline speaks of it already, in its own words or in the wiring verdict's."""
    headline, wiring = report.diagnosis.headline, report.wiring
    told = wiring.headline in headline and wiring.verdict != "sound"
    feeding = finding.check == "K5"
    computing = finding.cause == "wiring" and finding.check in COMPUTING and bool(wiring.misread)
    return finding.summary in headline or (told and (feeding or computing))


def _headline(text: str) -> str:
    """The sentence with a capital; a name of a file's own, like `d2t`, stays as it is."""
    for word in ("mis-wired", "mis-read"):
        if text.startswith(word):
            return word.upper() + text[len(word) :]
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
