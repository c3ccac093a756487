"""One point: warm-up -> flush -> snapshot -> measure -> snapshot; and which points there are, in which order."""

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from remote_payload.failure import JobFailure, server_failure
from remote_payload.schema.bench import PointFacts, Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import to_json
from remote_payload.sglang_bench.client import Client, Load, Measured, Target, sampling_of
from remote_payload.sglang_bench.info import flush, snapshot
from remote_payload.sglang_bench.machine_samples import Machine
from remote_payload.sglang_bench.progress import INTERVAL_S, Journal, Progress
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.stall import STALL_S, Stall
from remote_payload.sglang_bench.workload import PER_USER, Workload

REQUESTS_NAME = "requests.jsonl.gz"
OPEN_WARMUP_USERS = 4
DYING_S = 15.0
"""A server whose scheduler died answers no more and ends some seconds later (five in 0.5.23, for its diagnostics)."""
FLUSHES = 10
FLUSH_PAUSE_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Start:
    """One start of a server and the repeats that are measured on it."""

    side: Side
    repeats: tuple[int, ...]


def starts(job: BenchJob) -> tuple[Start, ...]:
    """Which servers are started, in order.

    Alone: one start, all repeats on it. In a pair each repeat is a block with a start of either side, and every other
    block is turned round - spec, plain, plain, spec, ... - so that what drifts steadily (clocks, temperature, other
    people's load) falls on both sides alike, and so does the luck of a start.
    """
    everything = tuple(range(job.repeats))
    if not job.with_baseline:
        return (Start(side="spec" if job.speculates else "plain", repeats=everything),)
    order: list[Start] = []
    for repeat in everything:
        sides: tuple[Side, Side] = ("spec", "plain") if repeat % 2 == 0 else ("plain", "spec")
        order += [Start(side=side, repeats=(repeat,)) for side in sides]
    return tuple(order)


def loads(job: BenchJob) -> tuple[Load, ...]:
    """The loads of one repeat; the same arrivals on both sides."""
    closed = tuple(Load(users=users) for users in job.concurrency)
    return (*closed, *(Load(rate=rate, seed=job.seed) for rate in job.request_rate))


def in_words(load: Load) -> str:
    """For people: `4 users`, `2.5 requests/s`."""
    if load.users is None:
        return f"{load.rate:g} requests/s"
    return f"{load.users} user" + ("s" if load.users > 1 else "")


def requests_of(job: BenchJob, workload: Workload, load: Load) -> int:
    """How many requests a point has: as many as asked for, else every prompt once and at least five a user."""
    return job.requests or max(workload.once or len(workload.prompts), PER_USER * (load.users or 0))


def spare_needed(job: BenchJob) -> int:
    """How many prompts warm-ups take."""
    return max(_warmups(load) for load in loads(job))


