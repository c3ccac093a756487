"""The report on a served benchmark as a text: verdict, fix, numbers, findings, circumstances."""

import textwrap

from orchestrator.compare.counted import counted
from orchestrator.compare.served_acceptance import LEAST_STEPS, Acceptance
from orchestrator.report.bench_circumstances import bench_circumstances
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.bench_tables import harness_lines, load_name, pair_lines, speed_lines
from orchestrator.report.findings_text import check_lines, finding_lines, tally, wrapped
from orchestrator.report.table import table
from orchestrator.report.words import length, number, percent, proportion

DEFINITIONS = (
    "tok/s = output tokens from the first send to the last token, mean over repeats. Per user = tokens a second after "
    "the first chunk, median. Accept length = 1 + correct drafts / verify steps (n), bonus token included; its ceiling "
    "is num_steps + 1. Tokens per verify = output tokens / verify steps. Speed-up = mean tok/s with the drafter / mean "
    "tok/s without. [..] is a 95 % interval: over prompts for accept lengths, over server starts for speed (of "
    "one start alone its repeats; 3 and more). r = accept length / speed-up: what a speculative step costs in plain "
    "steps, and the accept length that speculation needs to pay."
)


def bench_blocks(report: BenchReport, width: int, *, verbose: bool) -> list[list[str]]:
    """The blocks of the report, most important first."""
    diagnosis, figures = report.diagnosis, report.figures
    fix = [line for item in diagnosis.fix for line in wrapped(item, width)]
    results = diagnosis.results
    shown = [item for item in diagnosis.findings if item.summary not in diagnosis.headline]
    checks = check_lines(results, width) if verbose else finding_lines(shown, width)
    above = 0 if verbose else len(diagnosis.findings) - len(shown)
    headline = diagnosis.headline[:1].upper() + diagnosis.headline[1:]
    blocks = [
        textwrap.wrap(headline, width, subsequent_indent="  ", break_on_hyphens=False),
        ["What to do:", *fix] if fix else [],
        ["Speed:", *speed_lines(figures.loads, width)] if figures.loads else [],
        ["Against plain decoding:", *pair_lines(figures.pairs, width)] if figures.pairs else [],
        harness_lines(report, width),
        *_acceptance(report, verbose=verbose),
        [_checks_title(tally(results, above=above), checks, verbose=verbose), *checks],
        textwrap.wrap(DEFINITIONS, width) if verbose else [],
    ]
    return [*blocks, bench_circumstances(report, width, verbose=verbose)]


def _checks_title(counts: str, checks: list[str], *, verbose: bool) -> str:
    if verbose or not checks:
        return f"Checks: {counts}"
    return f"Findings (checks: {counts}):"


def _acceptance(report: BenchReport, *, verbose: bool) -> list[list[str]]:
    blocks: list[list[str]] = []
    draft = report.figures.draft
    told = [(load, load.acceptance) for load in report.figures.loads if load.acceptance is not None]
    for load, found in told if verbose else told[:1]:
        of = "" if draft.ceiling is None else f", at most {draft.ceiling}"
        of += "" if draft.nodes is None else f" ({draft.nodes} nodes)"
        rows = [
            ["accept length", f"{length(found.accept_length, found.verify_steps)}{of}"],
            ["tokens per verify", length(found.tokens_per_verify, found.verify_steps)],
            ["mean of requests", f"{number(found.accept_length_macro)} n={found.requests}"],
            ["accept rate", _rate(found, draft.num_draft_tokens, draft.nodes)],
        ]
        lines = [*table(rows, "  "), *_depths(found)]
        blocks.append([f"Acceptance at {load_name(load)}:", *lines])
    return blocks


def _rate(found: Acceptance, draft_tokens: int | None, nodes: int | None) -> str:
    rate = percent(found.rate(draft_tokens))
    return f"{rate} of the tree's nodes, which cannot all be accepted" if nodes is not None else f"{rate} of the drafts"


def _depths(found: Acceptance) -> list[str]:
    if not found.depths:
        return ["  by depth: not told by this version of SGLang" if found.histogram is None else "  nothing accepted"]
    rows = [["depth", "accepted so deep", "given the one before"]]
    for depth in found.depths:
        few = f"- ({counted(depth.conditional.n, 'step')}, fewer than {LEAST_STEPS})"
        rows.append(
            [str(depth.depth), proportion(depth.joint), proportion(depth.conditional) if depth.is_shown else few]
        )
    return table(rows, "  ")
