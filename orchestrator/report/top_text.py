"""`hosts top`: GPUs, leases, queue and runs of a host, as text. Pure."""

from collections.abc import Sequence

from orchestrator.report.folded import diagnosis_of
from orchestrator.report.host_text import process_words
from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, age, seconds, size
from remote_payload.schema import RunState
from remote_payload.schema.top import GpuUse, TopFacts
from remote_payload.schema.waiting import Holder

ANSWERS = {
    "no_nvidia_smi": "no nvidia-smi on this host: nobody can tell which GPUs are free",
    "hung": "! nvidia-smi did not answer in time: the driver may hang, nobody can tell which GPUs are free",
    "failed": "! nvidia-smi failed: nobody can tell which GPUs are free",
}
SCHEDULED = {
    "slurm": "Slurm hands out the GPUs of this cluster, and who waits for them: `sinfo` and `squeue` on this host tell"
}


def top_text(name: str, facts: TopFacts, runs: Sequence[RunState], scheduler: str | None = None) -> str:
    """Three blocks; times are ages by the host's own clock. `runs` are this user's that are not over.

    With a scheduler, as of a host of eagle3.toml, the first two are its own: it hands the GPUs out, and on other hosts.
    """
    now_s = facts.time_unix_s
    lines = [f"{name} ({facts.hostname})", ""]
    if scheduler is not None:
        return "\n".join([*lines, SCHEDULED[scheduler], "", *_runs(runs, now_s)])
    if facts.gpu_answer != "ok":
        lines.append(f"{ANSWERS[facts.gpu_answer]}{f' ({facts.gpu_problem})' if facts.gpu_problem else ''}")
    else:
        lines += _gpus(facts.gpus, now_s) or ["no GPUs"]
        if facts.gpu_problem:
            lines += ["", f"! nvidia-smi also says: {facts.gpu_problem}"]
    for name_of, holder in facts.unseen.items():
        who = "somebody" if holder is None else _holder(holder, now_s)
        lines.append(f"leased, and not told of by nvidia-smi: {name_of}: {who}")
    lines += [f"! no lease: {name_of}, not told of by nvidia-smi: {why}" for name_of, why in facts.unusable.items()]
    if facts.lease_problem:
        lines += ["", f"! leases and queue cannot be read: {facts.lease_problem}"]
    lines += ["", *_queue(facts, now_s), *(f"! passed over in the queue: {words}" for words in facts.passed_over)]
    lines += ["", *_runs(runs, now_s)]
    return "\n".join(lines)


def _gpus(uses: Sequence[GpuUse], now_s: float) -> list[str]:
    if not uses:
        return []
    rows = [["gpu", "name", "memory", "load", "state"]]
    rows += [[_index(use), use.gpu.name, _memory(use), _load(use), _state(use, now_s)] for use in uses]
    strays = [f"! GPU {use.gpu.index}: {process_words(item)}" for use in uses for item in use.strays]
    told = ["", "! uses a leased GPU from outside the run that holds it (somebody else's, or in a container):", *strays]
    hidden = ", ".join(str(use.gpu.index) for use in uses if use.hidden)
    unknown = ["", f"cannot tell whether others use what is leased of GPU {hidden}: this host hides their processes"]
    return [*table(rows), *(told if strays else ()), *(unknown if hidden else ())]


def _index(use: GpuUse) -> str:
    return str(use.gpu.index) if use.gpu.mig_of is None else f" {use.gpu.index} MIG"


def _memory(use: GpuUse) -> str:
    used, total = use.gpu.memory_used_bytes, use.gpu.memory_total_bytes
    if used is None or total is None:
        return UNKNOWN
    return f"{size(used)} of {size(total)}"


def _load(use: GpuUse) -> str:
    load = use.gpu.utilization_percent
    return UNKNOWN if load is None else f"{load:.0f} %"


def _state(use: GpuUse, now_s: float) -> str:
    if not use.leased:
        return use.why_not_free or "free"
    return "leased" if use.holder is None else f"leased: {_holder(use.holder, now_s)}"


def _holder(holder: Holder, now_s: float) -> str:
    since_s = now_s - holder.since_unix_s
    diagnosis = diagnosis_of(holder.run_id)
    what = holder.run_id if diagnosis is None else f"{holder.run_id} (diagnosis {diagnosis})"
    return f"{holder.user}, {what}, {'from now' if since_s < 0 else f'for {seconds(since_s)}'}"


def _queue(facts: TopFacts, now_s: float) -> list[str]:
    if not facts.queue and not facts.unsigned:
        return ["nobody waits for GPUs"]
    rows = [["place", "wants", "who", "run", "waits"]]
    for place, holder in enumerate(facts.queue, 1):
        free = "" if holder.min_free_bytes is None else f", {size(holder.min_free_bytes)} free"
        wants = f"{holder.gpus} GPU{'' if holder.gpus == 1 else 's'}{free}"
        rows.append([str(place), wants, holder.user, holder.run_id, age(now_s - holder.since_unix_s)])
    more = [f"and {facts.unsigned} who did not sign"] if facts.unsigned else []
    return [*(table(rows) if facts.queue else ()), *more]


def _runs(runs: Sequence[RunState], now_s: float) -> list[str]:
    if not runs:
        return ["no run of yours is on its way here"]
    rows = [["run", "phase", "for", "note"]]
    for state in runs:
        note = state.note or ""
        if state.slurm is not None:
            at = f" on {state.slurm.node}" if state.slurm.node else ""
            note = f"Slurm job {state.slurm.job_id}{at}{f': {note}' if note else ''}"
        since = None if state.started_unix_s is None else now_s - state.started_unix_s
        rows.append([state.run_id, state.phase, "-" if since is None else age(since), note])  # not begun yet
    return table(rows)
