"""Prompts that both sides answered: what is hard for both cancels, so few of them show small changes.

The change is the ratio of sum(y) / sum(x), or the difference of shares, with the linearised standard error over rows
(prompts, or conversations where they are named) and Student's t with rows - 1 degrees of freedom.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from orchestrator.compare.comparison import Test
from orchestrator.compare.metrics import Metric
from orchestrator.compare.statistics.averages import variance
from orchestrator.compare.statistics.effect import Effect, Scale, settled, t_test
from orchestrator.compare.statistics.findings import Findings
from orchestrator.compare.statistics.prompts import Pairs, figure
from orchestrator.compare.statistics.ranks import wilcoxon
from orchestrator.compare.stats import MIN_ROWS, Estimate, paired_difference, paired_ratio


def paired_findings(metric: Metric, pairs: Pairs) -> Findings:
    """Of the pairs' rows; no interval below 5 of them."""
    scale: Scale = "log" if metric.change == "ratio" else "plain"
    effect = paired_effect(pairs, scale)
    unit = "distinct prompt or conversation" if pairs.clustered else "prompt"
    what = "log ratio" if scale == "log" else "difference"
    ours, theirs = pairs.ratios
    rank = wilcoxon(ours, theirs)
    tests: list[Test] = [rank]
    if effect is not None:
        t = t_test(effect, f"paired t, linearised {what}")
        tests = [rank, t] if effect.standard_error == 0.0 else [t, rank]
        if pairs.ours.scalar and scale == "log" and (logs := paired_log_ratio(ours, theirs)) is not None:
            tests.append(t_test(logs, "paired t of logs"))
    return Findings(
        level="prompt",
        ours=figure(pairs.ours, metric.unit),
        theirs=figure(pairs.theirs, metric.unit),
        effect=effect,
        method=f"paired by {unit}, {what} of sums, Student's t",
        tests=tuple(tests),
        pairs=len(pairs.ours.y),
        notes=_notes(effect, pairs),
        alike=f"every {unit} shows the same change",
    )


def paired_effect(pairs: Pairs, scale: Scale) -> Effect | None:
    """None where a sum is 0: then there is no ratio."""
    a, b = (pairs.ours.y, pairs.ours.x), (pairs.theirs.y, pairs.theirs.x)
    found: Estimate = paired_ratio(a, b) if scale == "log" else paired_difference(a, b)
    if found.value is None or (scale == "log" and found.value <= -1):
        return None
    magnitude = 1.0 if scale == "log" else max(abs(sum(a[0]) / sum(a[1])), abs(sum(b[0]) / sum(b[1])))
    error = None if found.standard_error is None else settled(found.standard_error, magnitude)
    return Effect(
        scale=scale,
        value=math.log1p(found.value) if scale == "log" else found.value,
        standard_error=error,
        freedom=found.rows - 1,
        samples=found.rows,
        variance=(error or 0.0) ** 2 * found.rows,
        sides=1,
        mostly_equal=pairs.mostly_equal(shares=scale == "plain"),
    )


def paired_log_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Effect | None:
    """Geometric mean of the pairs' own ratios: each prompt weighs alike; None unless two pairs are all positive."""
    if len(ours) < 2 or min(*ours, *theirs) <= 0:
        return None
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    n, spread = len(logs), variance(logs)
    return Effect(
        scale="log",
        value=fmean(logs),
        standard_error=settled(math.sqrt(spread / n), 1.0),
        freedom=n - 1,
        samples=n,
        variance=spread,
        sides=1,
    )


def _notes(effect: Effect | None, pairs: Pairs) -> tuple[str, ...]:
    if effect is None:
        counted = pairs.ours.counted and pairs.theirs.counted
        return ("a sum of 0 has no ratio" if counted else "nothing was counted on a side",)
    if effect.standard_error is None:
        units = "distinct prompts or conversations" if pairs.clustered else "prompts"
        return (f"an interval needs {MIN_ROWS} {units} on both sides, found {effect.samples}",)
    return ()
