"""A broken capture must show against a fresh forward, a sound one must not; what cannot run says why."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from remote_payload.standalone.capture.check import LONGEST, check_capture
from tests.standalone.capture.made_target import HIDDEN, LABELS, LAYERS, VOCAB, make_target

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_target(tmp_path_factory.mktemp("target"))


def check(made, rows, labels=LABELS, folder=None, **settings):
    with torch.inference_mode():  # as the job runs it
        return check_capture(folder or made.folder, rows, labels, made.answers, device=CPU, **settings)


def test_a_sound_capture_is_its_labels(made):
    found = check(made, [made.row(0), made.row(1)])
    assert found.ran
    assert found.why_not is None
    assert (found.rows, found.tokens, found.answers, found.same_answers) == (2, 80, 80, 80)
    assert tuple(slot.nearest for slot in found.slots) == LABELS
    assert [slot.slot for slot in found.slots] == [0, 1, 2]
    for slot in (*found.slots, found.final):
        assert slot.error < 1e-5
        assert slot.labelled_error == slot.error
        assert slot.next_error > 0.1
    assert (found.final.slot, found.final.nearest) == (None, LAYERS)
    assert found.transformers.startswith("5.")


def test_bfloat16_rows_are_compared_with_a_bfloat16_target(made):
    row = made.row(0)
    rounded = replace(row, states=row.states.bfloat16(), final=row.final.bfloat16())
    found = check(made, [rounded])
    assert tuple(slot.nearest for slot in found.slots) == LABELS
    assert all(slot.error < 0.05 < slot.next_error for slot in found.slots)


def test_a_final_state_before_the_norm_is_the_last_layer_as_well(made):
    row = made.row(0)
    unnormed = made.last_layer(row.tokens)
    assert ((unnormed - row.final).norm() / row.final.norm()) > 0.1
    found = check(made, [replace(row, final=unnormed)])
    assert found.final.nearest == LAYERS
    assert found.final.error < 1e-5


def test_states_of_another_layer_are_told_by_that_layer(made):
    found = check(made, [made.row(0, layers=(0, 3, 4))])
    assert tuple(slot.nearest for slot in found.slots) == (0, 3, 4)
    assert found.slots[0].labelled_error < 1e-5
    assert all(slot.labelled_error > 0.1 for slot in found.slots[1:])


def test_a_scaled_state_is_told_by_its_factor(made):
    row = made.row(0)
    found = check(made, [replace(row, states=0.5 * row.states)])
    for slot, label in zip(found.slots, LABELS, strict=True):
        assert slot.error > 0.3
        assert len(slot.changes) == LAYERS + 1
        assert slot.changes[label].factor == pytest.approx(0.5, rel=1e-4)
        assert slot.changes[label].scaled_error < 1e-4
        assert min(one.scaled_error for at, one in enumerate(slot.changes) if at != label) > 0.1


def test_unlabelled_slots_are_named_all_the_same(made):
    found = check(made, [made.row(0)], labels=None)
    assert tuple(slot.nearest for slot in found.slots) == LABELS
    assert [slot.labelled_error for slot in found.slots] == [None] * 3


def test_a_teacher_state_of_the_layer_before_shows(made):
    row = made.row(0)
    found = check(made, [replace(row, final=made.states(row.tokens)[LAYERS - 1])])
    assert found.final.nearest == LAYERS - 1
    assert found.final.labelled_error > 0.1
    assert found.same_answers < 0.9 * found.answers


def test_states_of_the_token_before_fit_no_layer(made):
    row = made.row(0)
    found = check(made, [replace(row, states=row.states.roll(1, dims=0))])
    assert all(slot.error > 0.3 for slot in found.slots)
    assert found.final.error < 1e-5


def test_a_capture_with_broken_rotary_frequencies_shows_behind_the_embedding(made, tmp_path):
    """The capture that scored 62 % offline and 1.79 served: everything about it looks healthy but this."""
    broken = make_target(tmp_path)
    broken.model.model.rotary_emb.inv_freq.mul_(7.0)
    found = check(made, [broken.row(0)])
    assert found.slots[0].error < 1e-5
    assert all(slot.error > 0.05 for slot in (*found.slots[1:], found.final))
    assert found.same_answers < found.answers


def test_stored_choices_are_compared_where_there_is_no_final_state(made):
    row = made.row(0)
    answers = made.answers(row.final)
    answers[:4] = -1  # unknown
    answers[5] = (answers[5] + 1) % VOCAB
    found = check(made, [replace(row, final=None, answers=answers)])
    assert found.final is None
    assert (found.answers, found.same_answers) == (36, 35)


def test_long_rows_are_compared_at_their_start(made):
    found = check(made, [made.row(0, length=LONGEST + 40)])
    assert found.tokens == LONGEST
    assert found.slots[2].error < 1e-4


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"hidden_size": 48}, f"states are 48 wide, the rows': {HIDDEN}"),
        ({"vocab_size": 16}, "16 tokens, the rows use token: "),
        ({"num_hidden_layers": 2}, "2 layers, the rows' labels name state: 3"),
    ],
)
def test_another_target_is_refused_in_numbers(made, tmp_path, config, said):
    other = make_target(tmp_path, **config)
    found = check(made, [made.row(0)], folder=other.folder)
    assert not found.ran
    assert said in found.why_not


def test_missing_weights_are_never_filled_with_random_ones(made, tmp_path):
    make_target(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    few = {name: weights[name] for name in ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")}
    save_file(few, tmp_path / "model.safetensors")
    found = check(made, [made.row(0)], folder=tmp_path)
    assert found.why_not.endswith(
        "no layer of the model, only: lm_head.weight, model.embed_tokens.weight, model.norm.weight"
    )
    assert found.seconds < 1  # said before transformers is imported
    few["model.layers.0.input_layernorm.weight"] = weights["model.layers.0.input_layernorm.weight"]
    save_file(few, tmp_path / "model.safetensors")
    found = check(made, [made.row(0)], folder=tmp_path)
    total = sum(parameter.numel() for parameter in made.model.parameters())
    assert (
        found.why_not
        == f"the target's folder holds {sum(t.numel() for t in few.values())} of the model's {total} numbers"
    )
    weights.pop("model.layers.1.input_layernorm.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = check(made, [made.row(0)], folder=tmp_path)
    assert found.why_not.endswith("lacks 1 tensor(s) of the model, first: model.layers.1.input_layernorm.weight")


def test_a_target_that_does_not_fit_says_what_it_needs(made):
    found = check(made, [made.row(0)], limit_bytes=1000)
    assert not found.ran
    assert found.why_not.startswith("the target needs ")
    assert " GiB for its weights, there are: " in found.why_not


def test_no_code_of_the_folder_is_run(made, tmp_path):
    make_target(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.OwnModel"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    found = check(made, [made.row(0)], folder=tmp_path)
    assert "cannot run the target" in found.why_not
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["missing", "pickled", "damaged", "quantised"])
def test_a_folder_that_cannot_be_run_is_a_reason_not_a_crash(made, tmp_path, name):
    folder = tmp_path / name
    if name != "missing":
        make_target(folder)
    weights = folder / "model.safetensors"
    if name == "pickled":
        torch.save(load_file(weights), folder / "pytorch_model.bin")
        weights.unlink()
    elif name == "damaged":
        weights.write_bytes(b"\xff" * 100)
    elif name == "quantised":
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"] = {"quant_method": "fp8"}
        (folder / "config.json").write_text(json.dumps(config))
    found = check(made, [made.row(0)], folder=folder)
    assert not found.ran
    assert found.why_not


def test_no_rows_no_check(made):
    assert check(made, []).why_not == "there is no row to compare"


def test_a_host_with_an_unusable_transformers_says_so(made, tmp_path):
    """A real process that finds a broken installation first, as a host with a wrong torch has one."""
    package = tmp_path / "transformers"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('needs torch >= 99')\n")
    script = """
import sys, torch
from pathlib import Path
from remote_payload.standalone.capture.check import check_capture
from remote_payload.standalone.rows.row import Row
row = Row(name="r", tokens=torch.arange(9), loss_mask=torch.ones(9).bool(), states=torch.zeros(9, 1, 32),
          final=torch.zeros(9, 32), prompt_tokens=1, source=None)
print(check_capture(Path(sys.argv[1]), [row], None, lambda final: final.argmax(-1), device=torch.device("cpu")).why_not)
"""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script, str(made.folder)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "transformers cannot be imported here: needs torch >= 99 (ImportError)"
