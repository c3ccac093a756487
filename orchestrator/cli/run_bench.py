"""`eagle3-remote run bench`: a real SGLang on the host, measured."""

from collections.abc import Callable
from typing import Any

import click

from orchestrator.cli.launching import launch, launch_options


def _numbers(kind: Callable[[str], int | float]) -> Callable[..., list[int | float] | None]:
    """`1,4,16` -> a list, which a job is read from."""

    def read(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[int | float] | None:
        try:
            return None if value is None else [kind(word) for word in value.split(",")]
        except ValueError:
            words = "whole numbers" if kind is int else "numbers"
            raise click.BadParameter(f"expected {words} like 1,4,16, found: {value!r}") from None

    return read


@click.command()
@click.option("--model", help="Folder or hub id of the target, on the host.")
@click.option("--draft", help="Folder of the drafter, on the host; without one plain decoding alone is measured.")
@click.option("--prompts", help="bundled, random, or a JSONL file on the host: input_ids, messages or text a line.")
@click.option(
    "--heldout-prompts", help="A second JSONL, prompts the drafter was not trained on; --prompts are training prompts."
)
@click.option("--num-steps", type=int, help="speculative_num_steps, as it is passed on.")
@click.option("--eagle-topk", type=int, help="speculative_eagle_topk; the three unset: SGLang's own choice.")
@click.option("--num-draft-tokens", type=int, help="speculative_num_draft_tokens.")
@click.option(
    "--concurrency", metavar="LIST", callback=_numbers(int), help="Users in a closed loop, one load each, e.g. 1,4,16."
)
@click.option(
    "--request-rate",
    metavar="LIST",
    callback=_numbers(float),
    help="Requests a second (Poisson), one load each, e.g. 0.5,2.",
)
@click.option("--with-baseline", is_flag=True, default=None, help="Plain decoding too, on the same prompts, in turn.")
@click.option("--repeats", type=int, help="How often each load is measured on a server start.")
@click.option(
    "--starts",
    type=int,
    help="How often the server is started anew, with all --repeats on each; 3 and more let speeds be judged.",
)
@click.option("--requests", type=int, help="Requests a point. Default: every prompt once, at least 5 a user.")
@click.option("--max-prompts", type=int, help="Take at most so many prompts, chosen by --seed.")
@click.option("--max-new-tokens", type=int, help="Output tokens a request at most.")
@click.option("--ignore-eos", is_flag=True, default=None, help="Go on past the end of text, to a fixed length.")
@click.option("--temperature", type=float, help="0: greedy.")
@click.option(
    "--sampled",
    type=float,
    metavar="T",
    help="Ask the lowest load once more at temperature T before the server stops: what sampling costs acceptance.",
)
@click.option("--top-p", type=float, help="Nucleus sampling.")
@click.option("--top-k", type=int, help="Sample from the k likeliest.")
@click.option("--seed", type=int, help="Of the prompts' choice and order, and of Poisson arrivals.")
@click.option("--random-tokens-ok", is_flag=True, default=None, help="Allow --prompts random, for step costs alone.")
@click.option("--algorithm", help="speculative_algorithm.")
@click.option("--tp", type=int, help="GPUs of tensor parallelism.")
@click.option("--dp", type=int, help="Data-parallel replicas.")
@click.option("--ep", type=int, help="Expert parallelism.")
@click.option("--dtype", help="dtype of the target.")
@click.option("--quantization", help="quantization of the target.")
@click.option("--draft-quantization", help="Of the drafter; unset it inherits the target's; unquant: none.")
@click.option("--context-length", type=int, help="Longest context served.")
@click.option("--mem-fraction", type=float, help="mem_fraction_static.")
@click.option(
    "--server-arg",
    "server_args",
    multiple=True,
    help="One more word for sglang.launch_server, verbatim, after those of eagle3.toml.",
)
@click.option("--server-env", "server_environment", multiple=True, metavar="NAME=VALUE", help="For the server alone.")
@click.option("--server-python", help="Interpreter that runs SGLang. Default: one on the host that has it.")
@click.option("--attach-url", help="Measure a server that is up already; it is left running.")
@click.option("--api-key-env", help="Name of the variable that holds its API key (see `secrets` of a host).")
@click.option("--port", type=int, help="Port of the server. Default: a free one.")
@click.option("--ready-timeout-s", type=float, help="How long a start may take.")
@click.option("--request-timeout-s", type=float, help="How long a request may take.")
@click.option("--harness", type=click.Choice(["own", "sglang"]), help="sglang: its own bench_serving, unchanged.")
@launch_options()
def bench(**flags: Any) -> None:
    """Serve with SGLang on the host and measure: tok/s, accept length, and what the server silently changed.

    Every request is kept; the figures and the verdict are made on this laptop.
    """
    for repeatable in ("server_args", "server_environment"):
        flags[repeatable] = list(flags[repeatable]) or None
    if flags["request_rate"] and flags["concurrency"] is None:
        flags["concurrency"] = []  # a rate was asked for, not also the users of the job file
    launch("bench", flags)
