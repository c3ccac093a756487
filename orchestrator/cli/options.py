"""Options that several commands share, and how they become a session."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from orchestrator import config
from orchestrator.cli import console
from orchestrator.errors import UsageError
from orchestrator.store import Store
from orchestrator.updates import Note, Reconnecting, Update

if TYPE_CHECKING:
    from orchestrator.pipeline import HostSession

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

HOST_HELP = "A host of eagle3.toml, an ssh alias, or user@address[:port]."


class Seconds(click.FloatRange):
    """A range that NaN does not slip through: it compares as neither too small nor too large."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails as click's own range does."""
        if str(value).strip().lower().lstrip("+-") == "nan":
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return super().convert(value, param, ctx)


def host_option(*, required: bool) -> Decorator:
    """`--host NAME`; where it is not required the run's own host is taken from the store."""
    more = "" if required else " Default: the host this laptop launched the run on."
    return click.option("--host", "host_name", metavar="NAME", required=required, help=HOST_HELP + more)


def several_hosts_option(*, required: bool) -> Decorator:
    """`--host A,B,C`: several hosts share what is asked; one name is one host."""
    more = " Several, with commas, share the points" if required else " Several, with commas: all of them are asked"
    rest = "" if required else " Default: the hosts this laptop launched it on."
    return click.option(
        "--host", "host_name", metavar="NAME[,NAME...]", required=required, help=f"{HOST_HELP}{more}.{rest}"
    )


accept_new_option = click.option(
    "--accept-new",
    is_flag=True,
    help="Accept and remember the key of a host that known_hosts does not know yet (never a changed one).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_store() -> Store:
    """The user's store with the project's baselines, if the project has a folder of them. Raises ConfigError."""
    return Store.default(config.load(config.here()).baselines)


def open_session(host_name: str, tell: Callable[[Update], None], *, accept_new: bool) -> "HostSession":
    """A session on a host by name; connects on first use. SSH is imported here and not before."""
    from orchestrator import pipeline

    return pipeline.session(host_name, config.load(config.here()), tell, accept_new=accept_new)


def tell_what_matters(update: Update) -> None:
    """For commands that show an answer and no progress: only what a user must not miss, to stderr."""
    if isinstance(update, Reconnecting):
        console.note(f"link: {update.reason} - the job goes on, reconnecting (try {update.attempt})")
    elif isinstance(update, Note) and update.name in ("offline", "host key", "known_hosts", "events"):
        console.note(f"{update.name}: {update.text}")


def host_of(run_id: str, host_name: str | None, store: Store) -> tuple[str, str]:
    """The whole run id and its host: what was given, else what the store knows about the run."""
    from remote_payload.schema.run import RUN_ID_PATTERN

    if host_name is not None:
        if RUN_ID_PATTERN.fullmatch(run_id) is None:
            raise UsageError(f"expected a run id ({RUN_ID_PATTERN.pattern}), found: {run_id!r}")
        return run_id, host_name
    record = store.load(run_id)
    return record.run_id, record.host.name
