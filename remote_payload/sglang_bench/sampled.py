"""The lowest load once more at another temperature, of a server that is up anyway: what sampling costs acceptance."""

import dataclasses
from pathlib import Path

from remote_payload.schema.bench import SampledLoad
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.course import Course
from remote_payload.sglang_bench.machine_samples import Machine
from remote_payload.sglang_bench.plan import lowest_load
from remote_payload.sglang_bench.points import Points
from remote_payload.sglang_bench.progress import Journal
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.workload import Workload

SAMPLED_NAME = "sampled.jsonl.gz"


class Sampled:
    """Nothing where the job asks for none: no file is made then."""

    def __init__(self, job: BenchJob, folder: Path, journal: Journal, machine: Machine, course: Course) -> None:
        self._job, self._journal = job, journal
        self._points: Points | None = None
        if job.sampled is not None:
            hot = dataclasses.replace(job, temperature=job.sampled, sampled=None, repeats=1, starts=1)
            self._points = Points(hot, folder / SAMPLED_NAME, journal, machine, course)

    @property
    def facts(self) -> SampledLoad | None:
        """What was measured; None = nothing was asked for, or it was not reached."""
        if self._points is None or self._job.sampled is None or not self._points.facts:
            return None
        return SampledLoad(temperature=self._job.sampled, point=self._points.facts[0])

    def measure(self, running: Running, prompts: Workload, number: int) -> None:
        """The same prompts once more. Raises JobFailure(server) as `Points.measure`."""
        if self._points is not None:
            self._journal.phase("sampled", f"the lowest load once more at temperature {self._job.sampled:g}")
            self._points.measure(running, prompts, lowest_load(self._job), 0, number)

    def close(self) -> None:
        """Finish the file of requests."""
        if self._points is not None:
            self._points.close()
