"""The metrics that can be compared: what each counts, in which unit, which way is better, what is worth a word.

Margins are the practical ones of `orchestrator/compare/comparison.py`: a change smaller than that is nobody's business.
`eagle3.toml [margins]` may set others by metric.
"""

import difflib
import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric; figures of the same name are comparable only if unit and definition agree as well."""

    name: str
    unit: str
    better: Literal["higher", "lower", "neither"]
    margin: float
    """Practical margin: a share of the baseline for ratios, points (0.01 = 1 point) for shares."""
    change: Literal["ratio", "difference"]
    """Whether two figures are compared by their ratio or, as shares, by their difference."""
    primary: bool = False
    """Whether it decides the verdict of a whole comparison (with Holm's correction over the primary ones)."""

    @property
    def is_speed(self) -> bool:
        """Whether it says how fast a server was, which depends on how much work it was given."""
        return self.unit in ("tok/s", "req/s", "s", "ratio")

    @property
    def is_accept_length(self) -> bool:
        """Whether it counts the bonus token of every verify step, and is 1 at the least."""
        return self.unit == "tokens" and self.name.rpartition(".")[2] in BONUS_IN


def _ratio(name: str, unit: str, margin: float, *, lower: bool = False, primary: bool = False) -> Metric:
    better: Literal["higher", "lower"] = "lower" if lower else "higher"
    return Metric(name=name, unit=unit, better=better, margin=margin, change="ratio", primary=primary)


METRICS = {
    metric.name: metric
    for metric in (
        _ratio("output_throughput_tok_s", "tok/s", 0.02, primary=True),
        _ratio("accept_length_pooled", "tokens", 0.02, primary=True),
        _ratio("accept_length_per_verify", "tokens", 0.02),
        _ratio("accept_length_walk", "tokens", 0.02, primary=True),
        _ratio("accept_length_mean", "tokens", 0.02),
        _ratio("speedup", "ratio", 0.02),
        _ratio("request_throughput_req_s", "req/s", 0.02),
        _ratio("total_throughput_tok_s", "tok/s", 0.02),
        _ratio("user_tok_s", "tok/s", 0.02),
        _ratio("tpot_s", "s", 0.02, lower=True),
        _ratio("itl_s", "s", 0.02, lower=True),
        _ratio("ttft_s", "s", 0.05, lower=True),
        _ratio("e2e_s", "s", 0.05, lower=True),
        Metric(name="output_tokens", unit="tokens", better="neither", margin=0.05, change="ratio"),
        Metric(name="first_step_accuracy", unit="share", better="higher", margin=0.01, change="difference"),
        Metric(name="accept_rate", unit="share", better="higher", margin=0.01, change="difference"),
        Metric(name="cached_share", unit="share", better="neither", margin=0.01, change="difference"),
        Metric(name="identical_outputs", unit="share", better="neither", margin=0.01, change="difference"),
    )
}
BONUS_IN = ("accept_length_pooled", "accept_length_walk", "accept_length_mean")
_ROLE = re.compile(r"(declared|best)\.")
_STEP = re.compile(r"step([1-9]|1[0-6])_acceptance")
_PERCENTILE = re.compile(r"(ttft_s|tpot_s|itl_s|e2e_s|user_tok_s)_(mean|p90|p95|p99)")


def metric_of(name: str) -> Metric | None:
    """The catalogue's entry for a series' name; None for a name nobody reports.

    `declared.` and `best.` before a name say which reading of a drafter was tested; `_mean`, `_p90`, `_p95`, `_p99`
    after a latency say which summary it is (the plain name is the median).
    """
    bare = _ROLE.sub("", name, count=1)
    found = METRICS.get(bare)
    if found is None and _STEP.fullmatch(bare):
        found = Metric(name=bare, unit="share", better="higher", margin=0.01, change="difference")
    if found is None and (percentile := _PERCENTILE.fullmatch(bare)):
        found = METRICS[percentile.group(1)]
    if found is None:
        return None
    return Metric(
        name=name,
        unit=found.unit,
        better=found.better,
        margin=found.margin,
        change=found.change,
        primary=found.primary and not name.startswith("best."),
    )


def near_metrics(name: str) -> tuple[str, ...]:
    """The metrics of which a name that is none is likely a slip, nearest first, at most three.

    Near is what holds all its words (`output_throughput`), or is spelt almost like it (`acept_rate`).
    """
    roles = ("declared.", "best.") if "." in name else ("",)
    known = [role + one for role in roles for one in _names()]
    words = _words(name)
    holding = sorted((one for one in known if words and words <= _words(one)), key=len)
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.85)
    return tuple(dict.fromkeys((*alike, *holding)))[:3]


def _names() -> tuple[str, ...]:
    steps = (f"step{number}_acceptance" for number in range(1, 17))
    timed = ("ttft_s", "tpot_s", "itl_s", "e2e_s", "user_tok_s")
    return (*METRICS, *steps, *(f"{one}_{summary}" for one in timed for summary in ("mean", "p90", "p95", "p99")))


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{2,}", name.lower()))
