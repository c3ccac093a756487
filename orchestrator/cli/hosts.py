"""`eagle3-remote hosts`: what is configured, and what a host is like."""

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.live import update_line
from orchestrator.cli.options import accept_new_option, json_option, open_session, open_store
from orchestrator.config import DEFAULT_ROOT
from orchestrator.errors import HostNotReadyError
from orchestrator.updates import Update

if TYPE_CHECKING:
    from orchestrator.pipeline import HostSession


@click.group(cls=ToldGroup)
def hosts() -> None:
    """List the configured hosts, or look at one."""


@hosts.command("list")
@json_option
def list_hosts(*, as_json: bool) -> None:
    """The hosts of eagle3.toml."""
    from orchestrator import config
    from orchestrator.report.host_text import hosts_text

    settings = config.load(config.here())
    if as_json:
        found = {name: dataclasses.asdict(host) for name, host in settings.hosts.items()}
        console.out_json({"file": str(settings.path) if settings.path else None, "hosts": found})
        return
    console.out(
        hosts_text([(name, host.ssh, host.python or "(found)", host.root) for name, host in settings.hosts.items()])
    )


@hosts.command()
@click.argument("name")
@accept_new_option
@json_option
@click.pass_context
def check(context: click.Context, name: str, *, accept_new: bool, as_json: bool) -> None:
    """Look at a host: reachability, key, Python interpreters, GPUs and who uses them, disk, clock, logind.

    Where the configured `python` or `root` cannot be used, that is said, the rest is looked at all the same, and the
    exit code is 14.
    """
    from orchestrator.report.host_text import check_text

    with open_session(name, _tell, accept_new=accept_new) as session:
        problems = _install(session)
        before = time.time()
        facts = session.facts()
        after = time.time()
        destination = session.destination
    # The host read its clock somewhere between the two: the midpoint is off by half the round trip at most.
    skew_s, skew_error_s = facts.time_unix_s - (before + after) / 2, (after - before) / 2
    if as_json:
        console.out_json(
            {
                "host": name,
                "destination": destination,
                "reachable": True,
                "host_key": "verified",
                "problems": problems,
                "clock_skew_s": skew_s,
                "clock_skew_error_s": skew_error_s,
                "facts": dataclasses.asdict(facts),
            }
        )
    else:
        console.out(check_text(name, destination, facts, (skew_s, skew_error_s), problems))
    context.exit(HostNotReadyError.exit_code if problems else 0)


@hosts.command()
@click.argument("name")
@accept_new_option
@json_option
def top(name: str, *, accept_new: bool, as_json: bool) -> None:
    """Who uses a host: its GPUs, who leased them, who waits for them, and your runs on their way.

    Leases are those of everybody who uses this tool on the host; processes on a leased GPU that are not of the run that
    holds it are named.
    """
    from orchestrator.pipeline import status
    from orchestrator.report.top_text import top_text

    with open_session(name, _tell, accept_new=accept_new) as session:
        facts = session.top()
        runs = [state for state in status(session, None, open_store()).states if not state.is_terminal]
        scheduler = session.host.scheduler
    if as_json:
        values = {"host": name, "scheduler": scheduler, "facts": dataclasses.asdict(facts)}
        console.out_json({**values, "runs": [dataclasses.asdict(run) for run in runs]})
        return
    console.out(top_text(name, facts, runs, scheduler))


def _install(session: "HostSession") -> list[str]:
    """Get the payload there, without the configured interpreter or root where those do not work; what did not."""
    configured = session.host
    attempts: list[dict[str, Any]] = [
        {},
        {"python": None},
        {"root": DEFAULT_ROOT},
        {"python": None, "root": DEFAULT_ROOT},
    ]
    problems: list[str] = []
    for changes in attempts:
        session.host = dataclasses.replace(configured, **changes)
        if changes and session.host == configured:
            continue
        try:
            session.installed()
        except HostNotReadyError as error:
            problems += [] if error.message in problems else [error.message]
            last = error
        else:
            return problems
    raise last


def _tell(update: Update) -> None:
    line = update_line(update)
    if line is not None:
        console.note(line)
