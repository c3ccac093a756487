"""A package `sglang` whose source says what a drafter is fed and how many tokens it drafts; it cannot be imported."""

from pathlib import Path

_SETTER = """
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
_READER = """
def read(draft):
    try:
        eagle_config = getattr(draft, "eagle_config", None)
        eagle_aux_hidden_state_layer_ids = eagle_config["eagle_aux_hidden_state_layer_ids"]
    except Exception:
        eagle_aux_hidden_state_layer_ids = None
"""
_ARGUMENTS = """
def _auto_choose_speculative_params(self, arch):
    return (3, 1, 4)


def check(args):
    if args.speculative_eagle_topk == 1:
        warn("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when topk == 1")
"""


_DRAFTER = """
class LlamaModel:
    def __init__(self, config):
        self.num_aux_hidden_states = getattr(config, "num_aux_hidden_states", 3)
"""


def write_sglang(folder: Path, target_class: str = "OurForCausalLM") -> None:
    """Version 9.9.9, with one family of models: `target_class` and what holds it, `OuterForConditionalGeneration`."""
    files = {
        "srt/models/ours.py": _SETTER.replace("OurForCausalLM", target_class),
        "srt/model_executor/model_runner.py": _READER,
        "srt/server_args.py": _ARGUMENTS,
        "srt/models/llama_eagle3.py": _DRAFTER,
        "__init__.py": "raise ImportError('this source cannot run')\n",
        "version.py": '__version__ = "9.9.9"\n',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
