"""Training prompts and held-out ones stand in two files: of one file both would be the same text."""

import posixpath
from collections.abc import Mapping

from orchestrator.errors import JobFileError
from remote_payload.schema import BenchJob, Job
from remote_payload.schema.capture_job import CaptureJob


def require_apart(job: Job, sources: Mapping[str, str]) -> None:
    """Raise JobFileError where one file holds the training prompts and the held-out ones.

    Not the job's own rule: what was asked before this was one can still be read.
    """
    if not isinstance(job, BenchJob | CaptureJob) or job.heldout_prompts is None or job.prompts is None:
        return
    if posixpath.normpath(job.prompts) == posixpath.normpath(job.heldout_prompts):
        names = (sources.get(key, "default") for key in ("heldout_prompts", "prompts"))
        raise one_file(" and ".join(dict.fromkeys(names)), job.prompts)


def one_file(named: str, path: str) -> JobFileError:
    """`named`: what names it twice."""
    return JobFileError(
        f"{named}: expected held-out prompts in another file than the training prompts, found one file: {path}",
        hint="no gap shows between a text and itself: give a file of prompts that the drafter was not trained on, or "
        "leave one of the two out",
    )
