"""A sweep on its way to its host: its job by what lies there, then launched as one run."""

import dataclasses

from orchestrator import pipeline
from orchestrator.errors import UsageError
from orchestrator.following import Tell
from orchestrator.order import Order
from orchestrator.records import RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.sweep.plan import Circumstances, paths_of, plan
from orchestrator.sweeping.identity import identify
from orchestrator.sweeping.planning import Wanted
from remote_payload.schema import SweepJob
from remote_payload.schema.sweep import LONGEST_SWEEP_ID

MOST_TAG = 64


def job_at(asked: Wanted, session: HostSession) -> SweepJob:
    """The job for the host: its points known by what lies under their paths there."""
    identity = identify(session, paths_of(asked.base, asked.expanded.points))
    around = Circumstances(payload_sha256=session.payload_sha256, identity=identity)
    job = plan(asked.file, asked.base, asked.expanded, around)
    return dataclasses.replace(job, unit_deadline_s=session.host.deadline_s)


def launch(order: Order, session: HostSession, store: Store, tell: Tell) -> RunRecord:
    """Start it on the host and return as soon as it runs on its own. Raises what `pipeline.run` does, UsageError."""
    run_id = order.run_id
    if len(run_id) > LONGEST_SWEEP_ID or len(run_id) > MOST_TAG:
        raise UsageError(f"a sweep's id has at most {MOST_TAG} characters, found: {run_id}")
    return pipeline.run(dataclasses.replace(order, detach=True), session, store, tell)
