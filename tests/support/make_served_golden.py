"""Make tests/sglang/data: the rest of the bundled target, and what the real server answered with it.

    python -m tests.support.make_served_golden FULL_DATA_SET

The bundled target has three tensors, as much as the drafter test reads; here are its layers (xz: 2.3 MB instead of 3.1)
and its tokenizer. `served.json.gz`: prompts, output ids, and for each configuration the accept histogram per request.
"""

import gzip
import json
import lzma
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save

from tests.support.make_bundle import TARGET_TENSORS

DATA = Path(__file__).parents[1] / "sglang" / "data"
FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
HISTOGRAM = "spec_correct_drafts_histogram"


def main(full: Path) -> None:
    """Write the folder anew."""
    target = DATA / "target"
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(full / "target" / name, target / name)
    tensors = load_file(full / "target" / "model.safetensors")
    layers = {name: tensor for name, tensor in tensors.items() if name not in TARGET_TENSORS}
    (target / "layers.safetensors.xz").write_bytes(lzma.compress(save(layers), preset=9 | lzma.PRESET_EXTREME))
    rows = [json.loads(line) for line in (full / "train" / "merged.jsonl").read_text().splitlines()]
    served = json.loads((full / "served_sglang.json").read_text())
    runs = {run["label"]: run["requests"] for run in served["runs"] if run["split"] == "train"}
    value = {
        "engine": "SGLang 0.5.23 on a CPU, float32, greedy, 64 tokens past any end, one request at a time",
        "prompts": [row["input_ids"][: row["n_prompt_tokens"]] for row in rows],
        "output_ids": [request["output_ids"] for request in runs["plain"]],
        "histograms": {
            label: [request[HISTOGRAM] for request in requests] for label, requests in runs.items() if label != "plain"
        },
    }
    with gzip.GzipFile(DATA / "served.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(value).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
