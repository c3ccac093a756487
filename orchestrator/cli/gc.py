"""`eagle3-remote gc`: housekeeping on a host."""

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import (
    HOST_HELP,
    accept_new_option,
    json_option,
    open_session,
    open_store,
    tell_what_matters,
)
from orchestrator.errors import HostNotReadyError, StoreError, UsageError
from orchestrator.store import Store

if TYPE_CHECKING:
    from remote_payload.schema.housekeeping import GcRules


@click.command()
@click.option("--host", "host_name", metavar="NAME", help=HOST_HELP)
@click.option("--local", is_flag=True, help="This laptop's own runs instead of a host's.")
@click.option("--older-than", metavar="TIME", help="What ended longer ago than that, e.g. 30d or 12h.")
@click.option("--keep-newest", type=click.IntRange(min=0), metavar="N", help="Keep the N newest runs and sweeps.")
@click.option("--max-size", metavar="SIZE", help="The oldest, until the tool's folder takes no more, e.g. 20GiB.")
@click.option("--uncollected", is_flag=True, help="Also what this laptop has not brought home.")
@click.option("--runs", "kinds", flag_value="run", multiple=True, help="Only single runs.")
@click.option("--sweeps", "kinds", flag_value="sweep", multiple=True, help="Only sweeps, each with all its units.")
@click.option("--payloads", "kinds", flag_value="payload", multiple=True, help="Only the tool's own files there.")
@click.option("--apply", is_flag=True, help="Take it away. Without this nothing is changed.")
@accept_new_option
@json_option
def gc(host_name: str | None, *, local: bool, apply: bool, accept_new: bool, as_json: bool, **limits: Any) -> None:
    """Make room on a host, or here: show what could go and why the rest stays; --apply takes it away.

    Without a limit no run and no sweep goes, only payloads that nothing needs. What is not over, what a run on its way
    or a schedule needs, and what this laptop has not brought home always stays.
    """
    from orchestrator.housekeeping import Garbage, collect_garbage
    from orchestrator.report.housekeeping_text import gc_json, gc_text
    from orchestrator.store.making_room import make_room

    if local == (host_name is not None):
        raise UsageError("say where: --host NAME, or --local for the runs of this laptop")
    rules = _rules(**limits)
    if host_name is None:
        if rules.uncollected or "payload" in limits["kinds"]:
            raise UsageError("--uncollected and --payloads are about a host")
        items, totals = make_room(open_store(), rules, apply=apply)
        found = Garbage(items=items, totals=totals, applied=apply)
    else:
        with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
            found = collect_garbage(session, Store.default(), rules, apply=apply)
    where = host_name or "this laptop"
    if as_json:
        console.out_json(gc_json(where, found.items, found.totals, applied=apply))
    else:
        console.out(gc_text(where, found.items, found.totals, applied=apply, width=console.width()))
    if found.failed:
        error = StoreError if host_name is None else HostNotReadyError
        raise error(f"{where}: so many could not be taken away whole: {len(found.failed)}")


def _rules(
    *, older_than: str | None, keep_newest: int | None, max_size: str | None, kinds: tuple[str, ...], uncollected: bool
) -> "GcRules":
    from orchestrator.jobfile import parse_size
    from orchestrator.waiting import duration_s
    from remote_payload.schema.housekeeping import GcRules

    return GcRules(
        kinds=kinds or ("run", "sweep", "payload"),  # type: ignore[arg-type] # by the options above
        older_than_s=None if older_than is None else duration_s(older_than, "--older-than"),
        keep_newest=keep_newest,
        max_bytes=None if max_size is None else parse_size(max_size, "--max-size"),
        uncollected=uncollected,
    )
