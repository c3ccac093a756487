"""`eagle3-remote run`: a job on a host, from launch to the report."""

from typing import Any

import click

from orchestrator.cli.asked import step_cost_option
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.launching import launch, launch_options
from orchestrator.cli.run_bench import bench
from orchestrator.cli.run_capture import capture


@click.group(cls=ToldGroup)
def run() -> None:
    """Run a job on a host, follow it, bring its result home.

    Ctrl-C stops looking, not the job: `eagle3-remote attach RUN` goes on where you left.
    """


@run.command()
@click.option("--draft", help="Folder of the drafter, on the host.")
@click.option("--target", help="Folder of the target model, on the host (embedding, lm_head and norm are read).")
@click.option("--rows", help="Folder of captured rows, on the host.")
@click.option("--merged", help="Merged JSONL of the rows, on the host.")
@click.option("--states", help="HF hidden_states index of each captured state, e.g. 0,2,4,5 or embed,2,4,5.")
@click.option("--add-embedding", is_flag=True, default=None, help="Compute the embedding output, which --states lack.")
@click.option("--steps", type=int, help="Training-time-test steps to follow.")
@click.option("--dtype", help="float32 or bfloat16.")
@click.option("--device", help="auto, cpu, cuda or cuda:N.")
@click.option("--threads", type=int, help="CPU threads.")
@click.option("--max-rows", type=int, help="Read at most so many rows.")
@click.option("--search-rows", type=int, help="Rows of the search over all readings, before the finalists.")
@click.option("--heldout", help="Folder of captured rows the drafter was not trained on, on the host.")
@click.option("--heldout-merged", help="Merged JSONL of the held-out rows, on the host.")
@click.option("--sweep", help="full: also how the drafter computes; wiring: states and token offsets alone.")
@click.option("--capture-rows", type=int, help="Rows compared with a fresh forward of the target; 0: none.")
@click.option("--max-memory", "max_memory_bytes", help="Peak memory to stay below, with its unit, e.g. 20GiB.")
@click.option("--resume", metavar="RUN", help="Go on with the finished rows of an earlier run on this host.")
@step_cost_option
@launch_options()
def standalone(**flags: Any) -> None:
    """Test a drafter outside SGLang, on captured training samples.

    Says which wiring of the captured states the drafter was trained with, whether SGLang would feed it the same, and
    the config change when it would not.
    """
    launch("standalone", flags)


@run.command()
@click.option("--duration-s", type=float, help="How long the job takes.")
@click.option("--result-bytes", type=int, help="How large its result is.")
@click.option("--fail/--no-fail", default=None, help="End with a failure, to see how one is reported.")
@launch_options()
def selftest(**flags: Any) -> None:
    """Walk the whole path with no model at all: proves a host."""
    launch("selftest", flags)


run.add_command(bench)
run.add_command(capture)
