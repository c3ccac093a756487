"""`schedule`: make one, take one away, tell how they stand."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from remote_payload.claim import absolute_root, make_folders
from remote_payload.failure import JobFailure
from remote_payload.frames import Send
from remote_payload.launch import check
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import RunDir
from remote_payload.schedule import engines
from remote_payload.schedule.folder import ScheduleDir, folders, locked_file
from remote_payload.schedule.history import GRACE_S, counts, note_steps_and_missed, read_history
from remote_payload.schedule.times import next_after, use_the_systems_zone
from remote_payload.schema import LaunchRequest, RunSpec, RunState
from remote_payload.schema.cron import parse_cron
from remote_payload.schema.frames import ScheduleFrame
from remote_payload.schema.schedule import Engine, Occasion, Schedule, ScheduleRequest, Standing

MOST_LINES = 1000
MOST_RUNS = 500
CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS")
"""Source: sbatch(1), INPUT ENVIRONMENT VARIABLES."""


def answer_schedule(request: ScheduleRequest, send: Send, archive: Path) -> None:
    """Do what is asked and answer with a ScheduleFrame. Raises Refusal, SchemaError."""
    use_the_systems_zone()
    root = absolute_root(request.root)
    if request.action == "show":
        found = folders(root)
    else:
        with _alone(root):
            if request.action == "add":
                found = (_add(request, root, archive),)
            else:
                _remove(ScheduleDir(root, request.schedule_id or ""))
                found = ()
    answers = engines.look_at_engines()
    standings = [] if request.action == "remove" else _standings(request, root, found)
    if request.action == "show" and request.schedule_id is not None and not standings:
        raise Refusal("no_such_run", f"no schedule of this id on this host: {request.schedule_id}")
    send(ScheduleFrame(standings=tuple(standings), engines=answers, zone=_zone(), time_unix_s=time.time()))


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Two laptops make and remove one after the other. Raises Refusal."""
    try:
        make_folders(root)
        (root / "schedules").mkdir(mode=0o700, exist_ok=True)
        with locked_file(root / "schedules" / "lock", "the schedules of this host"):
            yield
    except OSError as error:
        raise disk_refusal(error, f"use {root / 'schedules'}") from None


def _add(request: ScheduleRequest, root: Path, archive: Path) -> ScheduleDir:
    """Claim the id and hand it to the engine; the same once more changes nothing."""
    assert request.spec is not None and request.cron is not None  # noqa: PT018 - the record has seen to it
    check(LaunchRequest(nonce=request.nonce, root=request.root, spec=request.spec, follow=False), archive)
    folder = ScheduleDir(root, request.schedule_id or "")
    known = folder.read() if folder.record.exists() else None
    if known is not None:
        _require_same(known, request)
        _require_here(known)
        engines.install(folder, known)
        return folder
    _require_gpus(request.spec)
    schedule = Schedule(
        schedule_id=folder.schedule_id,
        cron=request.cron,
        engine=engines.choose(request.engine, engines.look_at_engines()),
        overlap=request.overlap,
        spec=request.spec,
        host=os.uname().nodename,
        zone=_zone(),
        path=os.environ.get("PATH", os.defpath),
        slurm={} if request.spec.slurm is None else _of_slurm(os.environ),
        python=sys.executable,
        created_unix_s=time.time(),
    )
    folder.make(schedule, archive)
    try:
        engines.install(folder, schedule)
    except Refusal:
        folder.remove()
        raise
    return folder


def _require_gpus(spec: RunSpec) -> None:
    """Raises Refusal where the host can never give the GPUs that every run will ask for."""
    if spec.waiting is None or not spec.waiting.gpus or spec.slurm is not None:
        return
    from remote_payload.gpus.queue import GpuQueue  # noqa: PLC0415 - few schedules ask for GPUs

    try:
        GpuQueue(spec, spec.waiting, lambda _: None, lambda _: None).look()
    except JobFailure as problem:
        failure = problem.failure
        raise Refusal("schedule_refused", f"no run of it could ever start: {failure.message}", failure.hint) from None


def _of_slurm(environ: Mapping[str, str]) -> dict[str, str]:
    """Which cluster a login means, and its defaults for sbatch: cron knows neither. No job's own names, no token."""
    return {name: value for name, value in environ.items() if name in CLUSTER or name.startswith("SBATCH_")}


def _require_same(known: Schedule, request: ScheduleRequest) -> None:
    """Raises Refusal where the id belongs to a schedule that does something else."""
    assert request.spec is not None
    asked = {**vars(request.spec), "created_unix_s": known.spec.created_unix_s}
    same = (known.cron, known.overlap, vars(known.spec)) == (request.cron, request.overlap, asked)
    if not same or request.engine not in (None, known.engine):
        raise Refusal(
            "claimed_by_other_spec",
            f"another schedule owns this id: {known.schedule_id}",
            "take another --run-id, or remove that schedule first",
        )


