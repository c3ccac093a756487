"""SGLang's own load tool, run unchanged where SGLang is installed; its JSONL comes home, so that numbers compare.

The prompts are handed over as its `sharegpt` file, which every version reads. It shuffles them by its own seed and
warms up with one short request, the first prompt; the cache is flushed before it is called, so that prompt is warm.
"""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

from remote_payload.failure import JobFailure, job_failure
from remote_payload.schema.bench import HarnessRun
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.client import Load, sampling_of
from remote_payload.sglang_bench.command import path_of, python_of
from remote_payload.sglang_bench.course import Course
from remote_payload.sglang_bench.environment import secret_values, server_environment
from remote_payload.sglang_bench.info import flush
from remote_payload.sglang_bench.launch import Order, Process
from remote_payload.sglang_bench.plan import in_words, requests_of
from remote_payload.sglang_bench.progress import Journal, place, requests_event
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.redact import redact_argv, redact_json, redact_text
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.stall import Stall
from remote_payload.sglang_bench.workload import Workload

PROMPTS_NAME = "harness-prompts.json"
OLD_MODULE = "sglang.bench_serving"
TAIL_CHARACTERS = 4000
LOOK_S = 0.25
BAR_S = "1"
"""Seconds between two states of its progress bar, for the versions of tqdm that can be told."""
_BAR = re.compile(r"\d%\|[^|]*\| (?P<done>\d{1,9})/(?P<total>\d{1,9}) \[")
GRACE_S = 5.0
"""Between TERM and KILL of a tool that did not end in time."""


def require_text(workload: Workload) -> None:
    """Raise JobFailure(job) where its tool cannot ask these prompts: it takes text, or one question by its template."""
    if workload.form == "random" or all(_question(prompt) is not None for prompt in workload.prompts):
        return
    raise job_failure(
        "SGLang's own tool takes prompts as text or as one user message, these are "
        + ("token ids" if workload.form == "token_ids" else "longer conversations"),
        hint="give prompts as `text`, or measure without `--harness sglang`",
    )


def prompts_file(workload: Workload, count: int) -> str:
    """The prompts as a `sharegpt` file, from the first again until there are `count`."""
    own = len(workload.prompts)
    turns = [
        {"conversations": [{"value": _question(workload.prompts[index % own])}, {"value": "an answer, not used"}]}
        for index in range(count)
    ]
    return json.dumps(turns)


