"""A sweep on the screen: its plan, how far it is, its report."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.cli import console

if TYPE_CHECKING:
    from orchestrator.store import Store
    from orchestrator.sweeping.asking import Asked
    from orchestrator.sweeping.planning import Wanted


def show_plan(wanted: "Wanted", host: str, store: "Store", *, as_json: bool) -> None:
    """What would be run; the host is not asked."""
    from orchestrator.estimating import estimate
    from orchestrator.report.sweep_text import plan_json, plan_text
    from orchestrator.sweep.plan import Circumstances, plan

    job = plan(wanted.file, wanted.base, wanted.expanded, Circumstances(payload_sha256=""))
    expected = estimate(job, host, store)
    if as_json:
        console.out_json(plan_json(job, expected.seconds, expected.least_s))
    else:
        console.out(plan_text(job, expected.in_words, console.width()))


def show_progress(asked: "Asked", *, as_json: bool) -> None:
    """How far it is."""
    from orchestrator.report.sweep_text import progress_json, progress_text

    told = (asked.record.run_id, asked.record.host.name, asked.job, asked.progress)
    if asked.drivers:
        pids = ", ".join(map(str, asked.drivers))
        console.warn(f"its supervisor is gone, and it still goes on, driven by: {pids}; `sweep cancel` ends it")
    if as_json:
        console.out_json(progress_json(*told))
    else:
        console.out(progress_text(*told, console.width()))
    if asked.state.slurm is not None and asked.state.note is not None and not asked.state.is_terminal:
        console.note(asked.state.note)  # Slurm's word, or that it does not answer


def show_report(asked: "Asked", store: "Store", *, as_json: bool) -> None:
    """The table of its points; of a sweep that goes on with the moment when its host was asked."""
    from orchestrator.report.moments import moment
    from orchestrator.report.sweep_table import table_json, table_text
    from orchestrator.sweeping import tables

    table = tables.table_of(asked, store)
    if as_json:
        console.out_json({**table_json(table), "told_unix_s": asked.told_unix_s})
    else:
        console.out(table_text(table, console.width()))
    if not asked.progress.is_over:
        run_id, host = asked.record.run_id, asked.record.host.name
        last = f"as {host} told it last, {moment(asked.told_unix_s)}"
        told = f"{host} was not asked since the launch" if asked.told_unix_s is None else last
        console.note(f"{told}; `eagle3-remote sweep collect {run_id}` asks it anew")


def show_list(store: "Store", there: tuple[tuple[str, str, str], ...], *, as_json: bool) -> None:
    """The sweeps known here, then those that only a host knows: (id, host, phase); first those of several hosts."""
    from orchestrator.report.table import table
    from orchestrator.store.groups import group_ids, load_group

    here = [(run.run_id, run.host or "", run.phase) for run in store.list() if run.job_kind == "sweep"]
    groups = [(group_id, ",".join(load_group(store.home, group_id).hosts)) for group_id in group_ids(store.home)]
    known = {run_id for run_id, _, _ in here}
    phases = {run_id: phase for run_id, _, phase in there}
    rows = [(run_id, host, phases.get(run_id, phase)) for run_id, host, phase in here]
    rows[:0] = [(group_id, hosts, _phase(group_id, rows)) for group_id, hosts in groups]
    rows += [one for one in there if one[0] not in known]
    if as_json:
        for run_id, host, phase in rows:
            console.out_json({"run_id": run_id, "host": host, "phase": phase})
    elif rows:
        console.out("\n".join(table([("sweep", "host", "phase"), *rows])))
    else:
        console.note("no sweep yet: start one with `eagle3-remote sweep run FILE --host NAME`")


def _phase(group_id: str, rows: "Sequence[tuple[str, str, str]]") -> str:
    """Of a sweep over several hosts, by what its shares were seen as last."""
    from remote_payload.schema import TERMINAL_PHASES

    seen = [phase for run_id, _, phase in rows if run_id.startswith(f"{group_id}.h")]
    return "over" if seen and all(phase in TERMINAL_PHASES for phase in seen) else "going on"
