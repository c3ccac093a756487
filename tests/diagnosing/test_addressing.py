"""The commands to run next name what the diagnosis was asked about, reach its server, and run as they are printed."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from orchestrator.cli.main import cli
from orchestrator.config import Config
from orchestrator.diagnosing.addressing import addressed, flag_words
from orchestrator.diagnosing.asked import OF_SERVER, Asked
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.next_runs import NextRun, next_runs
from orchestrator.diagnosis.decision.row import Row, Step
from orchestrator.jobfile import plan
from orchestrator.report.decision_text import command_words
from remote_payload.schema import BenchJob
from remote_payload.schema.capture_job import CaptureJob
from tests.diagnosing.test_stages import asked
from tests.diagnosis.checks.test_heldout_rows import EXCHANGED, held_out
from tests.diagnosis.decision import scenes

SERVER: dict[str, Any] = {
    "server_args": ["--attention-backend", "torch_native", "--max-total-tokens=2000"],
    "server_environment": ["SGLANG_X=a b"],
    "server_python": "/opt/my sglang/bin/python",
    "dtype": "float32",
    "draft_quantization": "unquant",
    "tp": 2,
    "dp": 2,
    "algorithm": "EAGLE3",
}


def words(about: Asked, known: Known | None = None) -> dict[str, tuple[str, ...]]:
    decision = decide(known or Known())
    return {run.step: run.command for run in addressed(decision, about, Config(), "gpu1").next_runs}


def every_step(known: Known, about: Asked, config: Config | None = None) -> tuple[NextRun, ...]:
    """All that may ever be run next, each once."""
    steps = get_args(Step)
    runs: list[NextRun] = []
    for step in steps:
        row = Row(name="x", kind="ask", when="", why="w", asks=(step,))
        decision = dataclasses.replace(decide(known), next_runs=next_runs(known, [row]))
        runs += addressed(decision, about, config or Config(), "gpu1").next_runs
    assert {run.step for run in runs} == set(steps)
    return tuple(runs)


def settings_of(run: NextRun) -> tuple[str, dict[str, Any]]:
    """The command as the command line reads what was printed: its kind and its flags."""
    _, *printed = shlex.split(command_words(run))
    context = click.Context(cli)
    command: click.Command = cli
    while isinstance(command, click.Group):
        found = command.get_command(context, printed.pop(0))
        assert found is not None, run.command
        command = found
    read = command.make_context(str(command.name), printed).params
    return str(command.name), read


def test_what_is_known_is_named_and_what_is_not_stays_in_capitals() -> None:
    told = words(asked())
    assert told["standalone"] == (
        *("eagle3-remote", "run", "standalone", "--host", "gpu1", "--draft", "/d", "--target", "/t", "--rows", "/r"),
        *("--heldout", "HELDOUT_ROWS", "--states", "embed,2,4,5"),
    )
    assert told["serve_train"][told["serve_train"].index("--prompts") + 1] == "/p"
    assert "/h" in told["serve_heldout"]
    alone = dataclasses.replace(asked(heldout_prompts=None), only_training=True)
    assert "/p" in words(alone)["serve_train"]
    assert "HELDOUT_PROMPTS.jsonl" in words(alone)["serve_heldout"]
    assert "TRAIN_PROMPTS.jsonl" in words(asked(heldout_prompts=None))["serve_train"]
    assert "TARGET" in words(dataclasses.replace(asked(), model=None))["standalone"]


@pytest.mark.parametrize("known", [Known(), scenes.story(), Known(offline=scenes.offline())])
def test_every_command_runs_as_it_is_printed_and_reaches_the_same_server(known: Known) -> None:
    """Read by the command line and made a job, it is served as the diagnosis is: whatever was typed to reach it."""
    about = asked(**SERVER)
    for run in every_step(known, about):
        kind, read = settings_of(run)
        ours = {"host_name", "job_file", "run_id", "detach", "find_python", "accept_new", "junit", "notify", "as_json"}
        flags = {key: value for key, value in read.items() if key not in ours and value not in (None, (), False)}
        kept = {key: list(value) if isinstance(value, tuple) else value for key, value in flags.items()}
        job = plan(kind, Config(), None, {key: kept[key] for key in kept if not key.startswith(("when", "step_"))}).job
        if isinstance(job, BenchJob | CaptureJob):
            for key in ("server_args", "server_environment"):
                assert getattr(job, key) == tuple(SERVER[key]), run.command
            for key in ("server_python", "dtype", "draft_quantization", "tp", "dp"):
                assert getattr(job, key) == SERVER[key], run.command


def test_a_server_that_is_up_is_asked_again_but_for_one_of_our_own() -> None:
    up = {"attach_url": "http://127.0.0.1:30000", "api_key_env": "MY_KEY"}
    told = {run.step: run.command for run in every_step(Known(), asked(**up))}
    for step in ("capture", "serve_train", "more_prompts", "again"):
        assert told[step][told[step].index("--attach-url") + 1] == up["attach_url"]
        assert told[step][told[step].index("--api-key-env") + 1] == "MY_KEY"  # its name alone is known here
    for step in ("bench", "baseline", "repeats", "standalone"):
        assert "--attach-url" not in told[step]


def test_what_files_say_of_the_server_is_said_to_a_capture_and_read_by_a_benchmark() -> None:
    config = Config(path=Path("eagle3.toml"), jobs={"bench": {"context_length": 4096, "server_args": ["--x"]}})
    about = dataclasses.replace(asked(server_args=["--y"]), trained="embed,2,4")
    told = {run.step: run.command for run in every_step(Known(), about, config)}
    assert told["capture"][-4:] == ("--context-length", "4096", "--server-arg=--x", "--server-arg=--y")
    assert told["capture"][told["capture"].index("--trained") + 1] == "embed,2,4"
    assert "--server-arg=--x" not in told["again"]
    assert "--server-arg=--y" in told["again"]
    filed = dataclasses.replace(about, job_file=None)
    assert "--job" not in {run.step: run.command for run in every_step(Known(), filed)}["again"]


def test_held_out_rows_that_tell_nothing_are_not_named_again() -> None:
    """In their place stand capitals, and nothing is said of how the old ones are merged."""
    about = asked()
    about = dataclasses.replace(about, samples={**about.samples, "heldout": "/held", "heldout_merged": "/held.json"})
    fine = words(about)["standalone"]
    assert "/held" in fine
    assert "/held.json" in fine
    told = decide(Known(offline=scenes.offline_of(held_out(EXCHANGED))))
    assert told.place["heldout"] == "unfit"
    (run,) = [run for run in addressed(told, about, Config(), "gpu1").next_runs if "--heldout" in run.command]
    assert run.command[run.command.index("--heldout") + 1] == "HELDOUT_ROWS"
    assert not {"/held", "/held.json"} & {*run.command}


def test_flags_as_words() -> None:
    said = {"dtype": "float32", "ignore_eos": True, "tp": None, "server_args": ["--x", "a b"], "seed": -1}
    told = ("--dtype", "float32", "--ignore-eos", "--server-arg=--x", "--server-arg=a b", "--seed=-1")
    assert tuple(flag_words(said)) == told
    assert {*OF_SERVER} >= {*SERVER}
