"""A drafter and rows of SpecForge's kind in speculators' form, written by speculators under a Python that has it.

    PYTHON speculators_data.py --draft D --target T --rows R --wiring 1,2,3 --into FOLDER

Leaves `drafter` (its converter), `prepared` (tokens and masks) and `hidden_states` (one file a row: the wired states
and, last, the final one). speculators norms the final state itself; dividing by the norm's weight undoes that. Tried
with speculators 0.9.0.
"""

import argparse
import gzip
import json
import re
import shutil
from pathlib import Path

import torch
from datasets import Dataset
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from speculators.convert.eagle.eagle3_converter import Eagle3Converter


def main() -> None:
    """Write the three folders."""
    parser = argparse.ArgumentParser()
    for name in ("draft", "target", "rows", "into"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--wiring", required=True)
    arguments = parser.parse_args()
    wiring = [int(state) for state in arguments.wiring.split(",")]
    Eagle3Converter().convert(
        str(_with_embedding(arguments.draft, arguments.target, arguments.into / "before")),
        str(arguments.into / "drafter"),
        str(arguments.target),
        validate=False,
        # Only their number counts where states come from files.
        eagle_aux_hidden_state_layer_ids=list(range(1, len(wiring) + 1)),
    )
    norm = _target_tensor(arguments.target, "model.norm.weight").float()
    (arguments.into / "hidden_states").mkdir(parents=True)
    lines = []
    files = sorted(arguments.rows.rglob("data_*"), key=lambda file: int(re.findall(r"\d+", file.name)[0]))
    for number, file in enumerate(files):
        row = _row(file)
        final = row["hidden_state"].squeeze(0)  # (T, H)
        states = row["aux_hidden_state"].squeeze(0).unflatten(-1, (-1, final.shape[-1]))[:, wiring]  # (T, n, H)
        before_norm = (final.float() / norm).to(final.dtype)
        together = torch.cat([states, before_norm[:, None]], dim=1)
        save_file(
            {"hidden_states": together.contiguous(), "token_ids": row["input_ids"]},
            arguments.into / "hidden_states" / f"hs_{number}.safetensors",
        )
        tokens, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
        lines.append({"input_ids": tokens, "loss_mask": mask, "seq_len": len(tokens)})
    prepared = Dataset.from_list(lines)
    prepared.set_format("torch")
    prepared.save_to_disk(str(arguments.into / "prepared"))


def _with_embedding(draft: Path, target: Path, into: Path) -> Path:
    """The drafter with the target's embedding as its own.

    Without one the model starts from whatever was in memory: it looks for NaN where transformers 5 leaves none.
    """
    tensors = load_file(draft / "model.safetensors")
    embedding = _target_tensor(target, "model.embed_tokens.weight")
    into.mkdir(parents=True)
    save_file({"embed_tokens.weight": embedding, **tensors}, into / "model.safetensors")
    shutil.copy(draft / "config.json", into)
    return into


def _row(file: Path) -> dict[str, torch.Tensor]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        return torch.load(stream, weights_only=True)


def _target_tensor(folder: Path, name: str) -> torch.Tensor:
    index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
    with safe_open(folder / index["weight_map"][name], framework="pt") as file:
        return file.get_tensor(name)


main()
