"""The report on one run as a text: the verdict, the two numbers that prove it, the fix, findings, then the figures.

Where something else than the wiring has the top line, the wiring's own sentence and numbers follow below the fix.
"""

import textwrap

from orchestrator.diagnosis.diagnose import DOUBTED_BY
from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.report.bench_text import bench_blocks
from orchestrator.report.capture_text import capture_blocks
from orchestrator.report.circumstances import circumstances
from orchestrator.report.content import RunReport, StandaloneReport, predictions
from orchestrator.report.findings_text import check_lines, evidence_lines, finding_lines, tally, wrapped
from orchestrator.report.head import brief_head, head
from orchestrator.report.prediction_text import gap_lines, prediction_lines
from orchestrator.report.verbose_text import checkpoint_lines, reading_lines, slot_lines
from orchestrator.report.wiring_text import figures, proof, widened

DEFINITIONS = (
    "Step s counts while the chain proposes response tokens; a hit equals the target's greedy choice. Step 1 counts "
    "each response position once, step s > 1 those whose earlier steps all hit. [..] is a 95 % interval: Wilson over "
    "positions for shares, over rows for accept lengths. Accept length = accepted draft tokens + 1 a verify step, on "
    "the walk a server takes (jump by accepted + 1; n = verify steps); its mean is over every position instead. "
    "Tokens per verify count the prefill's token too."
)
BRIEFLY = "Accept length = accepted draft tokens + 1 a verify step, walked as a server does; [..] is a 95 % interval."
MORE = "More: `runs show RUN --verbose`, `--depths` (every number of steps), `--rules` (as each trainer logs it)."
NOT_KEPT = "This run is not kept; of your own runs, `runs show last --verbose` tells more."
COMPUTING = ("K3", "K4", "K8", "K9")
"""Checks of the computation: their findings are what the wiring verdict calls mis-read."""
UNLOADABLE = "These are figures of the drafter as the test reads it; SGLang does not read its config rightly (K2)."
EVIDENCE = 2
"""Numbers that prove a verdict: what a finding names first."""


def run_text(report: RunReport, *, width: int = 110, verbose: bool = False, kept: bool = True) -> str:
    """The whole report, lines of at most `width` columns where the content allows; `kept`: it can be shown again."""
    if report.standalone is not None:
        figures = _standalone(report.standalone, width, MORE if kept else NOT_KEPT, verbose=verbose)
    elif report.bench is not None:
        figures = bench_blocks(report.bench, width, verbose=verbose)
    elif report.capture is not None:
        figures = capture_blocks(report.capture, width, verbose=verbose)
    else:
        return "\n".join(head(report.record, width))
    ended_badly = report.record.phase != "succeeded"
    run = head(report.record, width) if verbose or ended_badly else brief_head(report.record, width)
    blocks = [*figures, run]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _standalone(report: StandaloneReport, width: int, more: str, *, verbose: bool) -> list[list[str]]:
    diagnosis, wiring = report.diagnosis, report.wiring
    fix = [line for item in diagnosis.fix for line in wrapped(item, width)]
    told = prediction_lines(predictions(report), width)
    blocks = [
        textwrap.wrap(_headline(diagnosis.headline), width, subsequent_indent="  ", break_on_hyphens=False),
        _proof(report, width),
        ["What to do:", *fix] if fix else [],
        _wiring(report, width),
        *_findings(report, width, verbose=verbose),
        _gap(report, width),
        ["Predicted speed-up:", *told, *_doubt(report, width)] if told else [],
        *figures(wiring, report.measured.heldout, report.result.checkpoint.graph, width, verbose=verbose),
    ]
    if verbose:
        blocks += [
            textwrap.wrap(" ".join([DEFINITIONS, *widened(wiring)]), width),
            ["Every reading that was tried:", *reading_lines(report.result, width)],
            ["The drafter as it was read:", *checkpoint_lines(report.result, width)],
            ["The captured states:", *slot_lines(report.result, width)],
        ]
    else:
        blocks.append([*textwrap.wrap(" ".join([BRIEFLY, *widened(wiring)]), width), *textwrap.wrap(more, width)])
    return [*blocks, circumstances(report, width, verbose=verbose)]


