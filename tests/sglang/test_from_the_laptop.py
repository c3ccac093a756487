"""`run bench` over SSH, from the command line to the report."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sglang.conftest import ARGUMENTS, ENVIRONMENT, Models
from tests.support.laptop import Laptop
from tests.support.sshd import SshServer, running_sshd


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with running_sshd(tmp_path / "gpu1") as running:
        yield running


@pytest.fixture
def laptop(tmp_path: Path, server: SshServer) -> Iterator[Laptop]:
    folder = tmp_path / "laptop"
    folder.mkdir()
    made = Laptop(folder)
    made.add_host("gpu1", server)
    yield made
    made.close()


@pytest.mark.slow
def test_the_storys_second_half_over_ssh(laptop: Laptop, models: Models, sglang_python: str) -> None:
    """1 step, 16 draft tokens asked for; the report says what the server made of it."""
    flags = {
        "model": models.target,
        "draft": models.mis_wired,
        "prompts": models.prompts,
        "num-steps": 1,
        "eagle-topk": 1,
        "num-draft-tokens": 16,
        "dtype": "float32",
        "context-length": 1024,
        "max-prompts": 4,
        "max-new-tokens": 64,
        "server-python": sglang_python,
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    words += [f"--server-arg={word}" for word in ARGUMENTS]
    words += [f"--server-env={name}={value}" for name, value in ENVIRONMENT.items()]
    started = laptop.start("run", "bench", "--host", "gpu1", "--json", *words)
    out, err = started.communicate(timeout=800)
    assert started.returncode == 0, err
    value = json.loads(out.splitlines()[-1])
    assert "asked for 16 draft tokens, the server runs with 2" in value["diagnosis"]["headline"]
    assert value["draft"]["ceiling"] == 2
    assert value["loads"][0]["acceptance"]["accept_length_pooled"]["value"] < 2
    updates = [json.loads(line) for line in out.splitlines()[:-1]]
    progress = [item for item in updates if item.get("update") == "event" and item.get("kind") == "progress"]
    told = [item["figures"] for item in progress if item["name"] == "requests"]
    assert told[-1]["output_tok_s"] > 0
    assert 1 < told[-1]["accept_length"] <= 2
    assert (told[-1]["point"], told[-1]["points"], told[-1]["left_s"]) == (1, 1, 0)
    weights = [item["message"] for item in updates if item.get("kind") == "phase" and item.get("name") == "weights"]
    assert weights == ["server 0 (spec), target", "server 0 (spec), drafter"]
    shown = laptop.run("runs", "show", "last")
    assert shown.code == 0
    assert "accept length" in shown.out
    assert "of 2" in shown.out
