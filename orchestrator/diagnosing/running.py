"""One run of a diagnosis: taken as this laptop has it, gone on with, or launched."""

import dataclasses

from orchestrator import pipeline
from orchestrator.following import Tell
from orchestrator.order import Order, at_host
from orchestrator.records import RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from remote_payload.schema import to_json


def run_or_take(order: Order, session: HostSession, store: Store, tell: Tell) -> RunRecord:
    """The run as this laptop has it whole; else launched, or gone on with, under the deadline it was launched with.

    Raises what `pipeline.run` does.
    """
    known = _known(order, session, store)
    if known is None:
        return pipeline.run(order, session, store, tell)
    if pipeline.is_home(known, store):
        return known
    return pipeline.run(dataclasses.replace(order, deadline_s=known.spec.deadline_s), session, store, tell)


def _known(order: Order, session: HostSession, store: Store) -> RunRecord | None:
    """The run that was asked to do just this before, on this host."""
    if not store.run_dir(order.run_id).path.is_dir():
        return None
    record = store.load_exact(order.run_id)
    same = record.spec.job_json == to_json(at_host(order.planned, session.name, session.host).job)
    return record if same and record.host.name == session.name else None
