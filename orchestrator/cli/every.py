"""`--every`: a job handed to the host's own clockwork instead of being launched."""

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import Decorator, open_store, tell_what_matters

if TYPE_CHECKING:
    from orchestrator.pipeline import HostSession, Order
    from orchestrator.scheduling import Every


def every_options() -> Decorator:
    """`--every` and what belongs to it; taken out again by `take_every`."""
    options = [
        click.option(
            "--every",
            metavar="CRON",
            help="Do not launch it now: let the host's cron or systemd launch it at these times of the host's clock, "
            "e.g. '0 22 * * mon-fri'. `eagle3-remote schedule` lists, explains and removes it.",
        ),
        click.option(
            "--engine", type=click.Choice(["cron", "systemd"]), help="Of --every; without it the one that answers."
        ),
        click.option("--overlap", is_flag=True, help="Of --every: launch also while the run before still goes on."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def take_every(flags: dict[str, Any]) -> "Every | None":
    """What was asked for, taken out of the flags. Raises UsageError."""
    cron, engine, overlap = (flags.pop(name) for name in ("every", "engine", "overlap"))
    if cron is None:
        if engine is not None or overlap:
            from orchestrator.errors import UsageError

            raise UsageError("--engine and --overlap belong to --every")
        return None
    from orchestrator.scheduling import Every

    return Every(cron=cron, engine=engine, overlap=overlap)


def only_on_one_host(every: "Every | None") -> None:
    """Raises UsageError: each host has a clockwork of its own."""
    if every is not None:
        from orchestrator.errors import UsageError

        raise UsageError("--every takes one host", hint="make a schedule on each of them")


def make_schedule(order: "Order", every: "Every", session: "HostSession", *, as_json: bool) -> None:
    """Hand it to the host and show what became of it."""
    from orchestrator import scheduling
    from orchestrator.report.schedule_text import made_text

    answer = scheduling.schedule(order, every, session, open_store(), tell_what_matters)
    if as_json:
        console.out_json(dataclasses.asdict(answer))
        return
    console.out(made_text(session.name, answer))
    console.note(f"its runs: eagle3-remote schedule collect {order.run_id} --host {session.name}")
