"""Whether a load of a served benchmark is a measurement at all, and what to keep in mind where it is one.

No measurement: failed or unanswered requests, a run that ended early, other people's traffic, a prefix cache that
nobody flushed, a GPU that had to slow down, acceptance that the server only pretends, plain decoding that came out
slower than any server's.
"""

from collections.abc import Mapping, Sequence

from orchestrator.compare.bench_facts import SIMULATED, servers_of, simulated_acceptance
from orchestrator.compare.extract_bench import Judged, LoadKey, load_key
from orchestrator.compare.served import LoadFigures, ServedFigures
from orchestrator.compare.served_part import EARLY
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_measurement import CACHE, REQUESTS, TRAFFIC, check_load
from orchestrator.diagnosis.served_pairs import BASELINE, check_baseline
from orchestrator.diagnosis.served_whole import check_answers, check_machine, check_workload, slowdowns
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_machine import MachineSample


def judge_loads(
    result: BenchResult,
    requests: Sequence[RequestSample],
    figures: ServedFigures,
    machine: Sequence[MachineSample] = (),
) -> Mapping[LoadKey, Judged]:
    """What speaks against each load, by what names it."""
    common = () if figures.part is None else (f"{EARLY}, {figures.part.words}",)
    general = [
        *check_workload(result.workload),
        *check_machine(machine),
        *([check_answers(requests)] if requests else []),
    ]
    told = tuple(item.summary for item in general if item.outcome == "finding")
    suspicious = [item for item in figures.pairs if item.pairing.suspicious]
    words = [item.summary for item in check_baseline(figures) if item.title == BASELINE.title]
    judged = {}
    for load in figures.loads:
        findings = [item for item in check_load(load) if item.outcome == "finding"]
        invalid = [*common, *(item.summary for item in findings if _voids(item, load)), *_slowed(load, machine)]
        invalid += _simulated(result, load)
        if not load.requests and not load.failed:
            invalid.append("no request was answered")
        paired = [text for item, text in zip(suspicious, words, strict=True) if load is item.plain]
        noted = [text for item, text in zip(suspicious, words, strict=True) if load is item.spec]
        warnings = [*(item.summary for item in findings if not _voids(item, load)), *told, *noted]
        judged[load_key(load)] = Judged(invalid=tuple(invalid + paired), warnings=tuple(warnings))
    return judged


def _voids(item: CheckResult, load: LoadFigures) -> bool:
    if item.title == CACHE.title:  # after a flush it is what the prompts share among themselves: the same every time
        return not all(point.flushed for point in load.points)
    return item.title in (REQUESTS.title, TRAFFIC.title)


def _simulated(result: BenchResult, load: LoadFigures) -> list[str]:
    """Acceptance that the server draws instead of the drafter: neither it nor the speed it gives is anybody's."""
    told = "no" if load.side == "plain" else simulated_acceptance(result, servers_of(result, load))
    if told in (None, "no"):
        return []
    length = "" if told == "yes" else f" ({SIMULATED}={told})"
    return [f"acceptance is simulated{length}: neither the accept length nor the speed is the drafter's"]


def _slowed(load: LoadFigures, machine: Sequence[MachineSample]) -> list[str]:
    """GPUs that were held back while they worked on this load."""
    spans = [(point.began_unix_s, point.began_unix_s + (point.last_token_s or 0.0)) for point in load.points]
    during = [item for item in machine if any(start <= item.time_unix_s <= end for start, end in spans)]
    return [f"GPU {gpu} was slowed down while it was measured: {why}" for gpu, why in slowdowns(during)]
