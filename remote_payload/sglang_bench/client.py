"""The load of one point: so many users in a closed loop, or Poisson arrivals; every request becomes a sample.

Threads, because they wait in `recv` nearly all the time; the CPU they take is measured and told with the point.
"""

import json
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.answer import Answer, read_answer
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.stream import Connection, StreamBroken, Streamed

LOOK_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where requests go and how they are asked."""

    url: str
    key: str | None
    sampling: dict[str, Any]
    """`sampling_params` of every request."""
    timeout_s: float
    keep_outputs: bool = True
    width: int | None = None
    """Drafts that one verify step judges; None = unknown or changing."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """One point's load: `users` in a closed loop, or `rate` requests a second."""

    users: int | None = None
    rate: float | None = None
    seed: int = 0


@dataclass(kw_only=True)
class Measured:
    """What one point gave."""

    samples: list[RequestSample] = field(default_factory=list)
    cpu_s: float = 0.0
    late_s: float = 0.0


def sampling_of(job: BenchJob) -> dict[str, Any]:
    """The job's sampling as SGLang names it; everything that shapes the output is said."""
    values: dict[str, Any] = {
        "temperature": job.temperature,
        "max_new_tokens": job.max_new_tokens,
        "ignore_eos": job.ignore_eos,
    }
    if job.top_p is not None:
        values["top_p"] = job.top_p
    if job.top_k is not None:
        values["top_k"] = job.top_k
    return values


