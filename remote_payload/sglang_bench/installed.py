"""The SGLang that is installed, read from its files without importing it."""

from remote_payload.schema.bench import SglangFacts
from remote_payload.schema.bench_job import BenchJob


def installed_sglang(job: BenchJob) -> SglangFacts:
    """What the package says that the job's Python (behind its `exec_prefix`) would run. Unknown = None, never raises."""
    raise NotImplementedError
