"""The served benchmark from job to result files: look -> for each start: server, prompts, points -> `bench.json`."""

import contextlib
import dataclasses
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from remote_payload.failure import JobFailure
from remote_payload.gpus.choice import leased
from remote_payload.gpus.facts import GpuFacts
from remote_payload.rundir import write_atomically
from remote_payload.schema.bench import BenchResult, ServerFacts, SglangFacts
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.record import to_json
from remote_payload.schema.waiting import LEASED
from remote_payload.sglang_bench import workload
from remote_payload.sglang_bench.attached import attach
from remote_payload.sglang_bench.folders import DRAFT, asked_folder, named_folder, own_folder, require_folders
from remote_payload.sglang_bench.gpu_memory import LOOK
from remote_payload.sglang_bench.harness import Harness, require_text
from remote_payload.sglang_bench.installed import installed_sglang
from remote_payload.sglang_bench.machine_samples import Machine
from remote_payload.sglang_bench.plan import Start, last_speculating, loads, spare_needed, starts
from remote_payload.sglang_bench.points import REQUESTS_NAME, Points
from remote_payload.sglang_bench.progress import Journal, Report
from remote_payload.sglang_bench.retokenised import retokenised
from remote_payload.sglang_bench.sampled import Sampled
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.starting import start
from remote_payload.sglang_bench.strays import Strays
from remote_payload.sglang_bench.template import render

RESULT_NAME = "bench.json"


def run(job: BenchJob, result_folder: Path, report: Report) -> None:
    """Serve and measure; leaves `bench.json`, `requests.jsonl.gz`, `machine.jsonl.gz` (and harness files).

    Failed requests are counted, not raised. Each is written as soon as it is over; `bench.json` once the first point
    begins, and anew after each: whatever ends the job, a failure (which stops every server of ours) or a signal, what
    was measured before stays, as unfinished.
    Raises JobFailure.
    """
    began_s = time.monotonic()
    journal = Journal(report)
    journal.phase("look")
    require_folders(job)
    prompts = workload.load(job, spare_needed(job))
    workload.require_vocabulary(prompts, job.model)
    if job.harness == "sglang":
        require_text(prompts)
    is_here = job.attach_url is None or job.harness == "sglang"  # its tool runs where we do, whatever is attached to
    installed = installed_sglang(job) if is_here else SglangFacts(version=None)
    is_our_tree = not job.exec_prefix and job.attach_url is None
    strays = Strays(journal.warn) if is_our_tree else None
    with (
        contextlib.closing(Machine(result_folder, journal.warn, strays)) as machine,
        contextlib.closing(Points(job, result_folder / REQUESTS_NAME, journal, machine)) as points,
        contextlib.closing(Sampled(job, result_folder, journal, machine, points.course)) as sampled,
    ):
        bench = _Bench(job, result_folder, journal, (points, sampled), (installed, prompts))
        try:
            bench.run(began_s)
        except JobFailure:
            if points.kept or bench.harness.runs:
                bench.write(began_s, whole=False)
            raise
        bench.write(began_s, whole=True)


class _Bench:
    """What one job gathers on its way."""

    def __init__(
        self,
        job: BenchJob,
        folder: Path,
        journal: Journal,
        measuring: tuple[Points, Sampled],
        found: tuple[SglangFacts, workload.Workload],
    ) -> None:
        """`found`: the SGLang that is installed, and what is asked."""
        self._job, self._folder, self._journal = job, folder, journal
        self._points, self._sampled = measuring
        self._installed, self._prompts = found
        self._is_rendered = False
        self._servers: list[ServerFacts] = []
        self._gpus: GpuFacts | None = None
        self._target, self._draft = own_folder(job, job.model), own_folder(job, job.draft)
        self._named_target: FolderFacts | None = None
        self._named_draft: FolderFacts | None = None
        self.harness = Harness(job, folder, journal, self._points.course, self._installed.bench_module)

    def run(self, began_s: float) -> None:
        """Every start in its order. Raises JobFailure."""
        self._points.before_first = lambda running: self.write(began_s, whole=False, running=running)
        for number, one in enumerate(starts(self._job)):
            with self._points.course.starting():
                running = self._running(one, number)
            try:
                for _ in self._on(running, one, number):
                    self.write(began_s, whole=False, running=running)
                if number == last_speculating(self._job):
                    self._sampled.measure(running, self._prompts, number)
            finally:
                if not running.facts.attached:
                    self._journal.phase("stop", f"server {number} ({running.facts.side})")
                self._servers.append(running.stop())

    def _running(self, one: Start, number: int) -> Running:
        if self._job.attach_url is not None:
            running = attach(self._job, self._journal.pass_on)
            told = json.loads(running.facts.server_info or "{}")
            version, model = told.get("version"), told.get("model_path")
            self._installed = SglangFacts(version=version if isinstance(version, str) else None)
            workload.require_vocabulary(self._prompts, model if isinstance(model, str) else None)
            self._named_target = named_folder(self._job, model)
            self._named_draft = named_folder(self._job, told.get(DRAFT))
            return running
        return start(self._job, one.side, number, self._folder, self._journal.pass_on)

    def _on(self, running: Running, one: Start, number: int) -> Iterator[None]:
        """Yields after each load."""
        self._render(running)
        for repeat in one.repeats:
            for load in loads(self._job):
                if self._job.harness == "own":
                    self._points.measure(running, self._prompts, load, repeat, number)
                else:
                    self.harness.run(running, self._prompts, load, repeat)
                yield

    def _render(self, running: Running) -> None:
        """Once, by the first server: both sides are asked the same ids."""
        if self._is_rendered:
            return
        if self._prompts.form == "messages":
            self._journal.phase("prompts", "through the served chat template")
        told = retokenised(self._prompts.prompts, self._job, running.url, running.key)
        rendered = render(self._prompts, self._job, running.url, running.key)
        if self._job.harness == "own" or rendered.form == "text":  # SGLang's own tool applies the template itself
            self._prompts = rendered
        self._prompts = dataclasses.replace(self._prompts, retokenised=told)
        self._is_rendered = True

    def write(self, began_s: float, *, whole: bool, running: Running | None = None) -> None:
        """`bench.json`, from what is known; `running`: the server that is up meanwhile."""
        if self._gpus is None:  # once: a hung nvidia-smi takes its whole deadline every time
            self._gpus = LOOK(parts=LEASED in os.environ)
        up = () if running is None else (running.facts,)
        result = BenchResult(
            sglang=self._installed,
            servers=(*self._servers, *up),
            workload=self._prompts.facts(self._job),
            points=tuple(self._points.facts),
            harness=tuple(self.harness.runs),
            sampled=self._sampled.facts,
            whole=whole,
            planned=sum(len(one.repeats) for one in starts(self._job)) * len(loads(self._job)),
            repeats=self._job.repeats_in_all,
            python=platform.python_version(),
            host_cpus=os.cpu_count() or 0,
            gpus=tuple(gpu.name for gpu in leased(self._gpus.gpus, os.environ)),
            gpu_answer=self._gpus.answer,
            target=self._target,
            draft=self._draft,
            named_target=self._named_target,
            named_draft=self._named_draft,
            asked_draft=asked_folder(self._job, self._job.draft),
            seconds=time.monotonic() - began_s,
            warnings=tuple(self._journal.warnings),
        )
        write_atomically(self._folder / RESULT_NAME, to_json(result).encode())
