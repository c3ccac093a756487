"""`eagle3-remote run`: a job on a host, from launch to the report."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.asked import question, step_cost_option
from orchestrator.cli.ending import end
from orchestrator.cli.live import watching
from orchestrator.cli.options import Decorator, accept_new_option, host_option, open_session

if TYPE_CHECKING:
    from orchestrator.jobfile import EarlierRun, PlannedJob
    from orchestrator.store import Store


def _launch_options() -> Decorator:
    options = [
        host_option(required=True),
        click.option("--job", "job_file", type=click.Path(path_type=Path), help="A job file of your own (TOML)."),
        click.option("--run-id", help="Name the run yourself. The same command again goes on with that run."),
        click.option("--detach", is_flag=True, help="Return as soon as the job runs on its own."),
        click.option("--find-python", is_flag=True, help="Look for the host's interpreter again."),
        accept_new_option,
        click.option("--json", "as_json", is_flag=True, help="One JSON object a line: updates, then the result."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group()
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
@click.option("--max-memory", "max_memory_bytes", help="Peak memory to stay below, e.g. 20GiB.")
@click.option("--resume", metavar="RUN", help="Go on with the finished rows of an earlier run on this host.")
@step_cost_option
@_launch_options()
def standalone(**flags: Any) -> None:
    """Test a drafter outside SGLang, on captured training samples.

    Says which wiring of the captured states the drafter was trained with, whether SGLang would feed it the same, and
    the config change when it would not.
    """
    _run("standalone", flags)


@run.command()
@click.option("--duration-s", type=float, help="How long the job takes.")
@click.option("--result-bytes", type=int, help="How large its result is.")
@click.option("--fail/--no-fail", default=None, help="End with a failure, to see how one is reported.")
@_launch_options()
def selftest(**flags: Any) -> None:
    """Walk the whole path with no model at all: proves a host."""
    _run("selftest", flags)


def _run(kind: str, flags: dict[str, Any]) -> None:
    """Take the launch options out of the flags; what is left are settings of the job."""
    from orchestrator.pipeline import Order, new_run_id
    from orchestrator.pipeline import run as run_job
    from orchestrator.store import Store

    host_name, as_json, detach = flags.pop("host_name"), flags.pop("as_json"), flags.pop("detach")
    asked = question(flags.pop("step_cost", None))  # a mistake in it is said before anything is launched
    run_id, accept_new, find = flags.pop("run_id"), flags.pop("accept_new"), flags.pop("find_python")
    store = Store.default()
    order = Order(
        planned=_plan(kind, flags, host_name, store),
        run_id=_checked(run_id) or new_run_id(kind, time.gmtime()),
        detach=detach,
        fresh_python=find,
    )
    with (
        watching(as_json=as_json) as tell,
        open_session(host_name, tell, accept_new=accept_new) as session,
    ):
        record = run_job(order, session, store, tell)
    if detach:
        console.note(f"detached; job goes on. attach with: eagle3-remote attach {record.run_id} --host {host_name}")
        console.show_launched(record, as_json=as_json)
    else:
        end(record, store, as_json=as_json, question=asked)


def _plan(kind: str, flags: dict[str, Any], host_name: str, store: "Store") -> "PlannedJob":
    from orchestrator import config, jobfile

    own_file = flags.pop("job_file")
    earlier = None
    if flags.get("resume") is not None:
        earlier = _earlier(flags["resume"], kind, host_name, store)
        flags["resume"] = flags["resume"] if earlier is None else earlier.run_id
    return jobfile.plan(kind, config.load(config.here()), own_file, flags, earlier)


def _earlier(name: str, kind: str, host_name: str, store: "Store") -> "EarlierRun | None":
    """The run to go on with, and what it was asked to do; None for one that only its host knows."""
    from orchestrator.errors import NotFoundError, UsageError
    from orchestrator.jobfile import EarlierRun

    try:
        record = store.load(name)
    except NotFoundError:
        return None
    if (record.job_kind, record.host.name) != (kind, host_name):
        raise UsageError(
            f"--resume: expected a run of {kind} on {host_name}, `{record.run_id}` is one of: "
            f"{record.job_kind} on {record.host.name}"
        )
    return EarlierRun(run_id=record.run_id, job_json=record.spec.job_json)


def _checked(run_id: str | None) -> str | None:
    from orchestrator.errors import UsageError
    from remote_payload.schema.run import require_run_id

    if run_id is not None:
        try:
            require_run_id(run_id)
        except ValueError as error:
            raise UsageError(f"--run-id: {error}") from None
    return run_id
