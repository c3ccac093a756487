"""The table of a sweep, or of one over several hosts, from the runs that are on this laptop."""

import dataclasses
from collections.abc import Sequence

from orchestrator.errors import InvalidRunError
from orchestrator.measurements import set_of_run
from orchestrator.records.measurement import MeasurementSet
from orchestrator.store import Store
from orchestrator.sweep.class_tables import ClassTable, class_tables
from orchestrator.sweep.group import Part
from orchestrator.sweep.software import measured_with, mixed
from orchestrator.sweep.standing import Progress
from orchestrator.sweep.table import SweepTable, table
from orchestrator.sweeping.asking import Asked


def table_of(asked: Asked, store: Store) -> SweepTable:
    """What can be said of the sweep now; a run without figures, as a selftest, has its row all the same."""
    progress = asked.progress
    replaced = mixed(measured_with(asked.job, asked.attempts))
    job = dataclasses.replace(asked.job, drift=tuple(dict.fromkeys((*asked.job.drift, *replaced))))
    return table(asked.record.run_id, asked.record.host.name, job, progress, _sets(progress, store))


def tables_of(group_id: str, parts: Sequence[Part], store: Store) -> tuple[ClassTable, ...]:
    """What can be said of a sweep over several hosts now."""
    sets: dict[str, MeasurementSet] = {}
    for part in parts:
        sets |= _sets(part.progress, store)
    return class_tables(group_id, parts, sets)


def _sets(progress: Progress, store: Store) -> dict[str, MeasurementSet]:
    sets: dict[str, MeasurementSet] = {}
    for one in progress.standings:
        if one.word != "measured" or one.run_id is None or one.run_id in sets:
            continue
        if store.run_dir(one.run_id).path.is_dir():
            sets[one.run_id] = _set(one.run_id, store)
    return sets


def _set(run_id: str, store: Store) -> MeasurementSet:
    record = store.load_exact(run_id)
    try:
        return set_of_run(store, run_id)
    except InvalidRunError:
        return MeasurementSet(
            run_id=run_id, origin="own", tool="eagle3-remote", job_kind=record.job_kind, measurements=()
        )