def _require_here(schedule: Schedule) -> None:
    """Raises Refusal where the entry is another host's: without its folder it would fail there at every time."""
    if schedule.host != os.uname().nodename:
        raise Refusal(
            "schedule_refused",
            f"the schedule `{schedule.schedule_id}` is kept by another host that shares this root: {schedule.host}",
            "ask that host",
        )


def _remove(folder: ScheduleDir) -> None:
    """The entry first: without its folder it would fail at every time."""
    schedule = None
    with contextlib.suppress(OSError, Refusal):  # one that is damaged can be removed as well
        schedule = folder.read()
    if schedule is not None:
        _require_here(schedule)
    was_there = engines.remove(folder, None if schedule is None else schedule.engine)
    if not folder.path.is_dir() and not was_there:
        raise Refusal("no_such_run", f"no schedule of this id on this host: {folder.schedule_id}")
    folder.remove()
    if folder.path.exists():
        raise Refusal("root_not_writable", f"its entry is gone, its folder cannot be removed: {folder.path}")


def _standings(request: ScheduleRequest, root: Path, found: tuple[ScheduleDir, ...]) -> list[Standing]:
    held = engines.all_entries(root)
    wanted = request.schedule_id
    standings = [_standing(folder, request, held) for folder in found if wanted in (None, folder.schedule_id)]
    known = {folder.schedule_id for folder in found}
    orphans = sorted({name for ids in held.values() for name in ids or ()} - known)
    if request.action == "show":
        problem = "its folder is gone; only the engine's entry is left"
        standings += [
            Standing(schedule_id=name, installed=True, problem=problem, counts={})
            for name in orphans
            if wanted in (None, name)
        ]
    return standings


def _standing(folder: ScheduleDir, request: ScheduleRequest, held: dict[Engine, set[str] | None]) -> Standing:
    try:
        schedule = folder.read()
    except (Refusal, OSError) as error:
        is_held = any(folder.schedule_id in (ids or ()) for ids in held.values())
        return Standing(schedule_id=folder.schedule_id, installed=is_held, problem=str(error), counts={})
    if schedule.host != os.uname().nodename:
        return Standing(
            schedule_id=folder.schedule_id,
            schedule=schedule,
            problem=f"it is kept by another host that shares this root, ask that one: {schedule.host}",
            runs=_runs(folder),
            counts=counts(read_history(folder)),
        )
    ids = held[schedule.engine]
    problem = None
    try:
        with folder.locked():
            history = note_steps_and_missed(folder, schedule, time.time() - GRACE_S)
    except (OSError, Refusal) as error:
        history, problem = read_history(folder), f"its history cannot be brought up to date: {error}"
    if not folder.payload(schedule.spec.payload_sha256).is_file():
        problem = "its payload is gone, so nothing can be launched: remove the schedule and make it again"
    coming = _coming(schedule, request.coming)
    return Standing(
        schedule_id=folder.schedule_id,
        schedule=schedule,
        installed=None if ids is None else folder.schedule_id in ids,
        problem=problem,
        coming_unix_s=coming,
        coming_local=tuple(time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(moment)) for moment in coming),
        runs=_runs(folder),
        history=_told(history, whole=request.history),
        counts=counts(history),
    )


def _told(history: list[Occasion], *, whole: bool) -> tuple[Occasion, ...]:
    return tuple(history[-MOST_LINES if whole else -1 :])


def _coming(schedule: Schedule, wanted: int) -> tuple[int, ...]:
    moments: list[int] = []
    cron, after_s = parse_cron(schedule.cron), time.time()
    while len(moments) < wanted and (moment := next_after(cron, after_s)) is not None:
        moments.append(moment)
        after_s = float(moment)
    return tuple(moments)


def _runs(folder: ScheduleDir) -> tuple[RunState, ...]:
    found = []
    for run_id in folder.run_ids()[-MOST_RUNS:]:
        try:
            run = RunDir(folder.root / "runs" / run_id)
            state = current_state(run)
            if state is not None and state.phase == "lost":
                from remote_payload.sweep.driven import as_told  # noqa: PLC0415 - for few

                state = as_told(run, state)
        except (Refusal, OSError):
            continue
        found += [] if state is None else [state]
    return tuple(found)


def _zone() -> str:
    now = time.localtime()
    offset = time.strftime("%z", now)
    return f"{time.strftime('%Z', now)}, UTC{offset[:3]}:{offset[3:]}"
