"""SGLang's own load tool, run unchanged where SGLang is installed; its JSONL comes home, so that numbers compare.

The prompts are handed over as its `sharegpt` file, which every version reads. It shuffles them by its own seed and
warms up with one short request, the first prompt; the cache is flushed before it is called, so that prompt is warm.
"""

import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from remote_payload.bounded import BoundedChild
from remote_payload.failure import job_failure
from remote_payload.schema.bench import HarnessRun
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.client import Load, sampling_of
from remote_payload.sglang_bench.command import python_of
from remote_payload.sglang_bench.info import flush
from remote_payload.sglang_bench.points import in_words, requests_of
from remote_payload.sglang_bench.progress import Journal
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.workload import Workload

PROMPTS_NAME = "harness-prompts.json"
OLD_MODULE = "sglang.bench_serving"
TAIL_CHARACTERS = 4000


def require_text(workload: Workload) -> None:
    """Raise JobFailure(job) where its tool cannot ask these prompts: it takes text, or one question by its template."""
    if workload.form == "random" or all(_question(prompt) is not None for prompt in workload.prompts):
        return
    raise job_failure(
        "SGLang's own tool takes prompts as text or as one user message, these are "
        + ("token ids" if workload.form == "token_ids" else "longer conversations"),
        hint='give prompts as `text`, or use `harness = "own"`',
    )


def write_prompts(workload: Workload, folder: Path, count: int) -> None:
    """The prompts as a `sharegpt` file in the result folder, from the first again until there are `count`."""
    own = len(workload.prompts)
    turns = [
        {"conversations": [{"value": _question(workload.prompts[index % own])}, {"value": "an answer, not used"}]}
        for index in range(count)
    ]
    (folder / PROMPTS_NAME).write_text(json.dumps(turns), encoding="utf-8")


class Harness:
    """Runs its tool for one job; each call leaves `harness-N.jsonl` in the result folder."""

    def __init__(self, job: BenchJob, folder: Path, journal: Journal, module: str | None) -> None:
        self._job, self._folder, self._journal = job, folder, journal
        self._module = module or OLD_MODULE
        self.runs: list[HarnessRun] = []

    def run(self, running: Running, workload: Workload, load: Load) -> None:
        """One load; how the call ended, whatever it was, is in its record. Raises JobFailure(server or job)."""
        side, what = running.facts.side, in_words(load)
        self._journal.phase("harness", f"{side}, {what}")
        result = self._folder / f"harness-{len(self.runs)}.jsonl"
        count = requests_of(self._job, workload, load)
        if workload.form != "random":
            write_prompts(workload, self._folder, count)
        argv = (*self._job.exec_prefix, *self._argv(running.url, workload, load, result))
        if not flush(running.url, running.key):
            self._journal.warn("not_flushed", f"{side}, {what}: the server did not flush its prefix cache")
        if running.key is not None:
            os.environ["OPENAI_API_KEY"] = running.key  # where the tool looks for it; only our own children see it
        code, output = _call(argv, self._job.request_timeout_s * count)
        running.check()
        is_home = result.is_file() and result.stat().st_size > 0
        if code != 0 or not is_home:
            end = f"ended with exit code {code}" if code != 0 else "left no result file"
            self._journal.warn("harness", f"SGLang's own tool {end} ({side}, {what})")
        self.runs.append(
            HarnessRun(
                side=side,
                argv=argv,
                returncode=code,
                result_file=result.name if is_home else None,
                output_tail=output[-TAIL_CHARACTERS:],
            )
        )

    def _argv(self, url: str, workload: Workload, load: Load, result: Path) -> tuple[str, ...]:
        """Its command line; the options are those that versions since 0.4.5 have in common."""
        job, parts = self._job, urlsplit(url)
        words = [python_of(job), "-m", self._module, "--backend", "sglang", "--host", parts.hostname or "127.0.0.1"]
        words += ["--port", str(parts.port or 80), "--output-file", str(result), "--seed", str(job.seed)]
        words += ["--num-prompts", str(requests_of(job, workload, load))]
        words += ["--model", job.model] if job.model is not None else []
        if load.users is not None:
            words += ["--max-concurrency", str(load.users)]
        else:
            words += ["--request-rate", str(load.rate)]
        if workload.form == "random":
            words += ["--dataset-name", "random-ids", "--random-input-len", "256", "--random-range-ratio", "0.1"]
            words += ["--random-output-len", str(job.max_new_tokens)]
        else:
            words += ["--dataset-name", "sharegpt", "--dataset-path", str(result.parent / PROMPTS_NAME)]
            words += ["--sharegpt-output-len", str(job.max_new_tokens)]
        words += ["--disable-tqdm"]
        words += ["--apply-chat-template"] if workload.form == "messages" else []
        words += [] if job.ignore_eos else ["--disable-ignore-eos"]
        if job.temperature != 0.0 or job.top_p is not None or job.top_k is not None:
            words += ["--extra-request-body", json.dumps({"sampling_params": sampling_of(job)})]
        return tuple(words)


def _call(argv: tuple[str, ...], limit_s: float) -> tuple[int, str]:
    """Exit code and output; -1 when it had to be ended. Raises JobFailure(job)."""
    try:
        done = BoundedChild(argv).finish(time.monotonic() + limit_s)
    except OSError as error:
        raise job_failure(f"SGLang's own tool cannot be run ({error.strerror}): {argv[0]}") from None
    return done if done is not None else (-1, f"no end within {limit_s:g} s")


def _question(prompt: Prompt) -> str | None:
    """The one text that is asked; None where there is more to it."""
    if prompt.text is not None:
        return prompt.text
    turns = prompt.messages or ()
    content = turns[0].get("content") if len(turns) == 1 and turns[0].get("role") == "user" else None
    return content if isinstance(content, str) else None
