"""The table of a sweep from the runs that are on this laptop."""

from orchestrator.errors import InvalidRunError
from orchestrator.measurements import set_of_run
from orchestrator.records.measurement import MeasurementSet
from orchestrator.store import Store
from orchestrator.sweep.table import SweepTable, table
from orchestrator.sweeping import Asked


def table_of(asked: Asked, store: Store) -> SweepTable:
    """What can be said of the sweep now; a run without figures, as a selftest, has its row all the same."""
    progress = asked.progress
    sets: dict[str, MeasurementSet] = {}
    for one in progress.standings:
        if one.word != "measured" or one.run_id is None or one.run_id in sets:
            continue
        if store.run_dir(one.run_id).path.is_dir():
            sets[one.run_id] = _set(one.run_id, store)
    return table(asked.record.run_id, asked.record.host.name, asked.job, progress, sets)


def _set(run_id: str, store: Store) -> MeasurementSet:
    record = store.load_exact(run_id)
    try:
        return set_of_run(store, run_id)
    except InvalidRunError:
        return MeasurementSet(
            run_id=run_id, origin="own", tool="eagle3-remote", job_kind=record.job_kind, measurements=()
        )
