"""`eagle3-remote explain-wiring`: which states the installed SGLang would feed a drafter, step by step."""

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.live import update_line
from orchestrator.cli.options import accept_new_option, host_option, json_option, open_session
from orchestrator.errors import HostNotReadyError
from orchestrator.updates import Update

if TYPE_CHECKING:
    from remote_payload.schema.capture_rule import WiringFacts


@click.command()
@host_option(required=True)
@click.option("--model", required=True, help="Folder of the target, on the host.")
@click.option("--draft", required=True, help="Folder of the drafter, on the host.")
@click.option(
    "--server-python",
    "python",
    help="Interpreter that runs SGLang. Default: [jobs.bench] server_python of eagle3.toml, else one that has it.",
)
@click.option(
    "--sglang-source", "source", metavar="DIR", help="Read this package `sglang` on the host instead of the installed."
)
@click.option("--pp", "stages", type=click.IntRange(1, 1024), default=1, help="Pipeline stages of the server.")
@accept_new_option
@json_option
def explain_wiring(host_name: str, *, stages: int, accept_new: bool, as_json: bool, **asked: Any) -> None:
    """Say which states the SGLang on a host would feed a drafter, by its own source, and how that is concluded.

    Nothing is started, and of the weights fc's shape alone is read: whether the drafter takes so many states, and what
    SGLang does where it does not. Where the source is of a shape that is not known, the answer is unknown; `run
    capture` asks the server itself.
    """
    from orchestrator import config
    from orchestrator.cli.diagnose_flags import require_named, require_rooted
    from orchestrator.diagnosis.effective_capture import resolve
    from orchestrator.diagnosis.fc_width import fc_width
    from orchestrator.report.wiring_chain import chain_text

    require_rooted({name: asked[name] for name in ("model", "draft")})
    words = {"python": "server_python", "source": "sglang_source"}
    require_named({words.get(name, name): text for name, text in asked.items()})
    serving = config.load(config.here()).jobs.get("bench", {})  # as a diagnosis on this laptop would serve the pair
    asked["python"] = asked["python"] or serving.get("server_python")
    with open_session(host_name, _tell, accept_new=accept_new) as session:
        facts = session.wiring(**asked, exec_prefix=serving.get("exec_prefix"))
    _require_read(facts, host_name, asked)
    found = resolve(facts.rule, facts.draft_config, facts.target_config, pipeline_stages=stages)
    fc = fc_width(facts, found.states)
    if as_json:
        told = {**dataclasses.asdict(found), "fc": dataclasses.asdict(fc), "rule": dataclasses.asdict(facts.rule)}
        console.out_json({"host": host_name, **told})
    else:
        console.out(chain_text(found, fc, console.width()))


def _require_read(facts: "WiringFacts", host: str, asked: dict[str, Any]) -> None:
    """Raise CheckpointError for a folder whose config.json says nothing, HostNotReadyError where there is no SGLang."""
    from orchestrator.diagnosing.possible import require_config

    require_config("target", asked["model"], facts.target_config, host)
    require_config("drafter", asked["draft"], facts.draft_config, host)
    rule = facts.rule
    if rule.path is None or (rule.version is None and rule.found is None):
        place = f"in {asked['source']}" if asked["source"] else f"where {asked['python'] or 'an interpreter'} looks"
        raise HostNotReadyError(
            f"host `{host}`: expected a package `sglang` {place}, found neither its version nor its models",
            hint="--sglang-source names the package's own folder, the one that holds `srt`",
        )


def _tell(update: Update) -> None:
    line = update_line(update)
    if line is not None:
        console.note(line)
