"""What the reader of a report adds to what was measured: the option, and the question it becomes."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from orchestrator.report.question import Question

step_cost_option = click.option(
    "--step-cost",
    metavar="R",
    help="What a speculative step costs in plain decode steps: 1.9, 1.47+0.16k (k draft steps), or 46.7/90@1.9 (tok/s "
    "with and without the drafter, @ accept length). Default: [[step_costs]] of eagle3.toml.",
)


def question(step_cost: str | None, max_new_tokens: int | None = None) -> "Question":
    """What the reader of a report adds to the measured: a step's cost by flag, else by eagle3.toml."""
    from orchestrator import config
    from orchestrator.compare.step_cost import parse_step_cost, stored_costs
    from orchestrator.report.question import Question

    given = () if step_cost is None else (parse_step_cost(step_cost),)
    settings = config.load(config.here())
    stored = stored_costs(settings.step_costs, str(settings.path))
    return Question(max_new_tokens=max_new_tokens, costs=(*given, *stored))