def _proof(report: StandaloneReport, width: int) -> list[str]:
    """The two numbers behind the headline: of the wiring where it speaks of that, else of the finding it names.

    A word that the headline says anyway is no proof, and where a finding has no number there is none.
    """
    if report.gap is not None and _gap_is_on_top(report):
        return gap_lines(report.gap, width)
    if _wiring_is_on_top(report):
        return _wiring_proof(report, width)
    cause = _headline_finding(report)
    numbers = [one for one in cause.evidence[:EVIDENCE] if _is_number(one)] if cause is not None else []
    return evidence_lines(numbers, width, "  ")


def _is_number(item: Evidence) -> bool:
    return item.value is not None and not isinstance(item.value, str)


def _wiring(report: StandaloneReport, width: int) -> list[str]:
    """What else has the top line must not hide whether the drafter is fed and computed rightly."""
    wiring, cause = report.wiring, _headline_finding(report)
    untrusted = cause is not None and cause.cause == "data" and cause.check in DOUBTED_BY
    if _wiring_is_on_top(report) or untrusted:  # the headline says that such rows are no ground for a verdict
        return []
    told = wiring.headline in report.diagnosis.headline
    sentence = "The wiring:" if told else f"The wiring: {wiring.headline.removeprefix('wiring is ')}"
    return [*wrapped(sentence, width, first="", then="  "), *_wiring_proof(report, width)]


def _wiring_proof(report: StandaloneReport, width: int) -> list[str]:
    """The wiring's two numbers, and what they are worth where SGLang cannot load the config at all."""
    return [*proof(report.wiring, width), *_doubt(report, width)]


def _doubt(report: StandaloneReport, width: int) -> list[str]:
    return wrapped(UNLOADABLE, width) if report.unloadable else []


def _wiring_is_on_top(report: StandaloneReport) -> bool:
    return report.diagnosis.verdict == report.wiring.verdict and report.wiring.headline in report.diagnosis.headline


def _gap(report: StandaloneReport, width: int) -> list[str]:
    """Train against held-out with the check's own word, unless it stands on top."""
    if report.gap is None or _gap_is_on_top(report):
        return []
    judged = next((item for item in report.diagnosis.results if item.check == "gap"), None)
    verdict = "" if judged is None else f" {judged.summary}"
    if judged is not None and judged.outcome == "cannot_tell":
        verdict = f" cannot tell: {judged.summary}"
    return [*wrapped(f"Train against held-out:{verdict}", width, first="", then="  "), *gap_lines(report.gap, width)]


def _gap_is_on_top(report: StandaloneReport) -> bool:
    return report.diagnosis.verdict == "generalization_gap"


def _headline_finding(report: StandaloneReport) -> CheckResult | None:
    """The finding that took the top line from the wiring."""
    diagnosis = report.diagnosis
    return next((item for item in diagnosis.findings if diagnosis.headline.startswith(item.summary)), None)


def _findings(report: StandaloneReport, width: int, *, verbose: bool) -> list[list[str]]:
    """Findings that the headline does not name already; verbose: every check."""
    results = report.diagnosis.results
    if verbose:
        return [[f"Checks: {tally(results)}", *check_lines(results, width)]]
    shown = [item for item in report.diagnosis.findings if not _is_on_top(item, report)]
    counts = tally(results, above=len(report.diagnosis.findings) - len(shown))
    title = f"Findings (checks: {counts}):" if shown else f"Checks: {counts}"
    return [[title, *finding_lines(shown, width)]]


def _is_on_top(finding: CheckResult, report: StandaloneReport) -> bool:
    """Whether the headline speaks of it already, in its own words or in the wiring verdict's."""
    headline, wiring = report.diagnosis.headline, report.wiring
    told = wiring.headline in headline and wiring.verdict != "sound"
    feeding = finding.check == "K5"
    mended = bool(finding.remedy) and set(finding.remedy) <= set(report.diagnosis.fix)
    computing = finding.check in COMPUTING and bool(wiring.misread) and (finding.cause == "wiring" or mended)
    return finding.summary in headline or (told and (feeding or computing))


def _headline(text: str) -> str:
    """The sentence with a capital; a name of a file's own, like `d2t`, stays as it is."""
    for word in ("mis-wired", "mis-read"):
        if text.startswith(word):
            return word.upper() + text[len(word) :]
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
