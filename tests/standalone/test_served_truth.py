"""The product's standard of truth: walked as a server walks, the hits give the real SGLang's histograms exactly."""

import json

import pytest

from tests.standalone.running import DATA, GOLDEN, run_job

TRUTH = json.loads((GOLDEN / "served.json").read_text(encoding="utf-8"))


def served_histogram(hits: dict[int, int], prompt: int, steps: int, tokens: int = 64) -> list[int]:
    """Draft, accept the leading hits, jump; the first token came from the prefill."""
    histogram, position, out = [0] * (steps + 1), prompt - 1, 1
    while out < tokens:
        accepted = next((s for s in range(steps) if not hits[position] >> s & 1), steps)
        histogram[accepted] += 1
        position += accepted + 1
        out += accepted + 1
    return histogram


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize(
    ("label", "drafter", "slots", "steps"),
    [
        ("std_right", "drafter_std", "1,2,3", 3),
        ("embed_right", "drafter_embed", "0,1,2", 3),
        ("embed_story_wrong", "drafter_embed", "1,2,3", 3),
        ("embed_override_1_16", "drafter_embed", "1,2,3", 1),
    ],
)
def test_walk_is_the_servers_histogram(tmp_path, split, label, drafter, slots, steps):
    rows = GOLDEN / "served" / split
    # The declared wiring is always measured in full, so the config declares the wanted one.
    draft = DATA / drafter
    if label.startswith("embed_") and slots == "1,2,3":
        draft = miswired(tmp_path)
    out = run_job(tmp_path / "out", draft=draft, target=DATA / "target", rows=rows, states=(0, 2, 4, 5), steps=steps)
    for row, request in enumerate(TRUTH[split][label]):
        expected = request["spec_correct_drafts_histogram"]
        walked = served_histogram(out.hits[f"slots {slots} offset +1", row], request["n_prompt"], steps)
        assert walked == expected + [0] * (len(walked) - len(expected))
        assert out.rows[row].prompt_tokens == request["n_prompt"]


def miswired(folder):
    draft = folder / "miswired"
    draft.mkdir()
    config = json.loads((DATA / "drafter_embed" / "config.json").read_text(encoding="utf-8"))
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [1, 3, 4]
    (draft / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (draft / "model.safetensors").write_bytes((DATA / "drafter_embed" / "model.safetensors").read_bytes())
    return draft
