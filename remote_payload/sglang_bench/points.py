"""One point: warm-up -> flush -> snapshot -> measure -> snapshot."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from remote_payload.failure import server_failure
from remote_payload.schema.bench import PointFacts, RequestSample, Snapshot
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.client import Client, Load, Measured, Target, sampling_of
from remote_payload.sglang_bench.course import Course, course_of
from remote_payload.sglang_bench.info import flush, snapshot
from remote_payload.sglang_bench.kept_requests import KeptRequests
from remote_payload.sglang_bench.machine_samples import Machine
from remote_payload.sglang_bench.plan import OPEN_WARMUP_USERS, in_words, requests_of, warmups_of
from remote_payload.sglang_bench.progress import INTERVAL_S, Journal, Progress
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.stall import STALL_S, Stall
from remote_payload.sglang_bench.workload import Workload

REQUESTS_NAME = "requests.jsonl.gz"
DYING_S = 15.0
"""A server whose scheduler died answers no more and ends some seconds later (five in 0.5.23, for its diagnostics)."""
FLUSHES = 10
FLUSH_PAUSE_S = 0.2
FLUSH_PATIENCE_S = 10.0
"""After this long no further try begins."""


class _Window(TypedDict):
    """Of `PointFacts` what the requests tell between two snapshots."""

    began_unix_s: float
    requests: int
    failed: int
    first_sent_s: float
    last_token_s: float | None
    before: Snapshot
    after: Snapshot
    client_cpu_s: float
    client_waited_s: float | None
    client_late_s: float


class Points:
    """Measures the points of a job one after the other and keeps every request in `requests.jsonl.gz`."""

    def __init__(
        self, job: BenchJob, path: Path, journal: Journal, machine: Machine, course: Course | None = None
    ) -> None:
        """`path`: of the file of requests; `course`: of the whole job, where others measure points of it as well."""
        self._job, self._journal, self._machine = job, journal, machine
        self.course = course_of(job) if course is None else course
        """Of the whole job, whoever measures its points."""
        self._requests = KeptRequests(path)
        self.facts: list[PointFacts] = []
        self.before_first: Callable[[Running], None] = lambda _: None
        """Called once, when nothing but the first point's own requests is left to do."""

    @property
    def kept(self) -> int:
        """Requests that are in the file."""
        return self._requests.count

    def close(self) -> None:
        """Finish the file of requests."""
        self._requests.close()

    def measure(self, running: Running, workload: Workload, load: Load, repeat: int, number: int) -> None:
        """One point on a running server. Raises JobFailure(server) when it dies, or serves no warm-up request."""
        self.course.begin()
        target = self._target(running)
        warmups = self._warm_up(running, target, workload, load, in_words(load))
        if not self.facts:
            self.before_first(running)
        flushed = self._flush(running)
        self._tell_the_point(running, load, repeat)
        self.course.count()
        prompts = self._prompts(workload, load)
        window = self._window(running, target, prompts, load)
        self._requests.settle()
        self.course.end()
        self.facts.append(
            PointFacts(
                point=len(self.facts),
                side=running.facts.side,
                start=number,
                concurrency=load.users,
                request_rate=load.rate,
                repeat=repeat,
                warmup_requests=warmups,
                warmup_repeats_prompts=not workload.spare,
                repeated_prompts=len(prompts) - len({(prompt.input_ids, prompt.text) for prompt in prompts}),
                flushed=flushed,
                **window,
            )
        )

    def _flush(self, running: Running) -> bool:
        flushed = _flush(running)
        if not flushed:
            self._journal.warn("not_flushed", f"point {len(self.facts)}: the server did not flush its prefix cache")
        return flushed

    def _tell_the_point(self, running: Running, load: Load, repeat: int) -> None:
        where = f"point {self.course.number} of {self.course.points}"
        which = f"{running.facts.side}, {in_words(load)}, repeat {repeat + 1} of {self._job.repeats_in_all}"
        self._journal.phase("measure", f"{where}: {which}")

    def _window(self, running: Running, target: Target, prompts: list[Prompt], load: Load) -> _Window:
        began_s, began_unix_s = time.monotonic(), time.time()
        before = snapshot(running.url, running.key, began_s)
        client = Client(target, len(self.facts), began_s)
        with self._machine.sampling():
            measured = self._run(client, running, prompts, load)
            after = snapshot(running.url, running.key, began_s)
        samples = measured.samples
        return _Window(
            began_unix_s=began_unix_s,
            requests=len(samples),
            failed=sum(sample.error is not None for sample in samples),
            first_sent_s=min(sample.sent_s for sample in samples),
            last_token_s=max((sample.chunk_s[-1] for sample in samples if sample.chunk_s), default=None),
            before=before,
            after=after,
            client_cpu_s=measured.own.cpu_s,
            client_waited_s=measured.own.waited_s,
            client_late_s=measured.late_s,
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
        count = warmups_of(load)
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
        progress = Progress(self._journal, len(prompts), self.course)
        stall = Stall(running, lambda: client.tokens, min(STALL_S, self._job.request_timeout_s))
        watch = _every(INTERVAL_S, lambda: progress.tell(client.tokens), stall.check)

        def count(sample: RequestSample) -> None:
            self._requests.add(sample)
            progress.count(sample)

        measured = client.run(prompts, load, count, watch)
        _see_it_end(running, measured)
        progress.tell(client.tokens)
        return measured


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


def _flush(running: Running) -> bool:
    """The last warm-up may not be booked out yet, and a busy server refuses: again for a while."""
    until_s = time.monotonic() + FLUSH_PATIENCE_S  # one that hangs costs its deadline once, not a try
    for _ in range(FLUSHES):
        if flush(running.url, running.key):
            return True
        if time.monotonic() > until_s:
            return False
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
