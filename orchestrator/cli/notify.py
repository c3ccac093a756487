"""`--notify`, and telling that a run is over, from whatever command sees it."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from orchestrator.cli import console

if TYPE_CHECKING:
    from orchestrator.records import RunRecord
    from orchestrator.store import Store
    from remote_payload.schema import SweepAttempt

_ASKED = "orchestrator.cli.notify"


def _remember(context: click.Context, _: click.Parameter, value: bool | None) -> None:
    context.meta[_ASKED] = value


notify_option = click.option(
    "--notify/--no-notify",
    default=None,
    expose_value=False,
    callback=_remember,
    help="Tell those of [notify] in eagle3.toml when the end is seen; the default where the table names anybody.",
)


def _attempts(record: "RunRecord", store: "Store") -> "tuple[SweepAttempt, ...]":
    """Of a sweep, as its host told them last."""
    if record.job_kind != "sweep":
        return ()
    from orchestrator import sweeping
    from orchestrator.errors import Eagle3Error

    try:
        return sweeping.known(record.run_id, store).attempts
    except Eagle3Error:  # what cannot be read was told of by the command itself
        return ()


def notify_end_of(run_id: str, store: "Store") -> None:
    """The same by id; what this laptop does not know, or what is not over, is told of to nobody."""
    from orchestrator.errors import InvalidRunError, NotFoundError, StoreError

    with suppress(InvalidRunError, NotFoundError, StoreError):
        notify_end(store.load_exact(run_id), store)


def notify_end(record: "RunRecord", store: "Store") -> None:
    """Tell that the run is over, once; what fails is a warning and nothing else."""
    from orchestrator import config
    from orchestrator.errors import ConfigError

    context = click.get_current_context(silent=True)
    asked = None if context is None else context.meta.get(_ASKED)
    if asked is False:
        return
    try:
        wanted = config.load(config.here()).notify
    except ConfigError as error:  # it was read before; somebody is at it
        console.warn(f"nobody is told: {error.message}")
        return
    if wanted.is_empty:
        if asked:
            console.warn("--notify: nobody is told, for eagle3.toml has no [notify]")
        return
    from orchestrator.notifying import notify

    for problem in notify(record, store, wanted, _attempts(record, store)):
        console.warn(problem)
