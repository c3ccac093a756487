"""`launch`: claim the run, start its supervisor, answer; then follow in the same channel."""

import os
from pathlib import Path

from remote_payload import supervisor
from remote_payload.claim import absolute_root, fits_the_kernel, lock_claim, make_folders, remove_unstarted
from remote_payload.detach import DetachError, DiedError, Report, start_detached
from remote_payload.frames import FrameWriter
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal, disk_refusal
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema import (
    FollowRequest,
    LaunchedFrame,
    LaunchRequest,
    SchemaError,
    SweepJob,
    job_from_json,
    to_json,
)

HANDSHAKE_TIMEOUT_S = 10.0


def launch(request: LaunchRequest, writer: FrameWriter, archive: Path) -> None:
    """Answer with a LaunchedFrame, then follow if asked; `archive` is the payload file. Raises Refusal, SchemaError."""
    root = absolute_root(request.root)
    writer.send_json(begin(request, root, archive))
    if request.follow:
        from remote_payload.follow import follow  # noqa: PLC0415 - after the answer: start-up time

        follow(
            FollowRequest(
                nonce=request.nonce,
                root=str(root),
                run_id=request.spec.run_id,
                until_running=request.until_running,
                inline_limit_bytes=request.inline_limit_bytes,
            ),
            writer.send,
        )


def begin(
    request: LaunchRequest, root: Path, archive: Path, sweep: RunDir | None = None, hold: RunDir | None = None
) -> str:
    """Claim the run and start its supervisor, or adopt it; returns the LaunchedFrame as JSON.

    `sweep`: whose unit it is; `hold`: whose member it is, begun by that hold itself: the run is cancelled with either.
    Raises Refusal, SchemaError.
    """
    check(request, archive)
    run = RunDir(root / "runs" / request.spec.run_id)
    if request.spec.within is not None and hold is None:
        begun = _by_hold(request, root / "runs" / request.spec.within)
        if begun is not None:
            return begun
    try:
        make_folders(root)
        claim = lock_claim(run)
    except OSError as error:
        raise disk_refusal(error, f"create the run directory {run.path}") from None
    return _claimed(request, run, supervisor.Origin(archive=archive, sweep=sweep, hold=hold), claim)


def _by_hold(request: LaunchRequest, hold: Path) -> str | None:
    """The LaunchedFrame of a run that its hold began; None = the hold is over, and no run can begin in it."""
    from remote_payload.hold.door import ask  # noqa: PLC0415 - few runs are within one

    frame = ask(RunDir(hold), "launch", to_json(request))
    return to_json(frame) if isinstance(frame, LaunchedFrame) else None


def check(request: LaunchRequest, archive: Path) -> None:
    """Everything that can be wrong before anything is written. Raises SchemaError."""
    spec = request.spec
    try:
        job = job_from_json(spec.job_json)
    except ValueError as error:
        raise SchemaError(f"$.spec.job_json{str(error).removeprefix('$')}") from None
    if job.kind != spec.job_kind:
        raise SchemaError(f"$.spec.job_kind: expected {job.kind!r} as in `job_json`, found: {spec.job_kind!r}")
    if set(request.secrets) != set(spec.secret_names):
        raise SchemaError(
            f"$.secrets: expected exactly {sorted(spec.secret_names)}, the names in the spec, "
            f"found: {sorted(request.secrets)}"
        )
    for name, value in (*spec.environment.items(), *request.secrets.items()):
        if not name or "=" in name or not fits_the_kernel(name + value):
            raise SchemaError(f"$.spec.environment: a name or value that no environment can hold, at: {name!r}")
    if not fits_the_kernel(spec.python):
        raise SchemaError(f"$.spec.python: not a path: {spec.python!r}")
    if archive.stem != spec.payload_sha256:
        raise SchemaError(f"$.spec.payload_sha256: this payload is {archive.name}, found: {spec.payload_sha256!r}")


