"""The top line where SGLang's own tool measured: its figures by its definitions, their difference not judged."""

from collections.abc import Sequence

from orchestrator.compare.served_harness import HarnessFigures, HarnessLoad, harness_loads, harness_speedups
from orchestrator.diagnosis.served_verdict import ServedVerdict

TOOL = "SGLang's own tool"


def harness_line(calls: Sequence[HarnessFigures]) -> tuple[ServedVerdict, str]:
    """The verdict and its sentence; a call that failed makes all of it no measurement."""
    bad = [call for call in calls if call.failed is not None]
    if bad:
        which = f"{len(bad)} of {len(calls)} calls of {TOOL} failed"
        return "invalid", f"{which} ({_where(bad[0])}, {bad[0].side}: {bad[0].failed}): no measurement"
    loads = harness_loads(calls)
    pairs = harness_speedups(loads)
    if not pairs:
        return "measured", "; ".join([f"{TOOL} measured {_words(loads[0])}", *map(_words, loads[1:])])
    told = []
    for ours, theirs, speedup in pairs:
        n = len(theirs.calls)
        low, high = speedup.low, speedup.high
        within = f"{n} call{'' if n == 1 else 's'} each" if low is None or high is None else f"{low:.2f} to {high:.2f}"
        told.append(f"{_words(ours)}, {_rate(theirs)} without a drafter ({speedup.value or 0:.2f}x, {within})")
    return "measured", f"{TOOL} measured {'; '.join(told)}"


def _words(load: HarnessLoad) -> str:
    length = load.mean("accept_length") if load.side == "spec" else None
    also = "" if length is None else f", its accept length {length:.2f}"
    side = "" if load.side == "spec" else " (plain)"
    return f"{_rate(load)} {_where(load.calls[0])}{side}{also}"


def _rate(load: HarnessLoad) -> str:
    return f"{load.throughput.value or 0:.1f} tok/s"


def _where(call: HarnessFigures) -> str:
    if call.request_rate is not None:
        return f"at {call.request_rate:g} requests/s"
    if call.concurrency is None:
        return "at a load that is not told"
    return f"at {call.concurrency} user{'' if call.concurrency == 1 else 's'}"
