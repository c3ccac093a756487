"""A run becomes a baseline: judged, its measurements kept for good, the name moved once; never a failed run."""

from dataclasses import dataclass

from orchestrator.compare.baseline import require_over, require_valid
from orchestrator.measurements import measurements_of
from orchestrator.records import Baseline
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.packed import sha256_of
from orchestrator.store import Store


@dataclass(frozen=True, kw_only=True)
class Promoted:
    """What a promotion did."""

    baseline: Baseline
    measured: MeasurementSet
    """What the name means now."""
    older_record: bool
    """The run was promoted before with other measurements, e.g. by another version; that record stays and counts."""


def promote(store: Store, reference: str, name: str, *, source: str, note: str, now: float) -> Promoted:
    """Let `name` mean a run of this laptop, own or imported.

    Raises NotFoundError with the closest ids, InvalidRunError where the run did not succeed, is not whole, has no
    figures or something against them, StoreError where its record is broken.
    """
    run_id = store.resolve(reference)
    if store.is_imported(run_id):
        measured = store.imported(run_id)
    else:
        record = store.load_exact(run_id)
        require_over(record, store.verify(run_id) if record.phase == "succeeded" else ())
        measured = measurements_of(store, record)
    require_valid(measured)
    baseline = store.names.promote(name, measured, source=source, note=note, now=now)
    older = baseline.current.record_sha256 != sha256_of(measured)
    kept = store.names.measured(baseline.current) if older else None
    return Promoted(baseline=baseline, measured=kept or measured, older_record=older)
