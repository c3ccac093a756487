"""`sweep run` on one host: its plan alone, a schedule of it, or the sweep itself."""

import time
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console, showing
from orchestrator.cli import sweep_many as many
from orchestrator.cli.ending import require_going
from orchestrator.cli.every import make_schedule
from orchestrator.cli.live import watching
from orchestrator.cli.options import open_session, open_store
from orchestrator.cli.sweep_ending import follow_home, show_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.scheduling import Every
    from orchestrator.sweeping.planning import Wanted
    from remote_payload.schema.waiting import Waiting


def run(
    wanted: "Wanted",
    host_name: str,
    run_id: str | None,
    waiting: "Waiting | None",
    at_times: "Every | None",
    asked: "Mapping[str, Any]",
) -> None:
    """Its plan alone, a schedule of it, or the sweep itself: detached, or to its end."""
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.cli.sweep_pruned import require_the_same
    from orchestrator.jobfile import PlannedJob
    from orchestrator.pipeline import Order, new_run_id
    from orchestrator.sweeping import launching

    store, as_json = open_store(), asked["as_json"]
    if asked["dry_run"]:
        from orchestrator.cli.sweep_shown import show_plan

        show_plan(wanted, host_name, store, as_json=as_json)
        return
    run_id = checked_run_id(run_id) or new_run_id("sweep", time.gmtime())
    many.require_free(run_id)
    with (
        watching(as_json=as_json) as tell,
        open_session(host_name, tell, accept_new=asked["accept_new"]) as session,
    ):
        job = launching.job_at(wanted, session)
        require_the_same(job, asked["prune"], session)
        order = Order(planned=PlannedJob(job=job, settings=wanted.settings), run_id=run_id, waiting=waiting)
        if at_times is not None:
            make_schedule(order, at_times, session, as_json=as_json)
            return
        record = launching.launch(order, session, store, tell)
        problems = () if asked["detach"] else follow_home(run_id, session, store, tell)
    if asked["detach"]:
        require_going(record)
        console.note(
            f"detached; the sweep goes on. follow with: eagle3-remote sweep follow {run_id} --host {host_name}"
        )
        showing.show_launched(record, as_json=as_json)
    else:
        show_end(run_id, store, problems, as_json=as_json)
