"""`eagle3-remote hosts`: what is configured, and what a host is like."""

import dataclasses
import time

import click

from orchestrator.cli import console
from orchestrator.cli.live import update_line
from orchestrator.cli.options import accept_new_option, json_option, open_session
from orchestrator.updates import Update


@click.group()
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
def check(name: str, *, accept_new: bool, as_json: bool) -> None:
    """Look at a host: reachability, key, Python interpreters, GPUs and who uses them, disk, clock, logind."""
    from orchestrator.report.host_text import check_text

    with open_session(name, _tell, accept_new=accept_new) as session:
        session.installed()
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
                "clock_skew_s": skew_s,
                "clock_skew_error_s": skew_error_s,
                "facts": dataclasses.asdict(facts),
            }
        )
        return
    console.out(check_text(name, destination, facts, skew_s, skew_error_s))


def _tell(update: Update) -> None:
    line = update_line(update)
    if line is not None:
        console.note(line)
