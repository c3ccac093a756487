"""Rows that lack the embedding output: computed from the target's own table it is what a capture would have held."""

import json
import shutil

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.schema import StandaloneJob
from remote_payload.standalone.rows.load import load_dict
from tests.standalone.running import DATA, GOLDEN, run_job
from tests.standalone.test_served_truth import TRUTH, served_histogram

WIDTH = 128
STORY = {"target": DATA / "target", "sweep": "wiring", "token_offsets": (1,)}


def without_embedding(rows, folder):
    """The same rows without their first state: what a server feeds by its usual layers."""
    folder.mkdir(parents=True)
    for number, path in enumerate(sorted(rows.rglob("data_*.ckpt*"))):
        value = load_dict(path)
        value["aux_hidden_state"] = value["aux_hidden_state"][..., WIDTH:].clone()
        torch.save(value, folder / f"data_{number}.ckpt")
    return folder


def fed_the_usual(folder):
    """The story's drafter, served other states than it was trained on."""
    shutil.copytree(DATA / "drafter_embed", folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [1, 3, 4]
    path.write_text(json.dumps(config))
    return folder


def test_it_is_what_was_captured(tmp_path):
    """Position by position the hits of rows that hold it, and the best reading with it."""
    pair = {**STORY, "draft": fed_the_usual(tmp_path / "draft"), "max_rows": 4, "wanted": (0, 2, 4)}
    rows = without_embedding(DATA / "rows", tmp_path / "rows")
    held = run_job(tmp_path / "a", **pair, rows=DATA / "rows", states=(0, 2, 4, 5))
    added = run_job(tmp_path / "b", **pair, rows=rows, states=(2, 4, 5), add_embedding=True)
    assert (held.result.rows.computed, added.result.rows.computed) == ((), (0,))
    assert added.result.rows.states == held.result.rows.states == (0, 2, 4, 5)
    assert added.full()[0] == held.full()[0] == "slots 0,1,2 offset +1"
    ours, theirs = ({key: one.hits[key] for key in one.hits if key[0] == added.full()[0]} for one in (added, held))
    assert ours == theirs


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_the_reading_with_it_walks_as_the_mended_pair_was_served(tmp_path, split):
    """By rows of states that the mis-wired pair was fed, the real server's histogram once its ids were mended."""
    rows = without_embedding(GOLDEN / "served" / split, tmp_path / "rows")
    pair = {**STORY, "draft": fed_the_usual(tmp_path / "draft"), "rows": rows, "steps": 3}
    out = run_job(tmp_path / "out", **pair, states=(2, 4, 5), add_embedding=True, wanted=(0, 2, 4))
    for row, request in enumerate(TRUTH[split]["embed_right"]):
        walked = served_histogram(out.hits["slots 0,1,2 offset +1", row], request["n_prompt"], 3)
        expected = request["spec_correct_drafts_histogram"]
        assert walked == expected + [0] * (len(walked) - len(expected))


def test_a_wanted_reading_is_measured_whatever_the_search_finds(tmp_path):
    pair = {**STORY, "draft": DATA / "drafter_embed", "rows": DATA / "rows", "max_rows": 1, "search_rows": 1}
    out = run_job(tmp_path / "out", **pair, states=(0, 2, 4, 5), wanted=(5, 2, 0))
    assert "slots 3,1,0 offset +1" in out.full()
    out = run_job(tmp_path / "other", **pair, states=(0, 2, 4, 5), wanted=(0, 2, 7))  # no row holds layer 7
    assert out.result.rows.states == (0, 2, 4, 5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scale_emb": 12}, "`scale_emb` of its config.json is 12"),
        ({"architectures": ["Gemma3ForCausalLM"]}, "a Gemma3ForCausalLM does not hand"),
    ],
)
def test_a_table_that_is_scaled_is_not_taken_for_it(tmp_path, changes, words):
    target = tmp_path / "target"
    shutil.copytree(DATA / "target", target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | changes))
    rows = without_embedding(DATA / "rows", tmp_path / "rows")
    pair = {**STORY, "target": target, "draft": fed_the_usual(tmp_path / "draft"), "rows": rows, "max_rows": 1}
    out = run_job(tmp_path / "out", **pair, states=(2, 4, 5), add_embedding=True, search_rows=1)
    assert (out.result.rows.computed, out.result.rows.states) == ((), (2, 4, 5))
    assert any("is not added to the rows" in text and words in text for text in out.result.warnings)


@pytest.mark.parametrize("states", [None, (0, 2, 4)])
def test_it_needs_labels_that_lack_it(states):
    with pytest.raises(ValueError, match="add_embedding"):
        StandaloneJob(draft="d", rows="r", states=states, add_embedding=True)


def test_a_token_that_the_table_has_no_row_for(tmp_path):
    rows = without_embedding(GOLDEN / "served" / "train", tmp_path / "rows")
    value = torch.load(rows / "data_0.ckpt", weights_only=True)
    value["input_ids"][3] = 5000
    torch.save(value, rows / "data_0.ckpt")
    pair = {**STORY, "draft": DATA / "drafter_embed", "rows": rows}
    with pytest.raises(JobFailure, match="can be used"):
        run_job(tmp_path / "out", **pair, states=(2, 4, 5), add_embedding=True)
