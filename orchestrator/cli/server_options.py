"""Options that say which server speculates and how, for commands that start one beside `run bench`."""

from typing import Any

import click

from orchestrator.cli.options import Decorator


def shape_options(num_steps: str) -> Decorator:
    """`--num-steps` to `--quantization`, in this order; `num_steps`: the help of the first."""
    options = [
        click.option("--num-steps", type=int, help=num_steps),
        click.option("--eagle-topk", type=int, help="speculative_eagle_topk."),
        click.option("--num-draft-tokens", type=int, help="speculative_num_draft_tokens."),
        click.option("--algorithm", help="speculative_algorithm."),
        click.option("--tp", type=int, help="GPUs of tensor parallelism."),
        click.option("--dtype", help="dtype of the target."),
        click.option("--quantization", help="quantization of the target."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
