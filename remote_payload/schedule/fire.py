"""`fire ROOT ID`: what the engine starts at each time. Launches an ordinary run, or says in the history why not."""

import dataclasses
import os
import sys
import time
from pathlib import Path

from remote_payload.claim import absolute_root
from remote_payload.launch import begin
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schedule.folder import ScheduleDir
from remote_payload.schedule.history import at_this_moment, note, note_steps_and_missed
from remote_payload.schedule.times import last_until, use_the_systems_zone
from remote_payload.schema import LaunchRequest, RunSpec, SchemaError, SweepJob, from_json, to_json
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.schedule import Occasion, Schedule

LATE_S = 90.0


def fire(root: str, schedule_id: str, archive: Path) -> int:
    """Fire the time that is due; the exit code. What goes wrong is one line on stderr, which cron mails."""
    use_the_systems_zone()
    try:
        folder = ScheduleDir(absolute_root(root), schedule_id)
        schedule = folder.read()
        with folder.locked():
            occasion = _fired(folder, schedule, archive, time.time())
            if occasion is not None:
                note(folder, occasion)
    except (OSError, Refusal) as error:
        sys.stderr.write(f"eagle3-remote: schedule {schedule_id}: {error}\n")
        return 1
    if occasion is not None and occasion.what == "failed":
        sys.stderr.write(f"eagle3-remote: schedule {schedule_id}: {occasion.why}\n")
        return 1
    return 0


def _fired(folder: ScheduleDir, schedule: Schedule, archive: Path, now_s: float) -> Occasion | None:
    """What becomes of the time that is due; None where none is."""
    due_s = last_until(parse_cron(schedule.cron), now_s, schedule.created_unix_s)
    if due_s is None:
        return None
    history = note_steps_and_missed(folder, schedule, due_s - 1)
    run_id = folder.run_id(due_s)
    if any(one.what in ("fired", "skipped") and one.due_unix_s == due_s for one in history):
        why = "this time was over already: fired twice, or the clock was set back"
        return at_this_moment(what="skipped", due_unix_s=due_s, why=why)
    going = None if schedule.overlap else still_going(folder, run_id)
    if going is not None:
        return at_this_moment(what="skipped", due_unix_s=due_s, why=f"{going} is not over yet")
    spec, other = _as_it_lies(dataclasses.replace(schedule.spec, run_id=run_id, created_unix_s=float(due_s)))
    os.environ.update({"PATH": schedule.path, **schedule.slurm})
    if spec.slurm is not None:  # sbatch runs here, in cron's environment; what a worker needs it gets by itself
        os.environ.update(spec.environment)
    try:
        begin(LaunchRequest(nonce="fire", root=str(folder.root), spec=spec, follow=False), folder.root, archive)
    except (Refusal, SchemaError) as error:
        return at_this_moment(what="failed", due_unix_s=due_s, run_id=run_id, why=str(error))
    words = [f"{now_s - due_s:.0f} s late"] if now_s - due_s > LATE_S else []
    words += [f"other than when the schedule was made: {', '.join(other)}"] if other else []
    return at_this_moment(what="fired", due_unix_s=due_s, run_id=run_id, why="; ".join(words) or None)


def _as_it_lies(spec: RunSpec) -> tuple[RunSpec, tuple[str, ...]]:
    """A sweep by the models that lie there at this time, and the paths that hold others than when it was planned."""
    if spec.job_kind != "sweep":
        return spec, ()
    from remote_payload.sweep.reidentified import as_it_lies  # noqa: PLC0415 - for sweeps alone

    job, other = as_it_lies(from_json(SweepJob, spec.job_json))
    return dataclasses.replace(spec, job_json=to_json(job)) if other else spec, other


def still_going(folder: ScheduleDir, run_id: str) -> str | None:
    """An earlier run of the schedule that is not over; None = none. One that cannot be read is not waited for."""
    for earlier in reversed(folder.run_ids()):
        try:
            state = current_state(RunDir(folder.root / "runs" / earlier))
            if state is not None and state.slurm is not None and not state.is_terminal:
                from remote_payload.slurm.settle import in_the_end  # noqa: PLC0415 - few hosts have a Slurm

                state = in_the_end(RunDir(folder.root / "runs" / earlier))
            if state is not None and state.phase == "lost":
                from remote_payload.sweep.driven import as_told  # noqa: PLC0415 - for few

                state = as_told(RunDir(folder.root / "runs" / earlier), state)
        except (Refusal, OSError):
            continue
        if earlier != run_id and state is not None and not state.is_terminal:
            return earlier
    return None
