"""The served benchmark's records: what SGLang really ran with, and every request raw; figures are made on the laptop.

`result/bench.json` holds one `BenchResult`; `result/requests.jsonl.gz` one `RequestSample` a line, in order of sending
(those of a point that was cut: of finishing); `result/machine.jsonl.gz` one `MachineSample` a line.

Clocks. All `*_s` of a request are seconds on the client's monotonic clock since its point began (`PointFacts.began`).
"""

from typing import Literal

from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.record import SCHEMA_VERSION, Record
from remote_payload.schema.workload import WorkloadFacts

Side = Literal["spec", "plain"]
"""`spec`: with speculation as asked for; `plain`: the same server without it."""


class ServerPhase(Record):
    """One phase of a server's start, read off its log: `imports`, `weights`, `cache`, `graphs`, `warm-up`."""

    name: str
    seconds: float


class ArgumentFact(Record):
    """One server argument: what was asked for and what the server runs with, as JSON texts."""

    name: str
    """As `/server_info` spells it, e.g. `speculative_num_draft_tokens`."""
    requested: str | None
    """None = not asked for: the server was free to choose."""
    effective: str | None
    """None = the server does not tell."""
    source: Literal["server_info", "log", "launch_command", "environment"] = "server_info"
    """Where `effective` was read."""


class LogLine(Record):
    """One line of the server's log that decided something."""

    rule: str
    """Which pattern it matched, e.g. `draft_tokens_adjusted`."""
    line: str


class AutoSteps(Record):
    """What SGLang chooses by itself for one class of target when no step flag is given, as its source says."""

    target_class: str | None
    """As `architectures` of config.json names it; None = any class not named."""
    num_steps: int
    eagle_topk: int
    num_draft_tokens: int


class SglangFacts(Record):
    """The SGLang that is installed where the server runs, read from its files; None where it could not be read."""

    version: str | None
    path: str | None = None
    forces_draft_tokens: bool | None = None
    """Whether its source overwrites num_draft_tokens with num_steps + 1 at topk 1."""
    running_requests_cap: int | None = None
    """What it sets max_running_requests to for speculation when unset."""
    returns_histogram: str | None = None
    """Name of the per-request histogram field its source knows."""
    bench_module: str | None = None
    """`sglang.benchmark.serving` or `sglang.bench_serving`."""
    auto_steps: tuple[AutoSteps, ...] = ()
    simulates_acceptance: bool | None = None
    """Whether SGLANG_SIMULATE_ACC_LEN is set in the server's environment."""


class ServerFacts(Record):
    """One server: how it was started (or found), what it says about itself, how it ended."""

    side: Side
    start: int
    """0-based number of the start."""
    attached: bool
    url: str
    argv: tuple[str, ...] = ()
    """Redacted: values of options that name keys, tokens or passwords are replaced."""
    pid: int | None = None
    ready_s: float | None = None
    """From launch to really ready; None = attached."""
    phases: tuple[ServerPhase, ...] = ()
    arguments: tuple[ArgumentFact, ...] = ()
    lines: tuple[LogLine, ...] = ()
    server_info: str | None = None
    """`/server_info` as JSON text, secrets redacted."""
    model_class: str | None = None
    draft_class: str | None = None
    """The class that the log says was loaded as the draft."""
    stopped: Literal["term", "kill", "left", "died"] | None = None
    """`left`: attached servers are not ours to stop; `died`: it ended by itself."""
    stop_s: float | None = None
    survivors: tuple[int, ...] = ()
    """Pids that outlived TERM and KILL."""
    gpu_memory_left_bytes: int | None = None
    """What the server's processes still held after the stop; None = no GPU or not known."""


class Snapshot(Record):
    """What the server counted itself, at one moment."""

    time_s: float
    avg_spec_accept_length: tuple[float | None, ...] = ()
    """One a DP rank; None = the key is absent until 40 decode steps were made."""
    generation_tokens: float | None = None
    verify_calls: float | None = None
    """From /metrics where it is enabled."""
    running: int | None = None
    queued: int | None = None


