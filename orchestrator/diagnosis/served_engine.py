"""What a server did that its arguments do not tell: which drafter it loaded, which path it took, how it ended."""

import re
from collections.abc import Iterator

from orchestrator.compare.served import decoded, effective
from orchestrator.diagnosis.finding import CheckResult, Severity, Subject
from orchestrator.diagnosis.served_asked import has_line, log_evidence, seen
from remote_payload.schema.bench import BenchResult, ServerFacts

DRAFTER = Subject(check="K13", title="loaded drafter")
SIMULATED = Subject(check="K13", title="simulated acceptance")
PATH = Subject(check="K13", title="speculation path")
ENDED = Subject(check="server", title="end of the server")
_LENGTH_IN_LINE = re.compile(r"""SIMULATE_ACC_LEN[\s'"=:]{1,5}(-?\d+(?:\.\d+)?)""")

_PATHS: tuple[tuple[str, Severity, str], ...] = (
    ("spec_v1", "minor", "the older speculative worker (v1) runs: drafting and scheduling do not overlap"),
    ("spec_v2_synchronous", "note", "the speculative worker runs without overlap (synchronous v2)"),
    ("overlap_off", "minor", "the overlap scheduler is off: the CPU's work is not hidden behind the GPU's"),
    ("cuda_graph_off", "serious", "CUDA graphs are off: every step pays its launches"),
)
"""Rule of the log, what it costs, and its words; the first that was seen is told."""


def check_engine(server: ServerFacts, result: BenchResult) -> Iterator[CheckResult]:
    """Findings on one server; passes where the drafter is told and is one."""
    if server.side == "spec":
        yield from _simulated(server, result)
        yield from _drafter(server)
        yield from _path(server, on_gpu=bool(result.gpus))
    yield from _ended(server)


def simulates(result: BenchResult) -> bool:
    """Whether the server's accept length is made up by SGLANG_SIMULATE_ACC_LEN."""
    return bool(result.sglang.simulates_acceptance) or any(_simulated_length(server) for server in result.servers)


def _simulated_length(server: ServerFacts) -> object:
    """What SGLang takes for the accept length: above 0 alone, its default of -1 being off. None = nothing says so."""
    told = effective(server, "SGLANG_SIMULATE_ACC_LEN")
    line = has_line(server, "simulated_acceptance")
    if told is None:  # a line that only names the variable says nothing
        found = None if line is None else _LENGTH_IN_LINE.search(line)
        told = None if found is None else found.group(1)
    try:
        length = float(str(told))
    except ValueError:
        return None
    return told if length > 0 else None


def _simulated(server: ServerFacts, result: BenchResult) -> Iterator[CheckResult]:
    if not simulates(result):
        return
    yield SIMULATED.finding(
        "the accept length is simulated (SGLANG_SIMULATE_ACC_LEN): it says nothing about the drafter",
        severity="fatal",
        cause="engine",
        evidence=(seen("SGLANG_SIMULATE_ACC_LEN", _simulated_length(server) or "set in the server's environment"),),
        remedy=("unset SGLANG_SIMULATE_ACC_LEN; with it only the step cost r is measured",),
        refuted_by="the variable is not in the server's environment",
    )


def _drafter(server: ServerFacts) -> Iterator[CheckResult]:
    target, path = effective(server, "model_path"), effective(server, "speculative_draft_model_path")
    algorithm = effective(server, "speculative_algorithm")
    asked = next((decoded(fact.requested) for fact in server.arguments if fact.name == "draft_class"), None)
    if server.draft_class is None and path is None:
        yield DRAFTER.cannot_tell("neither log nor /server_info names the drafter", needs="the server's log")
        return
    evidence = (seen("drafter's folder in effect", path), seen("drafter's class", server.draft_class or "not told"))
    is_target = path is not None and path == target
    same_class = server.draft_class is not None and server.draft_class == server.model_class
    if is_target or same_class:
        yield DRAFTER.finding(
            "the target itself was loaded as its own drafter" + ("" if is_target else f": {server.draft_class}"),
            severity="fatal",
            cause="loading",
            evidence=(*evidence, *log_evidence(has_line(server, "draft_path_ignored"))),
            remedy=("give --draft the drafter's folder, and see that its config.json names the drafter's class",),
            refuted_by="another class in the second `Load weight end` line of the log",
        )
    elif asked is not None and server.draft_class is not None and asked != server.draft_class:
        yield DRAFTER.finding(
            f"the drafter's config.json names a {asked}, the server loaded a {server.draft_class}",
            severity="serious" if "eagle" in server.draft_class.lower() else "fatal",
            cause="loading",
            evidence=(seen("class asked for", asked), *evidence),
            remedy=("see which class the installed SGLang has for this drafter; another computes something else",),
            refuted_by="the class of config.json in the log's `Load weight end` line",
        )
    elif algorithm == "EAGLE3" and server.draft_class is not None and "eagle" not in server.draft_class.lower():
        yield DRAFTER.finding(
            f"asked for an EAGLE-3 drafter, the server loaded a {server.draft_class}",
            severity="fatal",
            cause="loading",
            evidence=evidence,
            remedy=('name the class in the drafter\'s config.json: "architectures": ["LlamaForCausalLMEagle3"]',),
            refuted_by="an accept length well above 1",
        )
    elif server.draft_class is not None:
        yield DRAFTER.passed(f"the server loaded a {server.draft_class}", evidence)


def _path(server: ServerFacts, *, on_gpu: bool) -> Iterator[CheckResult]:
    for rule, severity, words in _PATHS:
        line = has_line(server, rule)
        if line is None or (rule == "cuda_graph_off" and not on_gpu):
            continue
        yield PATH.finding(
            words,
            severity=severity if on_gpu else "note",
            cause="engine",
            evidence=log_evidence(line),
            remedy=("compare only with runs that took the same path; the log's line says what turned it off",),
            refuted_by="the same speed with it on",
        )
        return


def _ended(server: ServerFacts) -> Iterator[CheckResult]:
    if server.stopped == "died":
        yield ENDED.finding(
            f"the server ({server.side}, start {server.start}) ended by itself before it was stopped",
            severity="fatal",
            cause="engine",
            evidence=(seen("stopped", "died"),),
            remedy=("the end of its log (server-N.log in the run's folder on the host) says why",),
            refuted_by="requests that were answered after that moment",
        )
    if server.survivors:
        pids = ", ".join(map(str, server.survivors))
        yield ENDED.finding(
            f"processes of the server could not be ended: {pids}",
            severity="serious",
            cause="engine",
            evidence=(seen("pids", pids),),
            remedy=("end them on the host; they hold GPU memory that the next run lacks",),
            refuted_by="no such processes on the host",
        )
    if server.gpu_memory_left_bytes:
        yield ENDED.finding(
            f"the server's GPU memory was not free after its end: {server.gpu_memory_left_bytes / 2**30:.1f} GiB",
            severity="minor",
            cause="engine",
            evidence=(seen("bytes still held", server.gpu_memory_left_bytes),),
            remedy=("look at nvidia-smi on the host before the next run",),
            refuted_by="nvidia-smi shows it free",
        )
