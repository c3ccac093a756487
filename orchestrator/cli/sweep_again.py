"""`eagle3-remote sweep resume` and `confirm`: a new sweep made of an earlier one."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console, showing
from orchestrator.cli import sweep_many as many
from orchestrator.cli import sweep_many_launch as many_launch
from orchestrator.cli.ending import require_going
from orchestrator.cli.live import watching
from orchestrator.cli.notify import notify_option
from orchestrator.cli.options import (
    Decorator,
    accept_new_option,
    host_of,
    json_option,
    open_session,
    open_store,
    several_hosts_option,
)
from orchestrator.cli.sweep_ending import follow_home, show_end
from orchestrator.cli.sweep_hosts import mix_options, or_of_several
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.store import Store
    from orchestrator.sweeping.asking import Asked
    from remote_payload.schema import SweepJob


def again_options() -> Decorator:
    """The options of whatever makes a new sweep of an earlier one."""
    options: list[Decorator] = [
        click.argument("run_id", metavar="SWEEP"),
        several_hosts_option(required=False),
        click.option("--allow-drift", is_flag=True, help="Although models, host or tool are not as they were."),
        click.option("--run-id", "new_id", help="Name the new sweep yourself."),
        click.option("--detach", is_flag=True, help="Return as soon as it runs on its own."),
        notify_option,
        accept_new_option,
        json_option,
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command()
@click.option("--skip-failed", is_flag=True, help="Leave out the points that failed.")
@click.option("--prune", is_flag=True, help="Leave out the points that `sweep report` says cannot win.")
@click.option(
    "--host-is-dead",
    "dead",
    multiple=True,
    metavar="NAME",
    help="Of several hosts one that does not answer, and on which nothing runs any more: move what it had. "
    "May be repeated.",
)
@mix_options
@again_options()
@or_of_several
def resume(
    *, skip_failed: bool, prune: bool, dead: tuple[str, ...], mix_classes: bool, mix_models: bool, **asked: Any
) -> None:
    """Measure what a sweep left: a new sweep of the points that are not measured; what still runs is waited for.

    Of a sweep over several hosts `--host` names those that take what is left; what may still be measured is not moved.
    """
    is_elsewhere = bool(dead) and asked["host_name"] is not None  # of a sweep that this laptop may not know
    if is_elsewhere or many.is_many(asked["run_id"], asked["host_name"]):
        if prune or asked["new_id"]:
            raise UsageError("--prune and --run-id are for the sweep of one host; a share, as in `night.h1`, is one")
        asked |= {"mix_classes": mix_classes, "mix_models": mix_models}
        many_launch.resume(dead=dead, skip_failed=skip_failed, **asked)
        return
    if dead or mix_classes or mix_models:
        raise UsageError("--host-is-dead, --mix-classes and --mix-models are for a sweep over several hosts")
    from orchestrator.sweep.pruning import nothing_said
    from orchestrator.sweep.remaining import remaining
    from orchestrator.sweeping.tables import table_of

    def made(earlier: "Asked", store: "Store") -> "SweepJob":
        run_id = earlier.record.run_id
        hopeless = {}
        if prune:
            table = table_of(earlier, store)
            hopeless = {one.point_id: one.reason for one in table.proposals}
            if not hopeless:
                console.note(
                    f"--prune leaves nothing out: sweep `{run_id}` rules nothing out, {nothing_said(table.chains)}"
                )
        return remaining(earlier.job, run_id, earlier.progress, skip_failed=skip_failed, hopeless=hopeless)

    _launch(made, **asked)


@click.command()
@click.option("--blocks", type=click.IntRange(3, 100), default=3, show_default=True, help="Fresh starts of each.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the blocks' orders.")
@again_options()
def confirm(*, blocks: int, seed: int, **asked: Any) -> None:
    """Measure a sweep's best three configurations afresh beside plain decoding; only that recommends one.

    The best three over all loads, and the best of each load, but for those surely slower than plain decoding. The best
    of many looks better than it is, so the runs that chose it do not judge it.
    """
    if many.is_many(asked["run_id"], asked["host_name"]):
        raise UsageError(
            "confirm measures on one host what that host measured: name a share, as in `night.h1`, and not the whole",
        )
    from orchestrator.errors import InvalidRunError
    from orchestrator.sweep.confirmation import best_configurations
    from orchestrator.sweep.confirmation import confirm as confirmed
    from orchestrator.sweeping.tables import table_of

    def made(earlier: "Asked", store: "Store") -> "SweepJob":
        chosen = best_configurations(table_of(earlier, store))
        if not chosen:
            raise InvalidRunError(
                f"no configuration of sweep `{earlier.record.run_id}` can be held against plain decoding",
                hint=f"`eagle3-remote sweep collect {earlier.record.run_id}` brings home what it measured; it needs "
                "`baseline = true`",
            )
        return confirmed(earlier.job, earlier.record.run_id, chosen, blocks=blocks, seed=seed)

    _launch(made, **asked)


def _launch(
    made: "Callable[[Asked, Store], SweepJob]", run_id: str, host_name: str | None, new_id: str | None, **asked: Any
) -> None:
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.jobfile import PlannedJob
    from orchestrator.pipeline import Order, new_run_id, python_for
    from orchestrator.sweeping import asking, launching
    from orchestrator.sweeping.going_on import go_on
    from orchestrator.sweeping.succession import require_none_went_on
    from orchestrator.waiting import same_gpus

    store = open_store()
    run_id, host_name = host_of(run_id, host_name, store)
    new_id = checked_run_id(new_id) or new_run_id("sweep", time.gmtime())
    with (
        watching(as_json=asked["as_json"]) as tell,
        open_session(host_name, tell, accept_new=asked["accept_new"]) as session,
    ):
        earlier = asking.ask(session, run_id, store)
        spec, left = earlier.record.spec, made(earlier, store)
        if left.confirms is None:
            require_none_went_on(run_id, left, new_id, store)
        again = Order(planned=PlannedJob(job=left, settings=spec.settings), run_id=new_id)
        python = python_for(again, session, store, lambda _: None, trust=True)  # told when it is launched
        job = go_on(earlier, session, left, python, allow_drift=asked["allow_drift"])
        adopts = any(unit.adopt is not None for unit in job.units)
        planned = PlannedJob(job=job, settings=spec.settings)
        order = Order(planned=planned, run_id=new_id, waiting=same_gpus(spec.waiting, adopts=adopts))
        record = launching.launch(order, session, store, tell)
        problems = () if asked["detach"] else follow_home(new_id, session, store, tell)
    if asked["detach"]:
        require_going(record)
        showing.show_launched(record, as_json=asked["as_json"])
    else:
        show_end(new_id, store, problems, as_json=asked["as_json"])
