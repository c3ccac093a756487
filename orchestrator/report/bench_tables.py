"""The tables of a served benchmark: how fast each load was, what a drafter changed, what SGLang's own tool says."""

from collections.abc import Sequence

from orchestrator.compare.counted import counted
from orchestrator.compare.served import LoadFigures, PairedLoad
from orchestrator.compare.served_harness import HarnessFigures, HarnessLoad, harness_loads, harness_speedups
from orchestrator.compare.served_pairing import Pairing
from orchestrator.compare.served_speed import Spread, tokens_of
from orchestrator.compare.stats import Estimate, Proportion
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.findings_text import wrapped
from orchestrator.report.table import listed, table
from orchestrator.report.words import UNKNOWN, number, within

HARNESS_DEFINITIONS = (
    "Its tok/s = output tokens over the time from its first send until the server has answered a last question after "
    "the end, so below ours. Its accept length = the server's own average since the flush (of its warm-up request as "
    "well, at every 40th decode step, of rank 0): as ours 1 + correct drafts / verify steps, and without its n."
)
"""What its figures mean, where they are not ours."""
ALIKE = "(no interval where repeats do not differ at all: their spread is unknown, not 0)"


def speed_lines(loads: Sequence[LoadFigures], width: int) -> list[str]:
    """How much came out, a line a load and side; then how long it took."""
    rates = [["load", "side", "tok/s (repeats)", "per user", "requests", "tokens each"]]
    times = [["load", "side", "TTFT ms", "TPOT ms", "e2e s"]]
    for load in loads:
        speed = load.speed
        requests = str(len(load.requests)) + (f", {load.failed} FAILED" if load.failed else "")
        out, user = f"{_rate(speed.throughput)} ({len(speed.throughputs)})", number(speed.user_tok_s.median)
        rates.append([load_name(load), load.side, out, user, requests, _tokens_each(load)])
        spreads = ((speed.ttft_s, 1000), (speed.tpot_s, 1000), (speed.e2e_s, 1))
        times.append([load_name(load), load.side, *(spread_words(*one) for one in spreads)])
    meaning = "  (median/p90/p99; - where too few requests lie beyond)"
    alike = ALIKE if any(load.speed.throughput.standard_error == 0 for load in loads) else ""
    return [*listed(rates, width), *wrapped(alike, width, then="  "), *listed(times, width), meaning]


def pair_lines(pairs: Sequence[PairedLoad], width: int) -> list[str]:
    """What the drafter changed, a line a load that was run on both sides; then whether it changed the answers."""
    speeds = [["load", "speed-up", "per user", "accept length", "r = break-even"]]
    answers = [["load", "same outputs as plain", "plain with itself"]]
    for item in pairs:
        pairing = item.pairing
        cost = _cost(pairing) + (" SUSPICIOUS" if pairing.suspicious else "")
        user, length = number(pairing.user_speedup), number(pairing.accept_length)
        speeds.append([load_name(item.spec), within(pairing.speedup), user, length, cost])
        same, itself = _out_of(pairing.identical), _out_of(pairing.plain_repeats_identical)
        answers.append([load_name(item.spec), same, itself])
    return [*listed(speeds, width), *listed(answers, width)]


def _cost(pairing: Pairing) -> str:
    """The step cost r with its interval."""
    if pairing.step_cost_low is None or pairing.step_cost_high is None:
        return number(pairing.step_cost)
    return f"{number(pairing.step_cost)} [{number(pairing.step_cost_low)}, {number(pairing.step_cost_high)}]"


def harness_lines(report: BenchReport, width: int) -> list[str]:
    """A line a load and side, then what a drafter changed, then the calls that failed; none where it was not called."""
    if not report.harness:
        return []
    loads = harness_loads(report.harness)
    rates = [["load", "side", "tok/s (calls)", "accept length", "requests"]]
    times = [["load", "side", "TTFT ms", "TPOT ms"]]
    for load in loads:
        length = "-" if load.side == "plain" else number(load.mean("accept_length"))
        name, out = load_name(load.calls[0]), f"{_rate(load.throughput)} ({len(load.calls)})"
        rates.append([name, load.side, out, length, _completed(load)])
        times.append([name, load.side, number(load.mean("median_ttft_ms")), number(load.mean("median_tpot_ms"))])
    lines = [*listed(rates, width), *listed(times, width)] if loads else []
    pairs = [[load_name(ours.calls[0]), within(speedup)] for ours, _, speedup in harness_speedups(loads)]
    lines += table([["load", "speed-up"], *pairs], "  ") if pairs else []
    for number_of, call in enumerate(report.harness):
        if call.failed is not None:
            where = f"call {number_of} ({load_name(call)}, {call.side}) FAILED: {call.failed}"
            lines += wrapped(f"{where}; {_last_words(report.result.harness[number_of].output_tail)}", width)
    meaning = wrapped(HARNESS_DEFINITIONS, width, then="  ") if loads else []
    return ["SGLang's own tool, by its own definitions (means over calls, of medians):", *lines, *meaning]


def _completed(load: HarnessLoad) -> str:
    told = [call.completed for call in load.calls]
    return UNKNOWN if None in told else str(sum(one or 0 for one in told))


def _last_words(output: str) -> str:
    """The last line that it printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"its last words: {lines[-1]}" if lines else "it printed nothing"


def load_name(load: LoadFigures | HarnessFigures) -> str:
    """e.g. `4 users` or `2.5/s`."""
    if load.concurrency is None and load.request_rate is None:
        return UNKNOWN
    if load.concurrency is None:
        return f"{load.request_rate:g}/s"
    return counted(load.concurrency, "user")


def spread_words(spread: Spread, scale: float = 1) -> str:
    """Median, p90 and p99."""
    return "/".join("-" if one is None else _digits(one * scale) for one in (spread.median, spread.p90, spread.p99))


def _digits(value: float) -> str:
    """A figure with as many digits as can matter."""
    return f"{value:.{2 if value < 100 else 1 if value < 1000 else 0}f}"


def _rate(estimate: Estimate) -> str:
    """Tokens a second with their interval."""
    if estimate.value is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None:
        return _digits(estimate.value)
    return f"{_digits(estimate.value)} [{_digits(estimate.low)}, {_digits(estimate.high)}]"


def _tokens_each(load: LoadFigures) -> str:
    """Output tokens of the shortest and the longest answer."""
    counts = [tokens_of(item) for item in load.requests]
    if not counts:
        return "-"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _out_of(share: Proportion) -> str:
    return f"{share.hits} of {counted(share.n, 'prompt')}" if share.n else UNKNOWN
