"""What of a SGLang's source is kept: the loop with what names its number of layers, wherever the loop is."""

from remote_payload.served_capture.source import rule_from

CAUSAL = """
class TextModel:
    def forward(self, hidden_states, positions):
        aux_hidden_states = []
        unused = 3
        num_layers = len(self.layers)
        for i, layer in enumerate(self.layers):
            if i in self.layers_to_capture:
                aux_hidden_states.append(hidden_states)
            hidden_states = layer(positions, hidden_states)[0]
        if num_layers in self.layers_to_capture:
            aux_hidden_states.append(hidden_states)
        return self.norm(hidden_states), aux_hidden_states

class PlainForCausalLM:
    def __init__(self, config):
        self.model = TextModel(config)

    def set_eagle3_layers_to_capture(self, layer_ids=None):
        self.model.layers_to_capture = [val + 1 for val in layer_ids]
"""


def test_the_loop_is_kept_with_what_names_its_number_of_layers() -> None:
    rule = rule_from("0.5.15", "/sglang", {"srt/models/causal.py": CAUSAL}, "PlainForCausalLM")
    assert rule.forward is not None
    lines = rule.forward.text.splitlines()
    assert lines[:2] == ["num_layers = len(self.layers)", "for i, layer in enumerate(self.layers):"]
    assert "unused" not in rule.forward.text


BESIDE = """
from sglang.srt.models.causal import TextModel

class SeeingForConditionalGeneration:
    def __init__(self, config):
        self.language_model = TextModel(config.text_config)

    def set_eagle3_layers_to_capture(self, layer_ids=None):
        self.language_model.layers_to_capture = [val + 1 for val in layer_ids]
"""


def test_the_loop_of_the_part_that_is_told_is_found_in_another_file() -> None:
    files: dict[str, str | list[str]] = {"srt/models/causal.py": CAUSAL, "srt/models/seeing.py": BESIDE}
    rule = rule_from("0.5.15", "/sglang", files, "SeeingForConditionalGeneration")
    assert rule.forward is not None
    assert (rule.forward.owner, rule.forward.file) == ("TextModel", "srt/models/causal.py")
    lost = rule_from("0.5.15", "/sglang", {"srt/models/seeing.py": BESIDE}, "SeeingForConditionalGeneration")
    assert lost.forward is None


def test_a_drafter_s_model_of_the_same_name_is_not_the_target_s() -> None:
    """SGLang calls the model of a Llama drafter `LlamaModel` as well, and that file is read for its fc."""
    drafter = "class TextModel:\n    def forward(self, hidden_states):\n        return hidden_states\n"
    files: dict[str, str | list[str]] = {"srt/models/llama_eagle3.py": drafter, "srt/models/causal.py": CAUSAL}
    rule = rule_from("0.5.15", "/sglang", files, "PlainForCausalLM")
    assert rule.forward is not None
    assert (rule.forward.owner, rule.forward.file) == ("TextModel", "srt/models/causal.py")
