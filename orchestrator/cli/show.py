"""What a run, a state or a cancel looks like when a command is done: text for a person, JSON for a script."""

import dataclasses
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console
from orchestrator.outcome import error_of

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.store import Store
    from remote_payload.schema import CancelAnswer, StatusAnswer


def show_run(record: "RunRecord", store: "Store", *, as_json: bool) -> None:
    """The report of a run that is over. Raises the error its outcome means, after what there is was shown."""
    error = error_of(record.state) if record.state is not None else None
    if error is None:
        _show_result(record, store, as_json=as_json)
    elif as_json:
        console.out_json_line({"result": None, **_outcome(record)})
    if error is not None:
        raise error


def show_launched(record: "RunRecord", host_name: str, *, as_json: bool) -> None:
    """A detached run: its id, and how to come back to it."""
    if as_json:
        console.out_json_line({"detached": True, **_outcome(record)})
    else:
        console.note(f"detached; job goes on. attach with: eagle3-remote attach {record.run_id} --host {host_name}")
        console.out(record.run_id)


def show_status(answer: "StatusAnswer", host_name: str, *, as_json: bool) -> None:
    """The states a host answered with."""
    from orchestrator.report.host_text import status_text

    if as_json:
        console.out_json({"host": host_name, **dataclasses.asdict(answer)})
    else:
        console.out(status_text(answer))


def show_cancel(answer: "CancelAnswer", *, as_json: bool) -> None:
    """What cancel did."""
    if as_json:
        console.out_json(dataclasses.asdict(answer))
        return
    how = "was over before" if answer.was_terminal else "is over"
    console.out(f"{answer.state.run_id} {how}: {answer.state.phase}")


def _show_result(record: "RunRecord", store: "Store", *, as_json: bool) -> None:
    from orchestrator.report import run_json, run_text

    console.out(run_json(record, store) if as_json else run_text(record, store))


def _outcome(record: "RunRecord") -> dict[str, Any]:
    state = dataclasses.asdict(record.state) if record.state is not None else None
    return {"run_id": record.run_id, "host": record.host.name, "state": state}
