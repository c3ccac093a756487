"""`explain-wiring` over SSH: a SGLang's source on the host, read and never imported."""

import json
from pathlib import Path

from tests.support.laptop import Laptop
from tests.support.sshd import running_sshd

SETTER = """
import nothing_that_exists


class Model:
    def forward(self, hidden_states, residual=None):
        aux_hidden_states = []
        for i in range(self.start_layer, self.end_layer):
            if i in self.layers_to_capture:
                aux_hidden_states.append(hidden_states + residual)
        return hidden_states, aux_hidden_states


class BaseForCausalLM:
    def set_eagle3_layers_to_capture(self, layer_ids=None):
        if not self.pp_group.is_last_rank:
            return
        if layer_ids is None:
            n = self.config.num_hidden_layers
            self.model.layers_to_capture = [2, n // 2, n - 3]
        else:
            self.model.layers_to_capture = [val + 1 for val in layer_ids]


class OurForCausalLM(BaseForCausalLM):
    pass


class OuterForConditionalGeneration:
    def __init__(self, config):
        self.language_model = OurForCausalLM(config)

    def set_eagle3_layers_to_capture(self, layer_ids=None):
        self.language_model.set_eagle3_layers_to_capture(layer_ids)
"""
READER = """
def read(draft):
    try:
        eagle_config = getattr(draft, "eagle_config", None)
        ids = eagle_config["eagle_aux_hidden_state_layer_ids"]
        eagle_aux_hidden_state_layer_ids = ids
    except Exception:
        eagle_aux_hidden_state_layer_ids = None
"""


def write(folder: Path, **files: object) -> Path:
    for name, value in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path = path.with_name(path.name.replace("_json", ".json").replace("_py", ".py"))
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return folder


def test_a_drafter_and_a_source_on_the_host(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "gpu1") as server:
        reader = READER.replace("ids = eagle_config", "eagle_aux_hidden_state_layer_ids = eagle_config")
        reader = reader.replace("        eagle_aux_hidden_state_layer_ids = ids\n", "")
        write(server.home / "sglang", srt__models__ours_py=SETTER, srt__model_executor__model_runner_py=reader,
              version_py='__version__ = "9.9.9"\n')  # fmt: skip
        model = {"architectures": ["OuterForConditionalGeneration"], "text_config": {"num_hidden_layers": 61}}
        write(server.home / "target", config_json=model)
        ids = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]}}
        write(server.home / "draft", config_json=ids)
        write(server.home / "fails", config_json={"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30]}})
        (tmp_path / "laptop").mkdir()
        laptop = Laptop(tmp_path / "laptop")
        laptop.ssh.add_host("gpu1", server)
        command = ("explain-wiring", "--host", "gpu1", "--model", "~/target", "--sglang-source", "~/sglang", "--draft")

        told = laptop.run(*command, "~/draft")
        assert told.code == 0, told.err
        assert told.out.startswith("SGLang feeds the drafter [layer 3, layer 31, layer 59].")
        assert "SGLang 9.9.9" in told.out
        assert "OuterForConditionalGeneration (srt/models/ours.py) -> BaseForCausalLM (srt/models/ours.py)" in " ".join(
            told.out.split()
        )
        value = json.loads(laptop.run(*command, "~/draft", "--json").out)
        assert (value["states"], value["fails"], value["version"]) == ([3, 31, 59], False, "9.9.9")

        told = laptop.run(*command, "~/fails")
        assert told.out.startswith("The server would not start. Before layer 0 there is no residual to add")
        told = laptop.run(*command, "~/nowhere")
        assert told.out.startswith("Unknown. The drafter's config.json could not be read.")
        told = laptop.run(*command, "~/draft", "--pp", "2")
        assert told.out.startswith("Unknown. Of 2 pipeline stages only the last")