class RequestSample(Record):
    """One request as the client saw it."""

    kind: Literal["request"] = "request"
    point: int
    index: int
    prompt: int
    """Index of the prompt in the workload."""
    prompt_tokens: int | None
    sent_s: float
    chunk_s: tuple[float, ...] = ()
    """When each chunk with new tokens came."""
    chunk_tokens: tuple[int, ...] = ()
    """How many new tokens each of them carried."""
    done_s: float | None = None
    output_ids: tuple[int, ...] | None = None
    completion_tokens: int | None = None
    finish: str | None = None
    cached_tokens: int | None = None
    verify_steps: int | None = None
    correct_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] | None = None
    status: int | None = None
    error: str | None = None
    broken_identities: tuple[str, ...] = ()
    """Identities of the answer's own numbers that do not hold, e.g. `sum(histogram) = 42, verify steps = 43`."""


class PointFacts(Record):
    """One load: so many users (or such a rate) on one server, once."""

    point: int
    side: Side
    start: int
    concurrency: int | None
    """Closed loop with so many users; None = open loop at `request_rate`."""
    request_rate: float | None = None
    """Requests a second, Poisson; None = closed loop."""
    repeat: int
    began_unix_s: float
    warmup_requests: int
    warmup_repeats_prompts: bool = False
    """Whether the warm-up had to ask prompts that are measured as well, because the workload has no others."""
    repeated_prompts: int | None = None
    """Requests whose prompt an earlier request of the same point asked already, so that the prefix cache held it."""
    flushed: bool
    """Whether the prefix cache (and the server's counters) were flushed just before."""
    requests: int
    failed: int
    first_sent_s: float
    last_token_s: float | None
    """The clock of throughput stops here; None = no token came."""
    before: Snapshot | None = None
    after: Snapshot | None = None
    client_cpu_s: float
    """CPU time of the client process during the point."""
    client_waited_s: float | None = None
    """How long the thread that sends and receives was runnable without a core; None = this kernel does not tell."""
    client_late_s: float = 0.0
    """Largest delay between when a request was due and when it was sent."""


class HarnessRun(Record):
    """SGLang's own tool, run unchanged: its line, and how it was called."""

    side: Side
    argv: tuple[str, ...]
    returncode: int
    result_file: str | None
    """Name of its JSONL in the result folder."""
    output_tail: str = ""
    concurrency: int | None = None
    """Its `--max-concurrency`; None = a rate was given, or an older record."""
    request_rate: float | None = None
    repeat: int | None = None
    """None = an older record."""
    requests: int | None = None
    """How many it was to send; None = an older record."""
    flushed: bool | None = None
    """Whether the prefix cache was flushed just before; its own warm-up asks the first prompt again after that."""


class SampledLoad(Record):
    """The lowest load once more at another temperature; its requests are in `result/sampled.jsonl.gz`."""

    temperature: float
    point: PointFacts
    """`point` is 0 there: it counts from its own file."""


class BenchResult(Record):
    """`result/bench.json`."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["bench"] = "bench"
    sglang: SglangFacts
    servers: tuple[ServerFacts, ...]
    workload: WorkloadFacts
    points: tuple[PointFacts, ...]
    harness: tuple[HarnessRun, ...] = ()
    sampled: SampledLoad | None = None
    """None = not asked for, or not yet."""
    whole: bool = True
    """False = written on the way; the job ended before it was done, or has not ended yet."""
    planned: int | None = None
    """How many points (or calls of SGLang's own tool) the job was to measure; None = an older record."""
    repeats: int | None = None
    """Of each load."""
    python: str
    host_cpus: int
    gpus: tuple[str, ...] = ()
    gpu_answer: Literal["ok", "no_nvidia_smi", "hung", "failed"] | None = None
    """How nvidia-smi answered; unless `ok`, which GPUs there are is unknown. None = a result that does not tell."""
    target: FolderFacts | None = None
    """None = no folder of this host: a name on a hub, another root, a server that was up, or an older record."""
    draft: FolderFacts | None = None
    named_target: FolderFacts | None = None
    """The folder that a server that was up names, as it lies on this host now; None = none here, or an older record."""
    named_draft: FolderFacts | None = None
    asked_draft: FolderFacts | None = None
    """The drafter that a server that was up was asked about; None = none was named, or an older record."""
    seconds: float
    warnings: tuple[str, ...] = ()
