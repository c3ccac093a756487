"""speculators' own figures on the bundled rows; run by a Python that has speculators 0.9.0, from the project's root.

    PYTHON -m tests.support.make_speculators_golden FULL_DATA_SET

Its model and its metrics in float32 on the bundled rows, both drafters, both wirings, written to
`tests/golden/standalone/speculators.json`. The rows hold the final state after the target's norm; divided by the norm's
weight it is one that the norm turns into itself again, which is what speculators expects.
"""

import gzip
import io
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from speculators.losses import resolve_loss_config
from speculators.models.eagle3 import Eagle3SpeculatorConfig
from speculators.models.eagle3.core import Eagle3DraftModel

PROJECT = Path(__file__).parents[2]
DATA = PROJECT / "orchestrator" / "demo" / "data"
WIRINGS = {"embed": (0, 1, 2), "std": (1, 2, 3)}
STEPS = 4


def model(folder: Path, target: Path) -> Eagle3DraftModel:
    config = Eagle3SpeculatorConfig.from_pretrained(folder)
    config.transformer_layer_config._attn_implementation = "eager"
    config.speculators_config.verifier.name_or_path = str(target)
    drafter = Eagle3DraftModel.from_pretrained(folder, config=config)
    drafter.load_verifier_weights()
    return drafter.float().eval()


def figures(drafter: Eagle3DraftModel, slots: tuple[int, ...], norm: torch.Tensor) -> dict[str, list[float]]:
    """Sums over all rows of what speculators counts, step by step."""
    sums: dict[str, float] = {}
    paths = sorted((DATA / "rows" / "rows_0-2000").iterdir(), key=lambda path: int(path.name.split(".")[0][5:]))
    for path in paths:
        row = torch.load(io.BytesIO(gzip.decompress(path.read_bytes())), weights_only=True)
        states = row["aux_hidden_state"].float().unflatten(-1, (4, -1))[:, :, list(slots)].flatten(2)
        length = len(row["input_ids"])
        with torch.no_grad():
            _, _, told = drafter(
                hidden_states=states[:, :-1],
                input_ids=row["input_ids"][None, 1:],
                document_ids=torch.zeros(1, length - 1, dtype=torch.long),
                loss_mask=row["loss_mask"][None, 1:].bool(),
                position_ids=torch.arange(1, length)[None],
                verifier_last_hidden_states=(row["hidden_state"].float() / norm)[:, 1:],
                ttt_steps=STEPS,
                loss_config=resolve_loss_config("kl_div", "eager"),
            )
        for name, value in told.items():
            sums[name] = sums.get(name, 0.0) + float(value)
    return {
        name: [sums[f"{name}_{step}_sum"] / sums[f"{name}_{step}_total"] for step in range(STEPS)]
        for name in ("full_acc", "cond_acc")
    }


def main(full: Path) -> None:
    torch.set_num_threads(1)
    norm = load_file(next((DATA / "target").glob("*.safetensors")))["model.norm.weight"].float()
    told = {}
    for name in ("std", "embed"):
        drafter = model(full / f"drafter_{name}" / "speculators_0.9.0", full / "target")
        for wiring, slots in WIRINGS.items():
            told[f"drafter_{name} wiring_{wiring}"] = figures(drafter, slots, norm)
    path = PROJECT / "tests" / "golden" / "standalone" / "speculators.json"
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
