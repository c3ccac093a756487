"""Under what circumstances a served benchmark was made: server, workload, client, machine, warnings."""

from orchestrator.compare.counted import counted
from orchestrator.compare.served import effective
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.bench_machine import machine_lines
from orchestrator.report.head import labelled
from orchestrator.report.words import UNKNOWN, percent, seconds
from remote_payload.schema.bench import BenchResult, ServerFacts

SHOWN = 3


def bench_circumstances(report: BenchReport, width: int, *, verbose: bool) -> list[str]:
    """Short: what a reader must know to compare. Verbose: everything."""
    result = report.result
    lines = [("server", _server(result)), ("workload", _workload(result)), ("client", _client(report))]
    lines += [("files", _files(report))] if report.folder and (verbose or report.harness) else []
    lines += [("warning", text) for text in result.warnings[: None if verbose else SHOWN]]
    hidden = 0 if verbose else max(0, len(result.warnings) - SHOWN)
    lines += [("", f"and {hidden} more")] if hidden else []
    if verbose:
        lines += [line for server in result.servers for line in _started(server)]
        lines += machine_lines(result, report.machine)
        lines.append(("time", seconds(result.seconds)))
    return labelled(lines, width)


def _server(result: BenchResult) -> str:
    version = f"SGLang {result.sglang.version or UNKNOWN}"
    spec = next((server for server in result.servers if server.side == "spec"), None)
    server = spec or next(iter(result.servers), None)
    if server is None:
        return version
    words = [version, f"target {effective(server, 'model_path') or UNKNOWN}"]
    if spec is not None:
        shape = [effective(spec, f"speculative_{name}") for name in ("num_steps", "eagle_topk", "num_draft_tokens")]
        steps, topk, tokens = (UNKNOWN if value is None else str(value) for value in shape)
        algorithm = effective(spec, "speculative_algorithm") or "speculation"
        words.append(f"{algorithm} with steps {steps}, topk {topk}, draft tokens {tokens} in effect")
        words.append(f"drafter {effective(spec, 'speculative_draft_model_path') or UNKNOWN}")
    starts = len(result.servers)
    words.append("attached" if server.attached else counted(starts, "start"))
    return ", ".join(words)


def _workload(result: BenchResult) -> str:
    workload = result.workload
    ends = "end of text ignored" if workload.ignore_eos else "end of text respected"
    sampling = "greedy" if workload.temperature == 0 else f"temperature {workload.temperature:g}"
    template = f", {workload.template} chat template" if workload.template else ""
    return (
        f"{counted(workload.prompts, 'prompt')} ({workload.form}{template}) of "
        f"{workload.source}{_requests_words(result)}, at most "
        f"{workload.max_new_tokens} new tokens, {ends}, {sampling}, seed {workload.seed}, "
        f"sha256 {workload.sha256[:12]}"
    )


def _requests_words(result: BenchResult) -> str:
    """How many were sent where that is not each prompt once."""
    sent = sorted(
        {point.requests for point in result.points} | {run.requests for run in result.harness if run.requests}
    )
    if not sent or sent == [result.workload.prompts]:
        return ""
    return f", {sent[0] if len(sent) == 1 else f'{sent[0]} to {sent[-1]}'} request{'' if sent == [1] else 's'} a point"


def _files(report: BenchReport) -> str:
    names = [call.file for call in report.harness if call.file is not None]
    names += ["requests.jsonl.gz (every request)"] if report.requests else []
    return f"{report.folder}: {', '.join([*names, 'bench.json'])}"


def _tool(report: BenchReport) -> str:
    """SGLang's own, where it was the client."""
    runs = report.result.harness
    module = next((after for word, after in zip(runs[0].argv, runs[0].argv[1:], strict=False) if word == "-m"), UNKNOWN)
    flushed = [run.flushed for run in runs]
    warm = "flushed" if all(flushed) else UNKNOWN if None in flushed else "NOT flushed"
    return (
        f"SGLang's own tool ({module}) on the host; prefix cache {warm} before each call, then its warm-up asks the "
        "first prompt"
    )


def _client(report: BenchReport) -> str:
    loads = report.figures.loads
    if not loads:
        return _tool(report) if report.result.harness else "on the host; nothing was measured"
    cpu = max((load.client_cpu for load in loads if load.client_cpu is not None), default=None)
    cached = [load.cached_share for load in loads if load.cached_share is not None]
    flushed = all(point.flushed for load in loads for point in load.points)
    warm = "flushed before each point" if flushed else "NOT flushed before every point"
    share = percent(max(cached)) if cached else UNKNOWN
    return f"on the host, {percent(cpu)} of a core; prefix cache {warm}, {share} of the prompt tokens cached at most"


def _started(server: ServerFacts) -> list[tuple[str, str]]:
    phases = ", ".join(f"{phase.name} {seconds(phase.seconds)}" for phase in server.phases)
    ended = f"; ended: {server.stopped}" if server.stopped else ""
    ready = "attached" if server.attached else f"ready after {seconds(server.ready_s)}"
    lines = [(f"{server.side} {server.start}", f"{ready}{f' ({phases})' if phases else ''}{ended}")]
    return [*lines, *(("log", line.line) for line in server.lines)]