class Harness:
    """Runs its tool for one job; each call leaves `harness-N.jsonl` in the result folder, and a log beside it."""

    def __init__(self, job: BenchJob, folder: Path, journal: Journal, course: Course, module: str | None) -> None:
        self._job, self._folder, self._journal, self._course = job, folder, journal, course
        self._module = module or OLD_MODULE
        self.runs: list[HarnessRun] = []

    def run(self, running: Running, workload: Workload, load: Load, repeat: int) -> None:
        """One load, once; how the call ended, whatever it was, is in its record.

        Raises JobFailure: server when that dies or hangs meanwhile, job when there is no such Python.
        """
        side, what, number = running.facts.side, in_words(load), len(self.runs)
        self._course.begin()
        where = f"call {self._course.number} of {self._course.points}"
        self._journal.phase("harness", f"{where}: {side}, {what}, repeat {repeat + 1} of {self._job.repeats_in_all}")
        result = f"harness-{number}.jsonl"
        count = requests_of(self._job, workload, load)
        order = self._order(running, workload, load, result)
        flushed = flush(running.url, running.key)
        if not flushed:
            self._journal.warn("not_flushed", f"{side}, {what}: the server did not flush its prefix cache")
        tool = self._call(order, running, number, self._job.request_timeout_s * count)
        text = _without_secrets(tool.returned().get(result, ""), self._hidden(running))
        if text:
            (self._folder / result).write_text(text, encoding="utf-8")
        code = -1 if tool.exit_code is None else tool.exit_code
        if code != 0 or not text:
            end = f"ended with exit code {code}" if code != 0 else "left no result file"
            self._journal.warn("harness", f"SGLang's own tool {end} ({side}, {what})")
        self._course.end()
        self.runs.append(
            HarnessRun(
                side=side,
                argv=redact_argv((*self._job.exec_prefix, *order.argv), self._hidden(running)),
                returncode=code,
                result_file=result if text else None,
                output_tail="\n".join(line for line in tool.log.tail if not _BAR.search(line))[-TAIL_CHARACTERS:],
                concurrency=load.users,
                request_rate=load.rate,
                repeat=repeat,
                requests=count,
                flushed=flushed,
            )
        )

    def _order(self, running: Running, workload: Workload, load: Load, result: str) -> Order:
        """The call, with its prompts as a file beside the result as well."""
        count = requests_of(self._job, workload, load)
        files = {} if workload.form == "random" else {PROMPTS_NAME: prompts_file(workload, count)}
        for name, text in files.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        return Order(
            argv=self._argv(running.url, workload, load, result),
            environment=self._environment(running),
            files=files,
            wanted=(result,),
        )

    def _environment(self, running: Running) -> dict[str, str]:
        """As the server's: behind an `exec_prefix` nothing may be inherited."""
        key = {} if running.key is None else {"OPENAI_API_KEY": running.key}  # where the tool looks for it
        return {"TQDM_MININTERVAL": BAR_S, **server_environment(self._job, self._folder.parent), **key}

    def _hidden(self, running: Running) -> tuple[str, ...]:
        return tuple({*running.hidden, *secret_values(self._job, self._folder.parent)})

    def _call(self, order: Order, running: Running, number: int, limit_s: float) -> Process:
        """The tool's process, ended. Raises JobFailure(server, or job where it cannot be run)."""
        hidden = self._hidden(running)
        log = self._folder.parent / f"harness-{number}.log"
        try:
            tool = Process(self._job.exec_prefix, order, log, hidden=hidden, on_line=self._tell)
        except JobFailure as failed:
            raise job_failure(f"SGLang's own tool cannot be run: {failed.failure.message}") from None
        until_s = time.monotonic() + limit_s
        stall = Stall(running, lambda: None, self._job.request_timeout_s)
        try:
            while not tool.has_ended and time.monotonic() < until_s:
                stall.check()
                with tool.log.changed:
                    tool.log.changed.wait_for(lambda: tool.has_ended, LOOK_S)
        finally:
            tool.end(GRACE_S)
        running.check()
        return tool

    def _tell(self, line: str, _now_s: float) -> None:
        """Where its own bar stands; without one it says nothing on the way."""
        found = _BAR.search(line)
        if found is not None:
            done, total = int(found["done"]), max(1, int(found["total"]))
            figures = place(self._course, min(1.0, done / total))
            self._journal.pass_on(requests_event(done, total, figures, "SGLang's own tool"))

    def _argv(self, url: str, workload: Workload, load: Load, result: str) -> tuple[str, ...]:
        """Its command line; the options are those that versions since 0.4.5 have in common.

        Files are named as they are in the folder that it is run in.
        """
        job, parts = self._job, urlsplit(url)
        words = [python_of(job), "-m", self._module, "--backend", "sglang", "--host", parts.hostname or "127.0.0.1"]
        words += ["--port", str(parts.port or 80), "--output-file", result, "--seed", str(job.seed)]
        words += ["--num-prompts", str(requests_of(job, workload, load))]
        words += ["--model", path_of(job, job.model)] if job.model is not None else []
        if load.users is not None:
            words += ["--max-concurrency", str(load.users)]
        else:
            words += ["--request-rate", str(load.rate)]
        if workload.form == "random":
            words += ["--dataset-name", "random-ids", "--random-input-len", "256", "--random-range-ratio", "0.1"]
            words += ["--random-output-len", str(job.max_new_tokens)]
        else:
            words += ["--dataset-name", "sharegpt", "--dataset-path", PROMPTS_NAME]
            words += ["--sharegpt-output-len", str(job.max_new_tokens)]
        words += ["--apply-chat-template"] if workload.form == "messages" else []
        words += [] if job.ignore_eos else ["--disable-ignore-eos"]
        if job.temperature != 0.0 or job.top_p is not None or job.top_k is not None:
            words += ["--extra-request-body", json.dumps({"sampling_params": sampling_of(job)})]
        return tuple(words)


def _without_secrets(text: str, hidden: tuple[str, ...]) -> str:
    """Its JSONL: a line stays as it is unless a secret is in it, for it repeats what the server tells of itself."""
    return "\n".join(_clean(line, hidden) for line in text.split("\n"))


def _clean(line: str, hidden: tuple[str, ...]) -> str:
    try:
        value = json.loads(line) if line.strip() else None
        clean = redact_json(value, values=hidden)
        return line if clean == value else json.dumps(clean)
    except (ValueError, RecursionError):  # not JSON; nested too deep
        return redact_text(line, hidden)


def _question(prompt: Prompt) -> str | None:
    """The one text that is asked; None where there is more to it."""
    if prompt.text is not None:
        return prompt.text
    turns = prompt.messages or ()
    content = turns[0].get("content") if len(turns) == 1 and turns[0].get("role") == "user" else None
    return content if isinstance(content, str) else None