class Client:
    """Sends the prompts of one point. `began_s` (monotonic) is what the samples' times count from."""

    def __init__(self, target: Target, point: int, began_s: float) -> None:
        self._target, self._point, self._began_s = target, point, began_s
        self._lock = threading.Lock()
        self.measured = Measured()
        """What is known so far."""
        self._tokens = 0
        self._under_way: set[Streamed] = set()
        self._stop = threading.Event()

    @property
    def tokens(self) -> int:
        """How many came so far, also of requests that are not over."""
        with self._lock:
            return self._tokens + sum(streamed.tokens for streamed in self._under_way)

    def run(
        self,
        prompts: Sequence[Prompt],
        load: Load,
        count: Callable[[RequestSample], None],
        watch: Callable[[], None],
    ) -> Measured:
        """Send all prompts in order; samples come back in order of sending, also those that failed.

        `count` gets each finished sample, on any thread; `watch` is called a few times a second, and what it raises
        ends the point.
        """
        cpu_s = time.process_time()
        run = self._closed if load.users is not None else self._open
        threads = run(prompts, load, count)
        try:
            while any(thread.is_alive() for thread in threads):
                watch()
                _join(threads, LOOK_S)
        finally:
            self._stop.set()
        self.measured.cpu_s = time.process_time() - cpu_s
        self.measured.samples.sort(key=lambda sample: sample.index)
        return self.measured

    def _closed(
        self, prompts: Sequence[Prompt], load: Load, count: Callable[[RequestSample], None]
    ) -> list[threading.Thread]:
        """Each user sends its next request as soon as the last is over."""
        waiting: queue.SimpleQueue[tuple[int, Prompt]] = queue.SimpleQueue()
        bodies = [self._body(prompt) for prompt in prompts]
        for item in enumerate(prompts):
            waiting.put(item)
        users = min(load.users or 1, len(prompts))
        together = threading.Barrier(users)

        def user() -> None:
            connection = self._ready_connection()
            together.wait()
            due_s = None
            while not self._stop.is_set():
                try:
                    index, prompt = waiting.get_nowait()
                except queue.Empty:
                    break
                sample = self._request(connection, index, prompt, bodies[index], due_s)
                due_s = self._began_s + (sample.done_s if sample.done_s is not None else time.monotonic())
                count(sample)
            connection.close()

        return _started(user for _ in range(users))

    def _open(
        self, prompts: Sequence[Prompt], load: Load, count: Callable[[RequestSample], None]
    ) -> list[threading.Thread]:
        """Arrivals with exponential gaps drawn from the seed; nobody waits for an answer before the next is sent."""
        bodies = [self._body(prompt) for prompt in prompts]
        draw = random.Random(load.seed)  # noqa: S311 - arrivals, not secrets
        gaps_s = [draw.expovariate(load.rate or 1.0) for _ in prompts]
        idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()

        def one(index: int, prompt: Prompt, due_s: float) -> None:
            try:
                connection = idle.get_nowait()
            except queue.Empty:
                connection = self._ready_connection()
            count(self._request(connection, index, prompt, bodies[index], due_s))
            idle.put(connection)

        def arrivals() -> None:
            due_s, sent = time.monotonic(), []
            for index, (prompt, gap_s) in enumerate(zip(prompts, gaps_s, strict=True)):
                if self._stop.wait(max(0.0, due_s - time.monotonic())):
                    break
                sent.append(threading.Thread(target=one, args=(index, prompt, due_s), daemon=True))
                sent[-1].start()
                due_s += gap_s
            for thread in sent:
                thread.join()
            while not idle.empty():
                idle.get_nowait().close()

        return _started([arrivals])

    def _ready_connection(self) -> Connection:
        connection = Connection(self._target.url, self._target.key)
        try:
            connection.open()
        except OSError:  # the request itself will say so
            connection.close()
        return connection

    def _body(self, prompt: Prompt) -> bytes:
        asked: dict[str, Any] = {"sampling_params": self._target.sampling, "stream": True}
        asked |= {"input_ids": prompt.input_ids} if prompt.input_ids is not None else {"text": prompt.text}
        return json.dumps(asked).encode()

    def _request(
        self, connection: Connection, index: int, prompt: Prompt, body: bytes, due_s: float | None
    ) -> RequestSample:
        streamed, error = Streamed(), None
        with self._lock:
            self._under_way.add(streamed)
        try:
            connection.stream(body, self._target.timeout_s, streamed)
        except StreamBroken as broken:
            error, streamed.status = str(broken), broken.status
        sample = self._sample(index, prompt, streamed, error)
        with self._lock:
            self._under_way.remove(streamed)
            self._tokens += streamed.tokens
            self.measured.samples.append(sample)
            if due_s is not None and streamed.sent_s is not None:
                self.measured.late_s = max(self.measured.late_s, streamed.sent_s - due_s)
        return sample

    def _sample(self, index: int, prompt: Prompt, streamed: Streamed, error: str | None) -> RequestSample:
        whole = streamed.tokens if error is None else None
        answer = read_answer(streamed.meta, width=self._target.width, streamed=whole) if streamed.meta else Answer()
        known = len(prompt.input_ids) if prompt.input_ids is not None else None
        sent_s = streamed.sent_s if streamed.sent_s is not None else time.monotonic()
        return RequestSample(
            point=self._point,
            index=index,
            prompt=prompt.index,
            prompt_tokens=answer.prompt_tokens if answer.prompt_tokens is not None else known,
            sent_s=sent_s - self._began_s,
            chunk_s=tuple(stamp_s - self._began_s for stamp_s in streamed.chunk_s),
            chunk_tokens=tuple(streamed.chunk_tokens),
            done_s=None if streamed.done_s is None else streamed.done_s - self._began_s,
            output_ids=tuple(streamed.output_ids) if streamed.output_ids and self._target.keep_outputs else None,
            completion_tokens=answer.completion_tokens,
            finish=answer.finish,
            cached_tokens=answer.cached_tokens,
            verify_steps=answer.verify_steps,
            correct_drafts=answer.correct_drafts,
            proposed_drafts=answer.proposed_drafts,
            histogram=answer.histogram,
            status=streamed.status,
            error=error or answer.error or _empty(streamed),
            broken_identities=answer.broken_identities,
        )


def _empty(streamed: Streamed) -> str | None:
    return None if streamed.tokens else "the answer holds no token"


def _started(targets: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def _join(threads: Sequence[threading.Thread], seconds: float) -> None:
    """Wait until all are over, so long at most."""
    until_s = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
