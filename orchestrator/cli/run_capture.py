"""`eagle3-remote run capture`: which states a running SGLang feeds its drafter."""

from typing import Any

import click

from orchestrator.cli.launching import launch, launch_options
from orchestrator.cli.options import Decorator
from orchestrator.cli.server_options import shape_options

SERVER: tuple[Decorator, ...] = (
    shape_options("speculative_num_steps, as it is passed on."),
    click.option("--draft-quantization", help="Of the drafter."),
    click.option("--dp", type=int, help="Data parallel size."),
    click.option("--ep", type=int, help="Expert parallel size."),
    click.option("--context-length", type=int, help="Longest context served."),
    click.option("--mem-fraction", type=float, help="mem_fraction_static."),
    click.option("--server-arg", "server_args", multiple=True, help="One more word for sglang.launch_server."),
    click.option(
        "--server-env", "server_environment", multiple=True, metavar="NAME=VALUE", help="For the server alone."
    ),
    click.option("--server-python", help="Interpreter that runs SGLang. Default: the worker's own."),
    click.option("--attach-url", help="A server that is up, started with --enable-return-hidden-states."),
    click.option("--api-key-env", help="Name of the variable that holds its API key."),
    click.option("--port", type=int, help="Port of the server. Default: a free one."),
    click.option("--ready-timeout-s", type=float, help="How long a start may take."),
    click.option("--request-timeout-s", type=float, help="How long a request may take."),
)


def _server_options(command: Any) -> Any:
    for option in reversed(SERVER):
        command = option(command)
    return command


def _numbers(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[int] | None:
    """`1,3,4` -> a list, which a job is read from."""
    try:
        return None if value is None else [int(word) for word in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"expected whole numbers like 1,3,4, found: {value!r}") from None


@click.command()
@click.option("--model", help="Folder of the target, on the host.")
@click.option("--draft", help="Folder of the drafter, on the host; it is served as it would be.")
@click.option("--rows", help="Folder of captured training rows, on the host: what the served states are held against.")
@click.option("--merged", help="Merged JSONL of the rows, on the host.")
@click.option("--states", help="HF hidden_states index of each captured state of the rows, e.g. embed,2,4,5.")
@click.option("--trained", help="The states that the drafter was trained on, in the order of its fc, e.g. embed,2,4.")
@click.option("--prompts", help="JSONL of held-out prompts (input_ids), on the host: answered, and made rows as well.")
@click.option("--heldout-prompts", help="Held-out prompts beside --prompts, which are training prompts then.")
@click.option("--max-rows", type=int, help="Training rows that are fetched.")
@click.option("--max-prompts", type=int, help="Prompts that are answered.")
@click.option("--max-new-tokens", type=int, help="Tokens of an answer at most.")
@click.option("--ignore-eos/--no-ignore-eos", default=None, help="Answer on past the end of an answer.")
@click.option("--max-tokens", type=int, help="Tokens of a row that are fetched, from its start.")
@click.option("--layer-ids", callback=_numbers, help="Without --draft: ids in SGLang's own counting, e.g. 1,3,4.")
@_server_options
@launch_options()
def capture(**flags: Any) -> None:
    """Ask a running SGLang which of the target's states it feeds its drafter.

    Fetches them for training rows and held-out prompts, says which captured state each of them is, holds the rule of
    the installed source against it, and leaves the rows on the host, as `run standalone` reads them.
    """
    for repeatable in ("server_args", "server_environment"):
        flags[repeatable] = list(flags[repeatable]) or None
    launch("capture", flags)
