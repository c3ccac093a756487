"""`--notify`, and telling that a run is over, from whatever command sees it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from orchestrator.cli import console

if TYPE_CHECKING:
    from orchestrator.config import NotifyConfig
    from orchestrator.records import RunRecord
    from orchestrator.records.group import SweepGroup
    from orchestrator.store import Store
    from orchestrator.sweep_groups.members import Member
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
    from orchestrator.errors import Eagle3Error
    from orchestrator.sweeping import asking

    try:
        return asking.known(record.run_id, store).attempts
    except Eagle3Error:  # what cannot be read was told of by the command itself
        return ()


def notify_end_of(run_id: str, store: "Store") -> None:
    """The same by id; what this laptop does not know, or what is not over, is told of to nobody."""
    from orchestrator.errors import InvalidRunError, NotFoundError, StoreError

    with suppress(InvalidRunError, NotFoundError, StoreError):
        notify_end(store.load_exact(run_id), store)


def notify_end(record: "RunRecord", store: "Store") -> None:
    """Tell that the run is over, once; what fails is a warning and nothing else."""
    wanted = _wanted()
    if wanted is None:
        return
    from orchestrator.notifying import notify

    for problem in notify(record, store, wanted, _attempts(record, store)):
        console.warn(problem)


def notify_group_end(group: "SweepGroup", members: "Sequence[Member]", store: "Store") -> None:
    """The same of a sweep over several hosts, once nothing more comes of any share; by whichever laptop sees it."""
    from orchestrator.store.groups import told_folder
    from orchestrator.sweep_groups.ending import ending_of_group

    ending = ending_of_group(group, members)
    wanted = None if ending is None else _wanted()
    if ending is None or wanted is None:
        return
    from orchestrator.notifying import tell

    for problem in tell(ending, told_folder(store.home, group), store, wanted):
        console.warn(problem)


def _wanted() -> "NotifyConfig | None":
    """Who is to be told; None = nobody, and that is said where somebody was to be."""
    from orchestrator import config
    from orchestrator.errors import ConfigError

    context = click.get_current_context(silent=True)
    asked = None if context is None else context.meta.get(_ASKED)
    if asked is False:
        return None
    try:
        wanted = config.load(config.here()).notify
    except ConfigError as error:  # it was read before; somebody is at it
        console.warn(f"nobody is told: {error.message}")
        return None
    if wanted.is_empty:
        if asked:
            console.warn("--notify: nobody is told, for eagle3.toml has no [notify]")
        return None
    return wanted
