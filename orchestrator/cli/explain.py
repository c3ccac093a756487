"""`eagle3-remote explain`: exactly what a run or a sweep executes."""

from typing import TYPE_CHECKING

import click

from orchestrator.cli import console
from orchestrator.cli.options import json_option, open_store
from orchestrator.errors import StoreError

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.store import Store
    from remote_payload.schema.bench import ServerFacts


@click.command()
@click.argument("run_id", metavar="RUN|SWEEP")
@json_option
def explain(run_id: str, *, as_json: bool) -> None:
    """Show exactly what a run or a sweep executes: commands, settings with their sources, a sweep's every unit.

    Works without the host, from what this laptop asked it to do; of a sweep over several hosts every share is shown. Of
    a served benchmark that came home, and of each such start of a sweep, the command of each server is shown as it was
    started.
    """
    from orchestrator.store.groups import is_group, load_group

    store = open_store()
    if not is_group(store.home, run_id):
        _show(store.load(run_id), store, as_json=as_json)
        return
    for share in load_group(store.home, run_id).shares:
        if store.run_dir(share.share_id).path.is_dir():
            _show(store.load_exact(share.share_id), store, as_json=as_json)
        else:
            console.note(f"{share.share_id} was never launched on {share.host}")


def _show(record: "RunRecord", store: "Store", *, as_json: bool) -> None:
    from orchestrator.report.explain_text import explain_json, explain_text
    from orchestrator.sweeping import asking
    from remote_payload.schema import SweepJob, job_from_json

    job = job_from_json(record.spec.job_json)
    sweep = job if isinstance(job, SweepJob) else None
    attempts = () if sweep is None else asking.known(record.run_id, store).attempts
    run_ids = [record.run_id] if sweep is None else list(dict.fromkeys(one.run_id for one in attempts))
    servers = {run_id: found for run_id in run_ids if (found := _servers(run_id, store))}
    if as_json:
        console.out_json(explain_json(record, sweep, servers))
    else:
        console.out(explain_text(record, sweep, servers, console.width()))


def _servers(run_id: str, store: "Store") -> "tuple[ServerFacts, ...]":
    """Those of a served benchmark that came home."""
    from orchestrator.store.results import read_bench

    if not store.run_dir(run_id).path.is_dir():
        return ()
    try:
        record = store.load_exact(run_id)
        is_home = record.job_kind == "bench" and store.has_figures(record)
        return read_bench(store.run_dir(run_id)).servers if is_home else ()
    except StoreError as error:
        console.warn(error.message)
        return ()
