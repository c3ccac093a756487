"""`eagle3-remote diagnose`: from "speculation is slow" to the cause and the line to change."""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.diagnosed import nothing_private, show
from orchestrator.cli.live import watching
from orchestrator.cli.options import accept_new_option, host_option, open_session, open_store
from orchestrator.cli.server_options import shape_options
from orchestrator.cli.waiting import take_wish, tell_start, waiting_options
from orchestrator.errors import DetachedError, Eagle3Error, InvalidRunError

if TYPE_CHECKING:
    from orchestrator.config import Config
    from orchestrator.diagnosing.applying import Applied
    from orchestrator.diagnosing.asked import Asked
    from orchestrator.diagnosing.lease import Lease
    from orchestrator.diagnosing.walk import Diagnosed
    from orchestrator.store import Store

SERVER = ("algorithm", "num_steps", "eagle_topk", "num_draft_tokens", "tp", "dtype", "quantization",
          "draft_quantization", "server_args", "server_environment", "server_python", "attach_url", "api_key_env",
          "max_prompts", "max_new_tokens", "repeats", "sampled")  # fmt: skip
"""Flags of `run bench` that a diagnosis takes as well."""
CANNOT_TELL = 3
"""Exit code where nothing failed and no verdict was reached."""


@click.command()
@host_option(required=True)
@click.option("--model", help="Folder of the target, on the host.")
@click.option("--draft", help="Folder of the drafter, on the host.")
@click.option("--rows", help="Folder of captured training rows, on the host.")
@click.option("--merged", help="Merged JSONL of the rows, on the host; its prompts are asked as training prompts.")
@click.option("--states", help="HF hidden_states index of each captured state, e.g. 0,2,4,5 or embed,2,4,5.")
@click.option("--trained", help="The states that the drafter was trained on, as its trainer says, e.g. embed,2,4.")
@click.option("--heldout", help="Folder of captured rows the drafter was not trained on, on the host.")
@click.option("--heldout-merged", help="Merged JSONL of the held-out rows, on the host.")
@click.option("--heldout-prompts", help="JSONL of prompts the drafter was not trained on, on the host.")
@click.option("--prompts", help="JSONL of training prompts, on the host. Default: --merged.")
@shape_options("speculative_num_steps, as you serve it.")
@click.option("--draft-quantization", help="Of the drafter.")
@click.option("--server-arg", "server_args", multiple=True, help="One more word for sglang.launch_server, verbatim.")
@click.option("--server-env", "server_environment", multiple=True, metavar="NAME=VALUE", help="For the server alone.")
@click.option("--server-python", help="Interpreter that runs SGLang.")
@click.option("--attach-url", help="A server that is up already; it is left running, and plain decoding not measured.")
@click.option("--api-key-env", help="Name of the variable that holds its API key.")
@click.option("--max-prompts", type=int, help="Ask at most so many prompts of each file.")
@click.option("--max-new-tokens", type=int, help="Output tokens a request at most.")
@click.option("--repeats", type=int, help="How often speed is measured; 3 and more give intervals.")
@click.option(
    "--sampled",
    type=float,
    is_flag=False,
    flag_value=1.0,
    metavar="[T]",
    help="Serve the prompts once more at temperature T (1.0 where none is given), on the same start of the server.",
)
@click.option("--job", "job_file", type=click.Path(path_type=Path), help="A job file of the served benchmark (TOML).")
@click.option("--again", is_flag=True, help="Run anew a stage that failed before; one that was cut short always is.")
@click.option("--deep", is_flag=True, help="Run every stage, also where the cause is certain before.")
@click.option("--budget", metavar="TIME", help="No stage begins, or goes on, after so long, e.g. 45m.")
@click.option("--apply", "applies", is_flag=True, help="Write a corrected drafter beside the original, and serve it.")
@click.option("--apply-into", metavar="FOLDER", help="Where the corrected drafter goes, on the host.")
@click.option("--redact", is_flag=True, help="No host names, user names or paths in what is printed or written.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="The report to paste somewhere.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="The report as one page.")
@click.option("--run-id", help="Name the diagnosis yourself. The same command again goes on with it.")
@accept_new_option
@click.option("--verbose", is_flag=True, help="Everything, not what fits a screen.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: updates, then the diagnosis.")
@waiting_options()
def diagnose(host_name: str, **flags: Any) -> None:
    """Find out why a drafter is slow, from the cheapest look to the dearest, and stop where the cause is certain.

    \b
    lint      both configs and the installed SGLang's source beside what is asked for; nothing is started
    offline   the drafter on captured training rows, without a server
    capture   what the running SGLang really feeds it
    replay    what a server should accept on the very text that is served
    serve     accept length and speed of the real server, beside plain decoding

    Each but lint is an ordinary run, named after the diagnosis: the same command again goes on where it was broken off,
    and runs anew what was cut short. --gpus leases once for all of them.
    --run-id alone goes on with a diagnosis, or shows what is home: `report --diagnosis ID` does so without its host.
    Exit code 0: a verdict, also a bad one, and `sound` (no fault, speed not judged); 3: too little to tell; else the
    error of the stage that failed.
    """  # noqa: D301 - click's own mark for lines to keep
    from orchestrator import config
    from orchestrator.cli.diagnose_flags import require_usable
    from orchestrator.diagnosing.applying import apply
    from orchestrator.diagnosing.budget import Budget
    from orchestrator.diagnosing.lease import Lease, waited_before
    from orchestrator.diagnosing.private import redaction_before
    from orchestrator.store.diagnoses import going_on
    from orchestrator.waiting import same_gpus

    require_usable(flags)
    settings = config.load(config.here())
    waiting = take_wish(flags).waiting(settings.host(host_name).leases)
    tell_start(waiting)
    store = open_store()
    kept = _kept(flags, store, settings)
    asked = kept or _asked(flags)
    if waiting is None and kept is not None:
        waiting = same_gpus(waited_before(asked.diagnosis_id, store))
    private = redaction_before(asked, host_name, settings) if flags["redact"] else None
    applied: Applied | Eagle3Error | None = None
    with (
        going_on(store.home, asked.diagnosis_id),
        watching(as_json=flags["as_json"]) as all_told,
        nothing_private(all_told, private) as tell,
        open_session(host_name, tell, accept_new=flags["accept_new"]) as session,
        Lease(asked.diagnosis_id, waiting, Budget(asked.budget_s), session, store, tell) as lease,
    ):
        found = _walked(asked, settings, lease)
        if flags["applies"]:
            try:
                applied = apply(found, settings, lease, into=flags["apply_into"])
            except Eagle3Error as error:  # the diagnosis is told all the same
                applied = error
    show(found, applied, flags)
    with nothing_private(lambda _: None, private):
        _end(found, applied, lease.problem)


