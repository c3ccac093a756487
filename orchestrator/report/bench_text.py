"""The report on a served benchmark as a text: verdict, fix, numbers, findings, circumstances."""

import textwrap

from orchestrator.compare.served import LoadFigures, PairedLoad
from orchestrator.compare.served_acceptance import LEAST_STEPS, Acceptance
from orchestrator.compare.served_speed import Spread
from orchestrator.compare.stats import Proportion
from orchestrator.report.bench_circumstances import bench_circumstances
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.findings_text import check_lines, finding_lines, tally, wrapped
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, length, number, percent, proportion, within

DEFINITIONS = (
    "tok/s = output tokens from the first send to the last token, mean over repeats. Per user = tokens a second after "
    "the first chunk, median. Accept length = 1 + correct drafts / verify steps (n), bonus token included; its ceiling "
    "is num_steps + 1. Tokens per verify = output tokens / verify steps. [..] is a 95 % interval: over prompts for "
    "accept lengths, over repeats (3 and more) for speed. r = accept length / speed-up: what a speculative step costs "
    "in plain steps, and the accept length that speculation needs to pay."
)

HARNESS_DEFINITIONS = (
    "Its tok/s = output tokens over the time from its first send until the server has answered a last question after "
    "the end, so below ours. Its accept length = the server's own average since the flush (of its warm-up request as "
    "well, at every 40th decode step, of rank 0): as ours 1 + correct drafts / verify steps, and without its n."
)
"""What its figures mean, where they are not ours."""


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
        ["Speed:", *speed_lines(figures.loads)] if figures.loads else [],
        ["Against plain decoding:", *pair_lines(figures.pairs)] if figures.pairs else [],
        *_acceptance(report, verbose=verbose),
        [_checks_title(tally(results, above=above), checks, verbose=verbose), *checks],
        *([_harness(report, width)] if report.result.harness else []),
        textwrap.wrap(DEFINITIONS, width) if verbose else [],
    ]
    return [*blocks, bench_circumstances(report, width, verbose=verbose)]


def speed_lines(loads: tuple[LoadFigures, ...]) -> list[str]:
    """A line a load and side."""
    rows = [["load", "side", "tok/s", "repeats", "per user", "TTFT ms", "TPOT ms", "e2e s", "requests"]]
    for load in loads:
        speed = load.speed
        requests = str(len(load.requests)) + (f", {load.failed} FAILED" if load.failed else "")
        rows.append(
            [
                load_name(load),
                load.side,
                within(speed.throughput),
                str(len(speed.throughputs)),
                number(speed.user_tok_s.median),
                spread_words(speed.ttft_s, 1000, 1),
                spread_words(speed.tpot_s, 1000, 2),
                spread_words(speed.e2e_s, 1, 2),
                requests,
            ]
        )
    return [*table(rows, "  "), "  (median / p90 / p99; - where too few requests lie beyond)"]


def pair_lines(pairs: tuple[PairedLoad, ...]) -> list[str]:
    """A line a load that was run on both sides."""
    rows = [["load", "speed-up", "per user", "accept length", "r = break-even", "same outputs", "plain with itself"]]
    for item in pairs:
        pairing = item.pairing
        rows.append(
            [
                load_name(item.spec),
                within(pairing.speedup),
                number(pairing.user_speedup),
                number(pairing.accept_length),
                number(pairing.step_cost) + (" SUSPICIOUS" if pairing.suspicious else ""),
                _out_of(pairing.identical),
                _out_of(pairing.plain_repeats_identical),
            ]
        )
    return table(rows, "  ")


def load_name(load: LoadFigures) -> str:
    """e.g. `4 users` or `2.5/s`."""
    if load.concurrency is None:
        return f"{load.request_rate:g}/s"
    return f"{load.concurrency} user{'' if load.concurrency == 1 else 's'}"


def spread_words(spread: Spread, scale: float, digits: int) -> str:
    """Median, p90 and p99."""
    parts = ("-" if one is None else f"{one * scale:.{digits}f}" for one in (spread.median, spread.p90, spread.p99))
    return " / ".join(parts)


def _out_of(share: Proportion) -> str:
    return f"{share.hits} of {share.n} prompts" if share.n else UNKNOWN


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
        few = f"- ({depth.conditional.n} steps, fewer than {LEAST_STEPS})"
        rows.append(
            [str(depth.depth), proportion(depth.joint), proportion(depth.conditional) if depth.is_shown else few]
        )
    return table(rows, "  ")


def _harness(report: BenchReport, width: int) -> list[str]:
    told = {one.file: one for one in report.harness}
    rows = [["side", "tok/s", "accept length", "TTFT ms", "TPOT ms", "completed", "file"]]
    for run in report.result.harness:
        one = told.get(run.result_file or "")
        figures = ["-"] * 5
        if one is not None:
            parts = (one.output_throughput, one.accept_length, one.median_ttft_ms, one.median_tpot_ms)
            figures = [*(number(part) for part in parts), UNKNOWN if one.completed is None else str(one.completed)]
        ended = "" if run.returncode == 0 else f" (exit code {run.returncode})"
        rows.append([run.side, *figures, f"{run.result_file or 'none'}{ended}"])
    meaning = wrapped(HARNESS_DEFINITIONS, width, then="  ") if told else []
    return ["SGLang's own tool, by its own definitions (medians):", *table(rows, "  "), *meaning]
