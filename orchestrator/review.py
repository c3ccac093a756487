"""A stored run and everything that can be said about it: read from disk, then judged."""

from orchestrator.errors import InvalidRunError
from orchestrator.records import RunRecord
from orchestrator.report.bench_content import report_bench, sampled_too
from orchestrator.report.capture_text import CaptureReport, report_capture
from orchestrator.report.content import RunReport, report_standalone
from orchestrator.report.question import Question
from orchestrator.store import Store
from orchestrator.store.layout import has_capture
from orchestrator.store.results import (
    read_bench,
    read_capture,
    read_harness,
    read_heldout,
    read_hits,
    read_machine,
    read_requests,
    read_sampled,
    read_standalone,
)
from remote_payload.schema import job_from_json
from remote_payload.schema.capture import CaptureResult
from remote_payload.schema.capture_job import CaptureJob


def review(store: Store, record: RunRecord, question: Question | None = None) -> RunReport:
    """Judge the run's result where it has one; `question` is what its reader adds to the measured.

    The verdict is noted beside the run, for listings. Raises StoreError or InvalidRunError where the result is broken,
    or no longer what its manifest says.
    """
    if not store.has_figures(record) and not has_capture(store.run_dir(record.run_id), record):
        return RunReport(record=record)
    if problems := store.verify(record.run_id):
        raise InvalidRunError(
            f"the result of `{record.run_id}` is not what the run left: {'; '.join(problems)}",
            hint=f"`eagle3-remote attach {record.run_id}` fetches it again",
        )
    run = store.run_dir(record.run_id)
    if record.job_kind == "capture":
        captured = _captured(read_capture(run), record)
        store.keep_verdict(record.run_id, captured.diagnosis.verdict)
        return RunReport(record=record, capture=captured)
    if record.job_kind == "bench":
        result = read_bench(run)
        harness = read_harness(run, [one.result_file for one in result.harness if one.result_file is not None])
        requests, machine = read_requests(run, whole=result.whole), read_machine(run, whole=result.whole)
        told = report_bench(result, requests, machine, harness, str(run.result), record.state)
        told = sampled_too(told, read_sampled(run, whole=result.whole))
        store.keep_verdict(record.run_id, told.diagnosis.verdict)
        return RunReport(record=record, bench=told)
    found = report_standalone(read_standalone(run), read_hits(run), read_heldout(run), question)
    if question is None or question.max_new_tokens is None:  # else the figures are of another walk
        store.keep_verdict(record.run_id, found.diagnosis.verdict)
    return RunReport(record=record, standalone=found)


def _captured(result: CaptureResult, record: RunRecord) -> CaptureReport:
    job = job_from_json(record.spec.job_json)
    assert isinstance(job, CaptureJob)
    return report_capture(result, job.trained, draft=job.draft, model=job.model, host=record.host.name)
