"""The bundled pair as a server needs it: the whole target, and drafters broken in one way each."""

import gzip
import json
import lzma
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load, load_file, save_file

from orchestrator.demo.stage import DATA as BUNDLED

HERE = Path(__file__).parents[1] / "sglang" / "data"


def served_truth() -> dict[str, Any]:
    """`prompts`, `output_ids` and `histograms` by configuration, as the real server answered."""
    value = json.loads(gzip.decompress((HERE / "served.json.gz").read_bytes()))
    assert isinstance(value, dict)
    return value


def write_prompts(path: Path, prompts: Sequence[Sequence[int]]) -> Path:
    """A JSONL of token ids, a prompt a line."""
    lines = (json.dumps({"input_ids": ids, "n_prompt_tokens": len(ids)}) for ids in prompts)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_target(folder: Path) -> Path:
    """The target with all its layers and its tokenizer."""
    folder.mkdir()
    for path in (HERE / "target").iterdir():
        if path.suffix != ".xz":
            shutil.copyfile(path, folder / path.name)
    tensors = load(lzma.decompress((HERE / "target" / "layers.safetensors.xz").read_bytes()))
    tensors |= load_file(BUNDLED / "target" / "model-00001-of-00001.safetensors")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_draft(folder: Path, name: str, ids: Sequence[int] | None = None, *, top_level: bool = False) -> Path:
    """A bundled drafter; `ids`: other aux ids in its config, at the `top_level`, where SGLang does not look."""
    shutil.copytree(BUNDLED / name, folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if top_level:
        config["eagle_aux_hidden_state_layer_ids"] = config.pop("eagle_config")["eagle_aux_hidden_state_layer_ids"]
    if ids is not None:
        config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = list(ids)
    path.write_text(json.dumps(config))
    return folder


def write_unloaded_draft(folder: Path) -> Path:
    """A drafter whose tensors have names that SGLang skips without a word: it serves with random weights."""
    shutil.copytree(BUNDLED / "drafter_std", folder)
    path = folder / "model.safetensors"
    save_file({f"draft_model.{name}": tensor for name, tensor in load_file(path).items()}, path)
    return folder


def write_wide_draft(folder: Path) -> Path:
    """A drafter that is whole and twice as wide as the target: trained for another one."""
    shutil.copytree(BUNDLED / "drafter_std", folder)
    config = json.loads((folder / "config.json").read_text())
    hidden = config["hidden_size"]
    for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"):
        config[name] *= 2
    (folder / "config.json").write_text(json.dumps(config))
    tensors = load_file(folder / "model.safetensors")
    for name in tensors.keys() - {"d2t", "t2d"}:
        for axis, size in enumerate(tensors[name].shape):
            if size in (hidden // 2, hidden, 2 * hidden, 3 * hidden):
                tensors[name] = tensors[name].repeat_interleave(2, dim=axis).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_hookless_target(folder: Path, tokenizer: Path) -> Path:
    """A target of GPT-2's class, which hands no states to a drafter; without weights: SGLang's `dummy` makes some."""
    folder.mkdir()
    for path in tokenizer.glob("tokenizer*"):
        shutil.copyfile(path, folder / path.name)
    sizes = {"n_embd": 128, "n_head": 4, "n_layer": 4, "n_positions": 1024, "n_inner": 384, "vocab_size": 1280}
    names = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "dtype": "float32"}
    config = {**names, **sizes, "bos_token_id": 0, "eos_token_id": 5}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
