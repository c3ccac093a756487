"""`explain-wiring` over SSH: a SGLang's source on the host, read and never imported."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.support.laptop import Laptop
from tests.support.made_sglang import write_sglang
from tests.support.sshd import running_sshd


def write(folder: Path, **files: object) -> Path:
    for name, value in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path = path.with_name(path.name.replace("_json", ".json").replace("_py", ".py"))
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return folder


def test_a_drafter_and_a_source_on_the_host(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "gpu1") as server:
        write_sglang(server.home / "sglang")
        model = {
            "architectures": ["OuterForConditionalGeneration"],
            "text_config": {"num_hidden_layers": 61},
            "hidden_size": 64,
        }
        write(server.home / "target", config_json=model)
        ids = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}
        drafter = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64}
        write(server.home / "draft", config_json={**drafter, **ids})
        weights = server.home / "draft" / "model.safetensors"
        save_file({"fc.weight": torch.zeros(64, 3 * 64), "norm.weight": torch.zeros(64)}, weights)
        write(server.home / "fails", config_json={"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30]}})
        (tmp_path / "laptop").mkdir()
        laptop = Laptop(tmp_path / "laptop")
        laptop.ssh.add_host("gpu1", server)
        command = ("explain-wiring", "--host", "gpu1", "--model", "~/target", "--sglang-source", "~/sglang", "--draft")

        told = laptop.run(*command, "~/draft")
        assert told.code == 0, told.err
        assert told.out.startswith(
            "SGLang feeds the drafter [layer 3, layer 31, layer 59].\n"
            "And fc.weight takes 192 numbers, 3 states of 64: as many as are captured."
        )
        assert "SGLang 9.9.9" in told.out
        assert "OuterForConditionalGeneration (srt/models/ours.py) -> BaseForCausalLM (srt/models/ours.py)" in " ".join(
            told.out.split()
        )
        value = json.loads(laptop.run(*command, "~/draft", "--json").out)
        assert (value["states"], value["fails"], value["version"]) == ([3, 31, 59], False, "9.9.9")
        assert (value["fc"]["fits"], value["fc"]["takes"], value["rule"]["counts_states"]) == (True, 3, True)
        save_file({"model.fc.weight": torch.zeros(64, 2 * 64)}, weights)
        told = laptop.run(*command, "~/draft")
        assert "But fc.weight takes 128 numbers, 2 states of 64, but SGLang makes its fc for 192" in told.out

        told = laptop.run(*command, "~/fails")
        assert told.out.startswith("The server would not start. Before layer 0 there is no residual to add")
        told = laptop.run(*command, "~/nowhere")
        assert (told.code, told.out) == (30, "")
        assert "the drafter's config.json could not be read on host `gpu1`: ~/nowhere/config.json" in told.err
        write(server.home / "marked", config_json="\ufeff{}")
        told = laptop.run(*command, "~/marked")
        assert (told.code, "is no JSON object on host `gpu1`: ~/marked/config.json" in told.err) == (30, True)
        told = laptop.run(*command[:-3], "--sglang-source=~/target", "--draft=~/draft")
        assert (told.code, "expected a package `sglang` in ~/target" in told.err) == (14, True), told.err
        told = laptop.run(*command, "~/draft", "--pp", "2")
        assert told.out.startswith("Unknown. Of 2 pipeline stages only the last")
        for given in (
            ("--draft", ""),
            ("--draft=~/draft", "--sglang-source", " "),
            ("--draft=~/d", "--server-python="),
        ):
            told = laptop.run(*command[:-3], *given)
            assert (told.code, " is empty: expected a value, found: " in told.err) == (2, True), told.err
        with laptop.toml.open("a") as file:
            file.write('[jobs.bench]\nserver_python = "/srv/none/python"\n')
        told = laptop.run(*command[:-3], "--draft=~/draft")
        assert (told.code, "where /srv/none/python looks" in told.err) == (14, True), told.err