def _claimed(request: LaunchRequest, run: RunDir, origin: supervisor.Origin, claim: int) -> str:
    """Adopt, refuse or start, under the claim's lock; returns the LaunchedFrame as JSON."""
    try:
        spec_bytes = to_json(request.spec).encode("ascii")
        if not run.spec.exists():
            _write_spec(run, spec_bytes)
        elif _content(run.spec) != spec_bytes:
            raise Refusal(
                "claimed_by_other_spec",
                f"another run with another spec owns this run id: {request.spec.run_id}",
                "choose another run id, or attach to that run",
            )
        state = current_state(run)
        if state is not None:
            return to_json(LaunchedFrame(state=state, adopted=True))
        if origin.sweep is None:
            _require_own_ids(request, run)
        if origin.sweep is None and request.spec.job_kind == "sweep":
            _claim_rest(request, run)
        if origin.hold is None and request.spec.within is not None:
            remove_unstarted(run)
            raise Refusal("lease_over", f"the hold of the GPUs that this run was to use is over: {request.spec.within}")
        return _start(request, run, origin, claim)
    finally:
        os.close(claim)


def _require_own_ids(request: LaunchRequest, run: RunDir) -> None:
    """Raises Refusal, nothing left of the run."""
    if request.spec.job_kind != "sweep" and ".u" not in request.spec.run_id:
        return
    from remote_payload.sweep.unit_ids import require_own_ids  # noqa: PLC0415 - for few

    try:
        require_own_ids(job_from_json(request.spec.job_json), request.spec.run_id, run.path.parent)
    except Refusal:
        remove_unstarted(run)
        raise


def _claim_rest(request: LaunchRequest, run: RunDir) -> None:
    """A sweep that goes on with another must be the only one that does, wherever that other is.

    Raises Refusal, nothing left of the run.
    """
    from remote_payload.sweep.group_ledger import enter  # noqa: PLC0415 - for sweeps alone
    from remote_payload.sweep.succession import claim_rest  # noqa: PLC0415

    job = job_from_json(request.spec.job_json)
    if not isinstance(job, SweepJob):
        return
    try:
        enter(job, request.spec, run.path.parent)
        claim_rest(job, request.spec.run_id, run.path.parent)
    except Refusal:
        remove_unstarted(run)
        raise


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # a folder in its place, another user's: no spec of ours
        return None


def _write_spec(run: RunDir, spec_bytes: bytes) -> None:
    try:
        run.result.mkdir(exist_ok=True)
        write_atomically(run.spec, spec_bytes, durable=False)  # the supervisor syncs it beside the worker's start
    except OSError as error:
        remove_unstarted(run)
        raise disk_refusal(error, f"write {run.spec}") from None


def _start(request: LaunchRequest, run: RunDir, origin: supervisor.Origin, claim: int) -> str:
    if request.spec.slurm is not None:
        from remote_payload.slurm.submit import submit  # noqa: PLC0415 - few hosts have a Slurm

        return to_json(LaunchedFrame(state=submit(run, request.spec, request.secrets, origin.archive)))

    def body(report: Report) -> None:
        supervisor.supervise(run, request.spec, request.secrets, origin, report, claim)
        if request.spec.notify_command and origin.sweep is None:  # a sweep's end is told, not those of its units
            from remote_payload.end_told import tell_the_end  # noqa: PLC0415 - few hosts have a command

            tell_the_end(run, request.spec)

    try:
        answer = start_detached(body, keep=(claim, *_leased(origin)), timeout_s=HANDSHAKE_TIMEOUT_S)
    except DetachError as error:
        if isinstance(error, DiedError) and not run.state.exists():
            remove_unstarted(run)
        raise Refusal(
            "supervisor_did_not_start", f"the supervisor did not start: {error}", "repeat the launch; it is safe"
        ) from None
    if answer.startswith("refused "):
        remove_unstarted(run)
        raise disk_refusal(OSError(*_errno_of(answer)), f"start a run in {run.path}")
    return answer


def _errno_of(answer: str) -> tuple[int, str]:
    number = int(answer.split()[1])
    return number, os.strerror(number)


def _leased(origin: supervisor.Origin) -> tuple[int, ...]:
    """A unit of a sweep and a member of a hold have its devices as long as they live, whatever becomes of it."""
    if origin.sweep is None and origin.hold is None:
        return ()
    from remote_payload.gpus.leases import handed_down  # noqa: PLC0415 - a launch from a laptop needs no locks

    return handed_down()
