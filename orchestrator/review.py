"""A stored run and everything that can be said about it: read from disk, then judged."""

from orchestrator.records import RunRecord
from orchestrator.report.content import RunReport, report_standalone
from orchestrator.store import Store
from orchestrator.store.results import read_hits, read_standalone


def review(store: Store, record: RunRecord) -> RunReport:
    """Judge the run's result where it has one. Raises StoreError or InvalidRunError where the result is broken."""
    run = store.run_dir(record.run_id)
    if record.job_kind != "standalone" or not run.manifest.is_file():
        return RunReport(record=record)
    return RunReport(record=record, standalone=report_standalone(read_standalone(run), *read_hits(run)))