class Points:
    """Measures the points of a job one after the other and keeps every request in `requests.jsonl.gz`."""

    def __init__(self, job: BenchJob, folder: Path, journal: Journal, machine: Machine) -> None:
        self._job, self._journal, self._machine = job, journal, machine
        self._file = gzip.open(folder / REQUESTS_NAME, "wt", encoding="ascii")  # noqa: SIM115 - closed by close()
        self.facts: list[PointFacts] = []
        self.kept = 0
        """Requests that are in the file."""

    def close(self) -> None:
        """Finish the file of requests."""
        self._file.close()

    def measure(self, running: Running, workload: Workload, load: Load, repeat: int, number: int) -> None:
        """One point on a running server. Raises JobFailure(server) when it dies, or serves no warm-up request."""
        facts, name = running.facts, in_words(load)
        target = self._target(running)
        warmups = self._warm_up(running, target, workload, load, name)
        flushed = _flush(running)
        if not flushed:
            self._journal.warn("not_flushed", f"point {len(self.facts)}: the server did not flush its prefix cache")
        self._journal.phase("measure", f"{facts.side}, {name}, repeat {repeat + 1} of {self._job.repeats}")
        prompts = self._prompts(workload, load)
        began_s, began_unix_s = time.monotonic(), time.time()
        before = snapshot(running.url, running.key, began_s)
        client = Client(target, len(self.facts), began_s)
        with self._machine.sampling():
            measured = self._run(client, running, prompts, load)
            after = snapshot(running.url, running.key, began_s)
        self._keep(measured)
        self.facts.append(
            PointFacts(
                point=len(self.facts),
                side=facts.side,
                start=number,
                concurrency=load.users,
                request_rate=load.rate,
                repeat=repeat,
                began_unix_s=began_unix_s,
                warmup_requests=warmups,
                warmup_repeats_prompts=not workload.spare,
                repeated_prompts=len(prompts) - len({(prompt.input_ids, prompt.text) for prompt in prompts}),
                flushed=flushed,
                requests=len(measured.samples),
                failed=sum(sample.error is not None for sample in measured.samples),
                first_sent_s=min(sample.sent_s for sample in measured.samples),
                last_token_s=max((sample.chunk_s[-1] for sample in measured.samples if sample.chunk_s), default=None),
                before=before,
                after=after,
                client_cpu_s=measured.cpu_s,
                client_late_s=measured.late_s,
            )
        )

    def _target(self, running: Running) -> Target:
        return Target(
            url=running.url,
            key=running.key,
            sampling=sampling_of(self._job),
            timeout_s=self._job.request_timeout_s,
            keep_outputs=self._job.keep_outputs,
            width=_width(running),
            hidden=running.hidden,
        )

    def _prompts(self, workload: Workload, load: Load) -> list[Prompt]:
        """From the first again when they are used up."""
        own = len(workload.prompts)
        return [workload.prompts[index % own] for index in range(requests_of(self._job, workload, load))]

    def _warm_up(self, running: Running, target: Target, workload: Workload, load: Load, name: str) -> int:
        """Other prompts than the measured where there are enough, at full length; nothing of it is kept."""
        self._journal.phase("warm-up", f"{running.facts.side}, {name}")
        count = _warmups(load)
        source = workload.spare or workload.prompts[::-1]
        prompts = [source[index % len(source)] for index in range(count)]
        client = Client(target, len(self.facts), time.monotonic())
        users = Load(users=load.users or OPEN_WARMUP_USERS)
        stall = Stall(running, lambda: client.tokens, self._job.request_timeout_s)
        measured = client.run(prompts, users, lambda _: None, stall.check)
        _see_it_end(running, measured)
        samples = measured.samples
        failed = [sample for sample in samples if sample.error is not None]
        running.check()
        if len(failed) == len(samples):
            raise server_failure(
                f"the server answers none of {len(samples)} warm-up requests: {failed[0].error}",
                hint=f"see whether the prompts fit its context and vocabulary{_where_log(running)}",
            )
        if failed:
            self._journal.warn("warm_up_failed", f"{len(failed)} of {len(samples)} warm-ups failed: {failed[0].error}")
        return len(samples)

    def _run(self, client: Client, running: Running, prompts: list[Prompt], load: Load) -> Measured:
        progress = Progress(self._journal, len(prompts))
        stall = Stall(running, lambda: client.tokens, min(STALL_S, self._job.request_timeout_s))
        watch = _every(INTERVAL_S, lambda: progress.tell(client.tokens), stall.check)
        try:
            measured = client.run(prompts, load, progress.count, watch)
            _see_it_end(running, measured)
        except JobFailure:  # the server died: what came before it stays
            self._keep(client.measured)
            raise
        progress.tell(client.tokens)
        return measured

    def _keep(self, measured: Measured) -> None:
        for sample in measured.samples:
            self._file.write(to_json(sample) + "\n")
        self._file.flush()
        self.kept += len(measured.samples)


def _see_it_end(running: Running, measured: Measured) -> None:
    """Where the last request found no server, or was cut off, wait for its end.

    Raises JobFailure(server): that names what happened.
    """
    last = max(measured.samples, key=lambda sample: sample.sent_s)
    is_cut_off = last.status is None or (last.status == 200 and last.finish is None)
    if running.facts.attached or last.error is None or not is_cut_off:
        return
    until_s = time.monotonic() + DYING_S
    while time.monotonic() < until_s:
        running.check()
        time.sleep(FLUSH_PAUSE_S)


def _where_log(running: Running) -> str:
    return "" if running.facts.attached else f"; its log on the server: {running.log_path}"


def _warmups(load: Load) -> int:
    return 2 * (load.users or OPEN_WARMUP_USERS)


def _flush(running: Running) -> bool:
    """The last warm-up may not be booked out yet, and a busy server refuses: again for a while."""
    for _ in range(FLUSHES):
        if flush(running.url, running.key):
            return True
        time.sleep(FLUSH_PAUSE_S)
    return False


def _width(running: Running) -> int | None:
    """Drafts that one verify step judges, as the server tells; None where it changes them while it runs."""
    told = {fact.name: fact.effective for fact in running.facts.arguments}
    if told.get("speculative_adaptive") == "true":
        return None
    try:
        tokens = json.loads(told.get("speculative_num_draft_tokens") or "null")
    except ValueError:
        return None
    return tokens - 1 if isinstance(tokens, int) else None


def _every(seconds: float, tell: Callable[[], None], check: Callable[[], None]) -> Callable[[], None]:
    """`check` at every call, `tell` so often at most."""
    told_s = time.monotonic()

    def watch() -> None:
        nonlocal told_s
        check()
        if time.monotonic() - told_s >= seconds:
            told_s = time.monotonic()
            tell()

    return watch
