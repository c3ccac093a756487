"""The README is true: its examples run, its tables match the code, its tree is the tree."""

import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

from orchestrator import config, errors, jobfile
from orchestrator.cli.main import COMMANDS, cli
from orchestrator.compare.margins import checked_margins
from orchestrator.demo.stage import DATA
from orchestrator.expectations import conditions_of
from orchestrator.sweep import file as sweep_file
from orchestrator.sweeping import planning
from tests.support import readme_tree
from tests.support.laptop import Laptop
from tests.support.made_sglang import write_sglang
from tests.support.sshd import running_sshd

UNSEEN = Path(__file__).parent / "golden" / "standalone" / "unseen"
GIVEN = {"bench": {"model": "/t"}, "standalone": {"draft": "/d", "rows": "/r"}}
"""What only the user knows."""
QUICK = '[jobs.standalone]\nsweep = "wiring"\ncapture_rows = 0\n'
"""The whole sweep is run by the demo's transcript."""
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_tree_is_the_tree() -> None:
    assert readme_tree.replaced(README) == README, "run `python -m tests.support.readme_tree`"


def test_every_toml_example_is_valid(tmp_path: Path) -> None:
    (sweep,) = (text for text in blocks("toml") if "[sweep]" in text)
    (tmp_path / "sweep.toml").write_text(sweep, encoding="utf-8")
    assert planning.wanted(sweep_file.read(tmp_path / "sweep.toml"), {}, config.Config(), "gpu1").expanded.points
    examples = [text for text in blocks("toml") if text != sweep]
    assert len(examples) == 4
    for text in examples:
        path = tmp_path / "eagle3.toml"
        path.write_text(text, encoding="utf-8")
        read = config.read(path)
        checked_margins(read.margins, str(path))
        for kind in read.jobs:
            conditions_of(jobfile.plan(kind, read, None, GIVEN[kind]).settings)
    assert set(tomllib.loads(examples[-1])["hosts"]["gpu2"]) <= {field.name for field in fields(config.HostConfig)}


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)}

    def tree(error: type[errors.Eagle3Error]) -> set[int]:
        return {error.exit_code}.union(*(tree(child) for child in error.__subclasses__()))

    assert tree(errors.Eagle3Error) - documented == set()


def test_every_command_is_documented_and_has_its_own_words() -> None:
    for name, (_, short) in COMMANDS.items():
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.help
        assert f"eagle3-remote {name}" in README or f"`{name} " in README or f"make {name}" in README, name
        assert short.endswith(".")


def console_lines() -> list[str]:
    return [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines() if line[:2] == "$ "]


def test_every_example_runs(tmp_path: Path) -> None:
    """In order, on one laptop, against a real sshd whose home holds what the examples name."""
    lines = console_lines()
    assert len(lines) >= 15
    with running_sshd(tmp_path / "gpu1") as server:
        shutil.copytree(DATA / "drafter_embed", server.home / "drafter")
        shutil.copytree(DATA / "target", server.home / "target")
        shutil.copytree(DATA / "rows", server.home / "rows")
        shutil.copytree(UNSEEN, server.home / "heldout")
        write_sglang(server.home / "sglang", "LlamaForCausalLM")
        (server.home / "venv").symlink_to(sys.prefix)
        (tmp_path / "laptop").mkdir()
        laptop = Laptop(tmp_path / "laptop")
        laptop.ssh.add_host("gpu1", server)
        laptop.toml.write_text(blocks("toml")[0] + QUICK, encoding="utf-8")
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "eagle3-remote"
            done = laptop.run(*arguments)
            assert done.code == 0, f"$ {line}\n{done.out}{done.err}"
            assert (done.out + done.err).strip(), f"$ {line} printed nothing"


def test_the_transcript_is_what_the_demo_prints(tmp_path: Path) -> None:
    """Word for word; the digits may differ in the last places between processors."""
    (transcript,) = re.findall(r"\$ eagle3-remote demo\n(.*?)```", README, flags=re.DOTALL)
    laptop = Laptop(tmp_path)
    done = laptop.run("demo")
    assert done.code == 0, done.err
    assert '"eagle_aux_hidden_state_layer_ids": [1, 3, 4]' in transcript  # a line to copy, not a list of candidates
    assert "runs show RUN" not in done.out  # the run is not kept

    def without_digits(text: str) -> str:
        return re.sub(r"[ ]+", " ", re.sub(r"\d+", "N", text)).strip()

    assert without_digits(done.out).startswith(without_digits(transcript))
