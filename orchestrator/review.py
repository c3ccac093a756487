"""A stored run and everything that can be said about it: read from disk, then judged."""

from orchestrator.compare.diff import Diff, MeasuredRun, diff_numbers, diff_runs
from orchestrator.errors import InvalidRunError, NotFoundError
from orchestrator.records import Baseline, RunRecord
from orchestrator.report.bench_content import report_bench
from orchestrator.report.content import RunReport, StandaloneReport, report_standalone
from orchestrator.report.question import Question
from orchestrator.store import Store
from orchestrator.store.results import (
    read_bench,
    read_harness,
    read_heldout,
    read_hits,
    read_machine,
    read_requests,
    read_standalone,
)


def review(store: Store, record: RunRecord, question: Question | None = None) -> RunReport:
    """Judge the run's result where it has one; `question` is what its reader adds to the measured.

    Raises StoreError or InvalidRunError where the result is broken, or no longer what its manifest says.
    """
    if not store.has_figures(record):
        return RunReport(record=record)
    if problems := store.verify(record.run_id):
        raise InvalidRunError(
            f"the result of `{record.run_id}` is not what the run left: {'; '.join(problems)}",
            hint=f"`eagle3-remote attach {record.run_id}` fetches it again",
        )
    run = store.run_dir(record.run_id)
    if record.job_kind == "bench":
        result = read_bench(run)
        harness = read_harness(run, [one.result_file for one in result.harness if one.result_file is not None])
        whole = result.whole
        told = report_bench(result, read_requests(run, whole=whole), read_machine(run, whole=whole), harness)
        return RunReport(record=record, bench=told)
    found = report_standalone(read_standalone(run), read_hits(run), read_heldout(run), question)
    return RunReport(record=record, standalone=found)


def compare(store: Store, record: RunRecord, baseline: Baseline) -> Diff:
    """Compare a run with what a baseline means now.

    Raises InvalidRunError where either has no figures, NotFoundError where the baseline's run is gone.
    """
    run = _measured(store, record)
    entry = baseline.current
    if entry.run_id is None:
        return diff_numbers(run, entry.numbers)
    try:
        theirs = store.load_exact(entry.run_id)
    except NotFoundError:
        raise NotFoundError(
            f"the baseline `{baseline.name}` means a run that is not on this laptop: {entry.run_id}",
            hint=f"`eagle3-remote baseline set {baseline.name} RUN` lets it mean another one",
        ) from None
    return diff_runs(run, _measured(store, theirs))


def _measured(store: Store, record: RunRecord) -> MeasuredRun:
    report = review(store, record).standalone
    if report is None:
        raise InvalidRunError(
            f"expected a run with figures to compare, `{record.run_id}` ({record.job_kind}, {record.phase}) has none",
            hint=f"`eagle3-remote attach {record.run_id}` fetches the result of a run that is over on its host",
        )
    declared = report.wiring.declared
    return MeasuredRun(
        run_id=record.run_id,
        best=report.wiring.best.figures,
        declared=None if declared is None else declared.figures,
        circumstances=_circumstances(report),
    )


def _circumstances(report: StandaloneReport) -> dict[str, str]:
    result = report.result
    return {
        "target": result.checkpoint.target or "none",
        "rows": result.rows.folder,
        "dtype": result.dtype,
        "device": result.device_name,
        "steps": str(result.steps),
    }
