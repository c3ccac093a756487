"""Whether speculation and plain decoding did the same work, and whether plain decoding was as fast as it can be."""

from collections.abc import Iterator

from orchestrator.compare.served import PairedLoad, ServedFigures
from orchestrator.diagnosis.finding import CheckResult, Subject, count, figure
from orchestrator.diagnosis.served_asked import seen
from orchestrator.diagnosis.served_measurement import load_words

BASELINE = Subject(check="pair", title="plain decoding")
WORK = Subject(check="pair", title="same work on both sides")
OUTPUTS = Subject(check="pair", title="outputs of both sides")


def check_pairs(figures: ServedFigures) -> Iterator[CheckResult]:
    """Findings on every load that was run on both sides."""
    for item in figures.pairs:
        if item.pairing.refused is not None:
            yield _unlike(item, item.pairing.refused)
        if item.pairing.other_outputs:
            yield _other_outputs(item)
    yield from check_baseline(figures)


def check_baseline(figures: ServedFigures) -> Iterator[CheckResult]:
    """A speculative step that surely came out cheaper than a plain one."""
    for item in figures.pairs:
        pairing = item.pairing
        if pairing.suspicious:
            yield BASELINE.finding(
                f"plain decoding looks too slow {load_words(item.plain)}: a speculative step came out cheaper than "
                f"a plain one (r = {pairing.step_cost:.2f}, at most {pairing.step_cost_high:.2f}), which "
                "no server can do",
                severity="serious",
                cause="engine",
                evidence=(
                    seen("step cost r", round(pairing.step_cost or 0, 3)),
                    seen("upper end of its interval", round(pairing.step_cost_high or 0, 3)),
                    figure("plain throughput", item.plain.speed.throughput, "tok/s"),
                ),
                remedy=(
                    "look for what slowed the plain side: graphs, another process, clocks, a cold start; run again",
                ),
                refuted_by="r of 1 or more in another run",
            )


def _unlike(item: PairedLoad, why: str) -> CheckResult:
    return WORK.finding(
        f"the two sides did not do the same work {_where(item)}: {why}; so there is no speed-up and no step cost",
        severity="serious",
        cause="engine",
        evidence=(
            seen("output tokens a request (spec)", _rounded(item.spec.mean_tokens)),
            seen("output tokens a request (plain)", _rounded(item.plain.mean_tokens)),
            seen("cached share of prompt tokens (spec)", _rounded(item.spec.cached_share)),
            seen("cached share of prompt tokens (plain)", _rounded(item.plain.cached_share)),
        ),
        remedy=(
            "read requests.jsonl.gz for how the answers ended; ask for more tokens (--max-new-tokens), and see that "
            "the prefix cache is flushed or off on both sides (--server-arg --disable-radix-cache)",
        ),
        refuted_by="outputs as long, and prompts as much from the cache, on both sides",
    )


def _other_outputs(item: PairedLoad) -> CheckResult:
    same, control = item.pairing.identical, item.pairing.plain_repeats_identical
    return OUTPUTS.finding(
        f"speculation gives other outputs {_where(item)}: {same.hits} of {same.n} greedy outputs are those of plain "
        f"decoding, which agrees with itself in {control.hits} of {control.n}; so no step cost is given",
        severity="serious",
        cause="engine",
        evidence=(
            count("outputs as in plain decoding", same.hits, same.n),
            count("plain outputs alike in every repeat", control.hits, control.n),
        ),
        remedy=(
            "look at where they part: at the first token it is another prompt or a lossy acceptance threshold; late "
            "and rarely it is rounding, which --dtype float32 on both sides takes away",
        ),
        refuted_by="outputs that agree as often as plain decoding does with itself",
    )


def _where(item: PairedLoad) -> str:
    return load_words(item.spec).removesuffix(" (spec)")


def _rounded(value: float | None) -> float | str:
    return "not told" if value is None else round(value, 3)
