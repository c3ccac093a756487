"""The load of one point: so many users in a closed loop, or Poisson arrivals; every request becomes a sample.

One thread listens to all streams; answers that are whole become samples while no stream has anything to say.
"""

import concurrent.futures
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.answer import Answer, Asked, read_answer
from remote_payload.sglang_bench.connection import Connection
from remote_payload.sglang_bench.loop import Loop
from remote_payload.sglang_bench.own_cpu import OwnCpu
from remote_payload.sglang_bench.pace import Arrivals, Turn, Users
from remote_payload.sglang_bench.place import Place
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.redact import redact_text
from remote_payload.sglang_bench.sockets import allow_sockets
from remote_payload.sglang_bench.stream import StreamBroken, Streamed

LOOK_S = 0.25
CONNECT_S = 30.0
SHOWN_CHARACTERS = 1500
"""Of an error; fewer than are taken from the server."""
BACKLOG = 64
"""Answers that may wait to become samples while tokens keep coming."""


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
    hidden: tuple[str, ...] = ()
    """Values that no sample may hold, whatever the server says."""


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
    own: OwnCpu = field(default_factory=OwnCpu)
    late_s: float = 0.0


@dataclass(kw_only=True, eq=False)
class _Request:
    """One request on its way to be a sample."""

    index: int
    prompt: Prompt
    streamed: Streamed = field(default_factory=Streamed)
    due_s: float | None = None
    error: str | None = None


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
        self._under_way: set[_Request] = set()
        self._answered: deque[_Request] = deque()
        self._stop = threading.Event()

    @property
    def tokens(self) -> int:
        """How many came so far, also of requests that are not over."""
        with self._lock:
            return self._tokens + sum(request.streamed.tokens for request in self._under_way)

    def run(
        self,
        prompts: Sequence[Prompt],
        load: Load,
        count: Callable[[RequestSample], None],
        watch: Callable[[], None],
    ) -> Measured:
        """Send all prompts in order; samples come back in order of sending, also those that failed.

        `count` gets each finished sample, on another thread; `watch` is called a few times a second, and what it
        raises ends the point.
        """
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            serving = pool.submit(self._serve, prompts, load, count)
            try:
                while not concurrent.futures.wait([serving], LOOK_S).done:
                    watch()
            finally:
                self._stop.set()
            serving.result()
        self.measured.samples.sort(key=lambda sample: sample.index)
        return self.measured

    def _serve(self, prompts: Sequence[Prompt], load: Load, count: Callable[[RequestSample], None]) -> None:
        """Until every prompt has its sample, or somebody wants it stopped."""
        self.measured.own = OwnCpu()
        allow_sockets(min(load.users or len(prompts), len(prompts)))
        requests = [_Request(index=index, prompt=prompt) for index, prompt in enumerate(prompts)]
        waiting = deque((request, self._body(request.prompt)) for request in requests)
        with contextlib.closing(Loop()) as loop:
            pace = self._pace(load, len(prompts), loop)
            self._connect(loop)
            pace.begin()
            while (waiting or self._under_way) and not self._stop.is_set():
                while waiting and (turn := pace.next()) is not None:
                    self._ask(loop, pace, turn, *waiting.popleft())
                wait_s = 0.0 if self._answered else LOOK_S
                is_busy = loop.turn(min(wait_s, pace.wait_s()) if waiting else wait_s)
                if self._answered and (not is_busy or len(self._answered) > BACKLOG):
                    count(self._book(self._answered.popleft()))
            while self._answered:
                count(self._book(self._answered.popleft()))
        self.measured.own.stop()

    def _pace(self, load: Load, prompts: int, loop: Loop) -> Users | Arrivals:
        place = Place(self._target.url, self._target.key)

        def connect() -> Connection:
            return loop.connection(place)

        if load.users is not None:
            return Users(min(load.users, prompts), connect)
        return Arrivals(load.rate or 1.0, load.seed, prompts, connect)

    def _connect(self, loop: Loop) -> None:
        """Nobody's clock holds its connecting; who cannot connect is told by its first request."""
        until_s = time.monotonic() + CONNECT_S
        while loop.is_opening and time.monotonic() < until_s and not self._stop.is_set():
            loop.turn(LOOK_S)

    def _ask(self, loop: Loop, pace: Users | Arrivals, turn: Turn, request: "_Request", body: bytes) -> None:
        def over(broken: StreamBroken | None) -> None:
            over_s = request.streamed.over_s
            if broken is not None:
                request.error, request.streamed.status, over_s = str(broken), broken.status, None
            self._answered.append(request)
            pace.leave(turn.connection, over_s if over_s is not None else time.monotonic())

        request.due_s = turn.due_s
        with self._lock:
            self._under_way.add(request)
        loop.start(turn.connection, body, self._target.timeout_s, request.streamed, over)

    def _body(self, prompt: Prompt) -> bytes:
        asked: dict[str, Any] = {"sampling_params": self._target.sampling, "stream": True}
        asked |= {"input_ids": prompt.input_ids} if prompt.input_ids is not None else {"text": prompt.text}
        return json.dumps(asked).encode()

    def _book(self, request: "_Request") -> RequestSample:
        """The sample of a request that is over."""
        sample = self._sample(request.index, request.prompt, request.streamed, request.error)
        sent_s, due_s = request.streamed.sent_s, request.due_s
        with self._lock:
            self._under_way.remove(request)
            self._tokens += request.streamed.tokens
            self.measured.samples.append(sample)
            if due_s is not None and sent_s is not None:
                self.measured.late_s = max(self.measured.late_s, sent_s - due_s)
        return sample

    def _sample(self, index: int, prompt: Prompt, streamed: Streamed, error: str | None) -> RequestSample:
        known = len(prompt.input_ids) if prompt.input_ids is not None else None
        answer = read_answer(streamed.meta, self._known(streamed, known, error)) if streamed.meta else Answer()
        error, finish = (self._hide(words) for words in (error or answer.error or _empty(streamed), answer.finish))
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
            finish=finish,
            cached_tokens=answer.cached_tokens,
            verify_steps=answer.verify_steps,
            correct_drafts=answer.correct_drafts,
            proposed_drafts=answer.proposed_drafts,
            histogram=answer.histogram,
            status=streamed.status,
            error=error,
            broken_identities=answer.broken_identities,
        )

    def _known(self, streamed: Streamed, sent: int | None, error: str | None) -> Asked:
        """What the answer's own numbers are held against; of a broken answer, only what was sent."""
        limit = self._target.sampling.get("max_new_tokens")
        ids = None if streamed.output_ids is None else len(streamed.output_ids)
        return Asked(
            width=self._target.width,
            streamed=streamed.tokens if error is None else None,
            ids=ids if error is None else None,
            prompt_ids=sent,
            max_new_tokens=limit if isinstance(limit, int) else None,
        )

    def _hide(self, words: str | None) -> str | None:
        """Without the key, also where what the server said was cut off within it."""
        return None if words is None else redact_text(words, self._target.hidden)[:SHOWN_CHARACTERS]


def _empty(streamed: Streamed) -> str | None:
    return None if streamed.tokens else "the answer holds no token"