def _walked(asked: "Asked", settings: "Config", lease: "Lease") -> "Diagnosed":
    """All stages; who stops looking is told how to go on with the diagnosis, not with one stage of it."""
    from orchestrator.diagnosing.walk import diagnose as walk

    try:
        return walk(asked, settings, lease)
    except DetachedError as stopped:
        again = f"eagle3-remote diagnose --host {lease.session.name} --run-id {asked.diagnosis_id}"
        stopped.hint = f"the same command, or `{again}`, goes on with the diagnosis"
        raise


def _kept(flags: dict[str, Any], store: "Store", settings: "Config") -> "Asked | None":
    """The diagnosis that --run-id alone names, as it was asked for; None where anything says what to diagnose.

    Raises NotFoundError where there is none, and neither the command nor eagle3.toml says what to diagnose.
    """
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.diagnosing.asked import SAMPLES
    from orchestrator.diagnosing.keeping import asked_of
    from orchestrator.store.diagnoses import find_diagnosis, load_diagnosis
    from orchestrator.waiting import duration_s

    named = {"model", "draft", "trained", "job_file", "prompts", "heldout_prompts", *SAMPLES, *SERVER}
    if flags["run_id"] is None or any(flags[name] not in (None, ()) for name in named):
        return None
    configured = settings.jobs.get("bench", {})
    is_told = "model" in configured or "attach_url" in configured
    record = (find_diagnosis if is_told else load_diagnosis)(store.home, checked_run_id(flags["run_id"]) or "")
    if record is None:
        return None
    budget = flags["budget"]
    bounded = None if budget is None else duration_s(budget, "--budget")
    return dataclasses.replace(asked_of(record), deep=flags["deep"], again=flags["again"], budget_s=bounded)


def _asked(flags: dict[str, Any]) -> "Asked":
    from orchestrator.cli.launching import checked_run_id
    from orchestrator.diagnosing.asked import SAMPLES, Asked
    from orchestrator.pipeline import new_run_id
    from orchestrator.waiting import duration_s

    serving = {key: list(value) or None if isinstance(value, tuple) else value for key, value in flags.items()}
    serving = {key: serving[key] for key in SERVER if serving[key] is not None}
    prompts = flags["prompts"] or flags["merged"]
    heldout = flags["heldout_prompts"] or flags["heldout_merged"]
    if prompts is not None:
        serving["prompts"] = prompts
    if heldout is not None:
        serving["prompts" if prompts is None else "heldout_prompts"] = heldout
    if flags["attach_url"] is None and flags["draft"] is not None:
        serving["with_baseline"] = True
    budget = flags["budget"]
    return Asked(
        diagnosis_id=checked_run_id(flags["run_id"]) or new_run_id("diagnosis", time.gmtime()),
        model=flags["model"],
        draft=flags["draft"],
        samples={key: flags[key] for key in SAMPLES if flags[key] is not None},
        serving={"model": flags["model"], "draft": flags["draft"], **serving},
        trained=flags["trained"],
        only_training=prompts is not None and heldout is None,
        job_file=flags["job_file"],
        deep=flags["deep"],
        again=flags["again"],
        budget_s=None if budget is None else duration_s(budget, "--budget"),
    )


def _end(found: "Diagnosed", applied: "Applied | Eagle3Error | None", no_gpus: Eagle3Error | None) -> None:
    """Exit: 0 with a verdict, also a bad one; else what a stage's end means, or 3 where there is too little to tell."""
    is_healthy = found.decision.verdict == "healthy"
    if isinstance(applied, Eagle3Error) and not (is_healthy and isinstance(applied, InvalidRunError)):
        raise applied
    if found.decision.verdict == "cannot_tell":
        for error in (*found.results.failures.values(), *([no_gpus] if no_gpus else [])):
            raise error
        click.get_current_context().exit(CANNOT_TELL)
