"""Options that say what a run waits for on its host."""

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import Decorator

if TYPE_CHECKING:
    from orchestrator.waiting import Wish
    from remote_payload.schema.waiting import Waiting


def waiting_options() -> Decorator:
    """`--at`, `--after`, `--gpus` and what belongs to it; taken out again by `take_wish`."""
    options = [
        click.option(
            "--at",
            metavar="TIME",
            help="Start then: `22:00` (the next one) or `2026-12-24 22:00`, this "
            "laptop's time; `22:00 host` is the host's, `22:00 UTC` or `22:00 Europe/Berlin` another zone's.",
        ),
        click.option(
            "--after",
            multiple=True,
            metavar="RUN",
            help="Start when that run of the host has ended, however it ended. May be repeated.",
        ),
        click.option(
            "--gpus",
            type=click.IntRange(min=1),
            metavar="N",
            help="Lease N free GPUs for the run: no process, "
            "hardly any memory in use, nobody else's lease. The job sees these alone.",
        ),
        click.option("--min-free", metavar="SIZE", help="Memory that each of them must have free, e.g. 20GiB."),
        click.option("--when-free", is_flag=True, help="Wait in the host's queue until they are free."),
        click.option(
            "--wait", "longest", metavar="TIME", help="Give up when they are not free after so long, e.g. 6h."
        ),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def take_wish(flags: dict[str, Any]) -> "Wish":
    """The wish, taken out of the flags."""
    from orchestrator.waiting import Wish

    names = ("at", "after", "gpus", "min_free", "when_free", "longest")
    return Wish(**{name: flags.pop(name) for name in names})


def tell_start(waiting: "Waiting | None") -> None:
    """Whose clock and zone an `--at` meant, before anything is launched and followed."""
    from orchestrator.waiting import start_words

    if waiting is not None and (start := start_words(waiting)) is not None:
        console.note(f"starts at {start}")
