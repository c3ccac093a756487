"""`status`: the state of one run or of all, each after a look whether its supervisor lives."""

import dataclasses

from remote_payload import leftovers
from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.heartbeat import beat_age_s, shared_age_s
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.runstate import read_spec, run_at
from remote_payload.schema import RunSpec, RunState, StatusAnswer, StatusFrame, StatusRequest

Row = tuple[RunState, RunSpec, float | None]


def status(request: StatusRequest, send: Send) -> None:
    """Answer with a StatusFrame; damaged run directories are named in it. Raises Refusal `no_such_run`."""
    root = absolute_root(request.root)
    if request.run_id is not None:
        runs = [run_at(root, request.run_id)]
    else:
        found = sorted((root / "runs").glob("[!.]*"))
        runs = [RunDir(path) for path in found if path.name.startswith(request.prefix) and path.is_dir()]
    rows: list[Row] = []
    unreadable: list[str] = []
    for run in runs:
        look = _look(run)
        if isinstance(look, str):
            unreadable.append(f"{run.path.name}: {look}")
        else:
            rows.append(look)
    answer = StatusAnswer(
        states=tuple(state for state, _, _ in rows),
        specs=tuple(spec for _, spec, _ in rows),
        heartbeat_ages_s=tuple(age_s for _, _, age_s in rows),
        unreadable=tuple(unreadable),
    )
    send(StatusFrame(answer=answer))


def _look(run: RunDir) -> Row | str:
    """State, spec and heartbeat age; or the reason why there are none."""
    try:
        spec = read_spec(run)
        state = current_state(run)
    except FileNotFoundError:
        return "claimed, without a spec yet"
    except (OSError, Refusal) as error:
        return str(error)
    if state is None and leftovers.supervisors(run):
        return "has no state, but its supervisor runs; if that stays so, `cancel` ends it"
    if state is None:
        return "claimed, not started yet; launch it again if nothing follows"
    if state.phase == "lost":
        from remote_payload.sweep.driven import as_told  # noqa: PLC0415 - for few

        state = as_told(run, state)
    if state.is_terminal:
        return _with_untold(run, state) if spec.notify_command else state, spec, None
    return state, spec, beat_age_s(run.heartbeat) if state.slurm is None else shared_age_s(run.heartbeat)


def _with_untold(run: RunDir, state: RunState) -> RunState:
    """With a word of why nobody was told of its end, in the answer alone."""
    from remote_payload.end_told import untold  # noqa: PLC0415 - few hosts have a command

    problem = untold(run)
    if problem is None:
        return state
    words = f"its end was not told by `notify_command`: {problem}"
    return dataclasses.replace(state, note=f"{state.note}; {words}" if state.note else words)
