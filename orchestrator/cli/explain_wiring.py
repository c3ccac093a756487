"""`eagle3-remote explain-wiring`: which states the installed SGLang would feed a drafter, step by step."""

import dataclasses
from typing import Any

import click

from orchestrator.cli import console
from orchestrator.cli.live import update_line
from orchestrator.cli.options import accept_new_option, host_option, json_option, open_session
from orchestrator.updates import Update


@click.command()
@host_option(required=True)
@click.option("--model", required=True, help="Folder of the target, on the host.")
@click.option("--draft", required=True, help="Folder of the drafter, on the host.")
@click.option("--server-python", "python", help="Interpreter that runs SGLang. Default: one on the host that has it.")
@click.option(
    "--sglang-source", "source", metavar="DIR", help="Read this package `sglang` on the host instead of the installed."
)
@click.option("--pp", "stages", type=click.IntRange(1, 1024), default=1, help="Pipeline stages of the server.")
@accept_new_option
@json_option
def explain_wiring(host_name: str, *, stages: int, accept_new: bool, as_json: bool, **asked: Any) -> None:
    """Say which states the SGLang on a host would feed a drafter, by its own source, and how that is concluded.

    Nothing is started and no weight is read. Where the source is of a shape that is not known, the answer is unknown;
    `run capture` asks the server itself.
    """
    from orchestrator.diagnosis.effective_capture import resolve
    from orchestrator.report.wiring_chain import chain_text

    with open_session(host_name, _tell, accept_new=accept_new) as session:
        facts = session.wiring(**asked)
    found = resolve(facts.rule, facts.draft_config, facts.target_config, pipeline_stages=stages)
    if as_json:
        console.out_json({"host": host_name, **dataclasses.asdict(found), "rule": dataclasses.asdict(facts.rule)})
    else:
        console.out(chain_text(found, console.width()))


def _tell(update: Update) -> None:
    line = update_line(update)
    if line is not None:
        console.note(line)
