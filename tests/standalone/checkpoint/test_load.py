"""Bad drafters and targets: each its own message, everything wrong told at once."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.load import load_checkpoint
from tests.standalone.checkpoint.writing import Scene
from tests.standalone.running import run_job
from tests.support.tiny import Tiny, drafter_config, drafter_tensors, target_tensors, write_drafter, write_model


def failure_of(made, **paths):
    with pytest.raises(JobFailure) as caught:
        load_checkpoint(paths.get("draft", made["draft"]), paths.get("target", made["target"]))
    failure = caught.value.failure
    assert failure.kind == "checkpoint"
    return failure


def rewrite(folder, change, file="model.safetensors"):
    tensors = load_file(folder / file)
    change(tensors)
    save_file(tensors, folder / file)


def reconfigure(folder, **changes):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_missing_folder_config_and_weights(made, tmp_path):
    assert "does not exist" in failure_of(made, draft=tmp_path / "nowhere").message
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no config.json" in failure_of(made, draft=empty).message
    (empty / "config.json").write_text(json.dumps(drafter_config(Tiny())), encoding="utf-8")
    assert "no *.safetensors" in failure_of(made, draft=empty).message
    (empty / "pytorch_model.bin").write_bytes(b"x")
    failure = failure_of(made, draft=empty)
    assert "not a whole weight file of torch" in failure.message


@pytest.mark.parametrize("text", ["{", "[1]", '{"hidden_size": "big"}', '{"hidden_size": 0}'])
def test_bad_config(made, text):
    (made["draft"] / "config.json").write_text(text, encoding="utf-8")
    assert "config.json" in failure_of(made).message


@pytest.mark.parametrize(
    "change",
    [
        {"rms_norm_eps": "small"},
        {"num_key_value_heads": 3},
        {"head_dim": 2.5},
        {"vocab_size": None},
        {"rope_scaling": [1]},
        {"rope_scaling": {"type": "linear", "factor": "4"}},
        {"rope_theta": -1},
        {"draft_vocab_size": True},
        {"rms_norm_eps": float("inf")},
        {"rms_norm_eps": float("nan")},
        {"rms_norm_eps": 1e300},
        {"rms_norm_eps": 10**400},
        {"hidden_size": 10**400},
        {"max_position_embeddings": 10**400},
        {"attention_bias": "no"},
        {"head_dim": 7},
        {"rope_theta": 1},
        {"rope_scaling": {"rope_type": "yarn", "factor": float("inf")}},
        {"rope_scaling": {"rope_type": ["yarn"]}},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8, "high_freq_factor": 1, "low_freq_factor": 1}},
    ],
)
def test_bad_values_in_config(made, change):
    reconfigure(made["draft"], **change)
    message = failure_of(made).message
    value = next(iter(change.values()))
    last = list(value.values())[-1] if isinstance(value, dict) else value
    assert message.endswith(
        tuple(f"found: {repr(item)[:80]}{'...' if item == 10**400 else ''}" for item in (value, last, 4))
    )


@pytest.mark.parametrize("keep", [0, 7, 100, -10])
def test_truncated_file_is_named(made, keep):
    path = made["draft"] / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    failure = failure_of(made)
    assert str(path) in failure.message
    assert "truncated" in failure.hint


def test_everything_wrong_is_told_at_once(made):
    def change(tensors):
        del tensors["norm.weight"]  # engines leave it at ones: told, but no reason to refuse
        del tensors["midlayer.mlp.up_proj.weight"]
        tensors["midlayer.self_attn.q_proj.weight"] = torch.zeros(3, 3)
        tensors["lm_head.weight"][2, 3] = float("nan")
        tensors["draft_model.fc.weight"] = torch.zeros(2)

    rewrite(made["draft"], change)
    failure = failure_of(made)
    assert "1 missing, 1 misshapen, 1 not finite, 1 unexpected" in failure.message
    assert [line.split(": ")[:2] for line in failure.details] == [
        ["layers.0.mlp.up_proj.weight", "missing"],
        ["draft_model.fc.weight", "unexpected"],
        ["layers.0.self_attn.q_proj.weight", "misshapen"],
        ["lm_head.weight", "not finite"],
    ]


def test_a_missing_fc_is_asked_for_as_wide_as_the_states_that_the_config_names(made):
    rewrite(made["draft"], lambda tensors: tensors.pop("fc.weight"))
    for ids, states in (([1, 3, 4], 3), ([-1, 1, 3, 4], 4), (None, 3)):
        reconfigure(made["draft"], eagle_config={} if ids is None else {"eagle_aux_hidden_state_layer_ids": ids})
        assert f"fc.weight: missing: expected shape [16, {16 * states}]" in failure_of(made).message


def test_unexpected_tensor_alone_is_a_warning(made):
    rewrite(made["draft"], lambda tensors: tensors.update(extra=torch.zeros(2)))
    (problem,) = load_checkpoint(made["draft"], made["target"]).facts.problems
    assert (problem.problem, problem.name) == ("unexpected", "extra")


@pytest.mark.parametrize(
    "change",
    [
        {"sliding_window": None},
        {"sliding_window": 512, "use_sliding_window": False},
        {"sliding_window": 512, "layer_types": ["full_attention"]},
        {"partial_rotary_factor": 1.0},
        {"num_hidden_layers": None},
        {"rope_scaling": {"type": "default", "mrope_section": [1, 1, 2]}},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": True, "mscale": None}},
    ],
)
def test_values_that_change_nothing_are_not_refused(made, change):
    reconfigure(made["draft"], **change)
    assert load_checkpoint(made["draft"], made["target"]).warnings == ()


@pytest.mark.parametrize("where", ["draft", "target"])
@pytest.mark.parametrize("file", ["config.json", "model.safetensors.index.json"])
def test_files_nested_too_deeply(made, where, file):
    (made[where] / file).write_text('{"weight_map": ' + "[" * 100_000, encoding="utf-8")
    assert str(made[where] / file) in failure_of(made).message


@pytest.mark.parametrize("name", ["x" * 5000, "\ud800", "a\0b", "..", 7])
def test_index_with_names_that_no_file_can_have(made, name):
    index = made["draft"] / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"fc.weight": name}}), encoding="utf-8")
    message = failure_of(made).message
    assert str(index.parent) in message
    assert len(message) < 1000


def test_folder_names_that_are_too_long(made):
    assert "does not exist" in failure_of(made, draft=made["draft"] / ("x" * 5000)).message


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.int8])
def test_quantised_weights_are_named(made, dtype):
    rewrite(made["draft"], lambda tensors: tensors.update({"fc.weight": tensors["fc.weight"].to(dtype)}))
    (line,) = failure_of(made).details
    assert line.startswith("fc.weight: misshapen: expected plain floats, found: ")


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int32])
def test_quantised_norm_of_the_target_is_named(made, dtype):
    name = "model.norm.weight"
    rewrite(made["target"], lambda tensors: tensors.update({name: tensors[name].to(dtype)}))
    assert f"`{name}` must hold floats" in failure_of(made).message


@pytest.mark.parametrize("norm", [None, torch.ones(8)])
def test_a_target_without_its_final_norm_is_told(made, norm):
    name = "model.norm.weight"
    rewrite(made["target"], lambda tensors: tensors.pop(name) if norm is None else tensors.update({name: norm}))
    checkpoint = load_checkpoint(made["draft"], made["target"])
    assert checkpoint.target_norm is None
    assert [warning.startswith("the target's final norm was not found") for warning in checkpoint.warnings] == [True]


@pytest.mark.parametrize("eps", [float("inf"), -1.0, "small"])
def test_eps_of_the_target(made, eps):
    reconfigure(made["target"], rms_norm_eps=eps)
    assert failure_of(made).message.endswith(f"found: {eps!r}")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d2t: d2t * float("nan"), "24 of 24 are NaN or infinite"),
        (lambda d2t: d2t + 0.5, "expected whole numbers, found: fractions"),
        (lambda d2t: d2t.to(torch.complex64), "expected whole numbers, found: C64"),
        (lambda d2t: torch.full_like(d2t, 100), "24 different target tokens of 0..39; as an offset it leads to 0"),
    ],
)
def test_draft_vocabularies_that_mean_nothing(made, change, says):
    rewrite(made["draft"], lambda tensors: tensors.update(d2t=change(tensors["d2t"])))
    assert says in failure_of(made).message


def test_whole_floats_are_offsets_too(made):
    rewrite(made["draft"], lambda tensors: tensors.update(d2t=tensors["d2t"].float()))
    assert load_checkpoint(made["draft"], made["target"]).target_ids.tolist() == list(range(16, 40))


@pytest.mark.parametrize("change", [lambda t2d: t2d.roll(1), lambda t2d: t2d.to(torch.float32)])
def test_a_t2d_that_contradicts_d2t_is_a_warning(made, change):
    rewrite(made["draft"], lambda tensors: tensors.update(t2d=change(tensors["t2d"])))
    (warning,) = load_checkpoint(made["draft"], made["target"]).warnings
    assert warning.startswith("t2d names other target tokens than d2t leads to")


@pytest.mark.parametrize(
    ("which", "name", "factor", "says"),
    [
        ("draft", "fc.weight", 1e38, "drafter's outputs overflow"),
        ("draft", "fc.weight", 1e25, "drafter's outputs overflow"),  # finite, but its square is not
        ("draft", "midlayer.self_attn.q_proj.weight", 1e38, "drafter's outputs overflow"),
        ("draft", "lm_head.weight", 1e38, "the drafter's logits are NaN or infinite"),
        ("target", "lm_head.weight", 1e38, "the target's logits are NaN or infinite"),
    ],
)
def test_weights_with_which_the_numbers_overflow(made, tmp_path, which, name, factor, says):
    rewrite(made[which], lambda tensors: tensors.update({name: tensors[name].clamp(-1, 1) * factor}))
    with pytest.raises(JobFailure, match=says) as caught:
        run_job(tmp_path / "out", **made)
    assert caught.value.failure.kind == "checkpoint"


def test_fc_of_odd_width(made):
    rewrite(made["draft"], lambda tensors: tensors.update({"fc.weight": torch.zeros(16, 47)}))
    failure = failure_of(made)
    assert "[16, n * 16] for n captured states" in failure.message
    assert "[16, 47]" in failure.message


def test_two_names_for_one_tensor(made):
    rewrite(made["draft"], lambda tensors: tensors.update({"model.norm.weight": tensors["norm.weight"].clone()}))
    assert "two tensors" in failure_of(made).message


@pytest.mark.parametrize(
    ("scaling", "lacks"),
    [
        ({"type": "yarn"}, "`yarn` needs `factor` in"),
        ({"rope_type": "linear"}, "`linear` needs `factor` in"),
        ({"rope_type": "llama3", "factor": 8.0}, "`llama3` needs `low_freq_factor`, `high_freq_factor` in"),
    ],
)
def test_a_rope_without_its_numbers(made, scaling, lacks):
    reconfigure(made["draft"], rope_scaling=scaling)
    assert lacks in failure_of(made).message


def test_a_bad_value_is_told_with_its_file(made):
    reconfigure(made["draft"], rms_norm_eps="small")
    assert failure_of(made).hint == f"correct it in: {made['draft'] / 'config.json'}"
    reconfigure(made["draft"], rms_norm_eps=1e-6, hidden_act="gelu")
    assert failure_of(made).details == (f"in: {made['draft'] / 'config.json'}",)


@pytest.mark.parametrize("which", ["draft", "target"])
def test_what_stands_in_a_files_place(made, tmp_path, which):
    weights, config = (made[which] / name for name in ("model.safetensors", "config.json"))
    weights.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 7\n")
    assert "is a pointer of Git LFS" in failure_of(made).message
    assert "git lfs pull" in failure_of(made).hint
    weights.unlink()
    weights.symlink_to(tmp_path / "gone")
    assert f"a weight file must be a file, it is a link that leads nowhere: {weights}" == failure_of(made).message
    weights.unlink()
    os.mkfifo(weights)
    assert "it is a pipe" in failure_of(made).message
    config.unlink()
    os.mkfifo(config)
    assert f"the {which}'s config.json must be a file, it is a pipe" in failure_of(made).message
    assert f"the {which}'s folder is no folder on this machine" in failure_of(made, **{which: weights}).message


def test_names_that_a_terminal_would_obey(made):
    rewrite(made["draft"], lambda tensors: tensors.update({"\n\x1b[31mred": torch.ones(1), "a" * 5000: torch.ones(1)}))
    told = [problem.found for problem in load_checkpoint(made["draft"], made["target"]).facts.problems]
    assert set(told) == {f"`'{'a' * 79}...` [1]", r"`'\n\x1b[31mred'` [1]"}


@pytest.mark.parametrize(
    ("text", "says"),
    [("[]", "no such key"), ('{"weight_map": [1]}', "list"), ("{", "cannot be read")],
)
def test_an_index_of_another_form(made, text, says):
    (made["draft"] / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    message = failure_of(made).message
    assert message.startswith("the draft's index")
    assert says in message
    assert "Error(" not in message


@pytest.mark.parametrize(
    ("whole", "rows", "part"),
    [("self_attn.qkv_proj", 64, "self_attn.q_proj"), ("mlp.gate_up_proj", 48, "mlp.gate_proj")],
)
def test_a_fused_tensor_beside_its_parts(made, whole, rows, part):
    fused = torch.zeros(rows, load_file(made["draft"] / "model.safetensors")[f"midlayer.{part}.weight"].shape[1])
    rewrite(made["draft"], lambda tensors: tensors.update({f"midlayer.{whole}.weight": fused}))
    message = failure_of(made).message
    assert message.startswith(f"two tensors of the drafter mean `layers.0.{part}.weight`: ")
    assert f"midlayer.{whole}.weight" in message


@pytest.mark.parametrize("prefix", ["midlayer.", "layers.0.", "model.layers.0."])
def test_dialects_of_names_load_alike(made, tmp_path, prefix):
    renamed = write_model(tmp_path / "renamed", drafter_config(Tiny()), drafter_tensors(Tiny(), prefix))
    ours, theirs = (load_checkpoint(folder, made["target"]) for folder in (renamed, made["draft"]))
    assert ours.weights.keys() == theirs.weights.keys()
    assert all(torch.equal(ours.weights[name], theirs.weights[name]) for name in ours.weights)


def test_shards_load_like_one_file(made, tmp_path):
    tensors = sorted(drafter_tensors(Tiny()).items())
    sharded = write_model(tmp_path / "sharded", drafter_config(Tiny()), dict(tensors[:5]))
    (sharded / "model.safetensors").rename(sharded / "a.safetensors")
    save_file(dict(tensors[5:]), sharded / "b.safetensors")
    weight_map = {name: "a.safetensors" if i < 5 else "b.safetensors" for i, (name, _) in enumerate(tensors)}
    index = sharded / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    ours, theirs = (load_checkpoint(folder, made["target"]) for folder in (sharded, made["draft"]))
    assert all(torch.equal(ours.weights[name], theirs.weights[name]) for name in theirs.weights)

    (sharded / "b.safetensors").unlink()
    failure = failure_of(made, draft=sharded)
    assert failure.details == ("b.safetensors",)
    index.write_text(json.dumps({"weight_map": {"fc.weight": "../draft/model.safetensors"}}), encoding="utf-8")
    assert "its own folder" in failure_of(made, draft=sharded).message


def test_target_lacks_what_the_test_needs(made):
    assert "give its folder with --target" in failure_of(made, target=None).message
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        rewrite(made["target"], lambda tensors, name=name: tensors.pop(name))
        failure = failure_of(made)
        assert f"`{name.removeprefix('model.')}`" in failure.message
        write_model(made["target"], {"architectures": ["LlamaForCausalLM"]}, target_tensors(Tiny()))


def test_target_names_may_be_nested(made):
    nested = {f"language_model.{name}": tensor for name, tensor in target_tensors(Tiny()).items()}
    ours = load_checkpoint(made["draft"], made["target"])
    write_model(made["target"], {"text_config": {"num_hidden_layers": 5}, "architectures": ["X"]}, nested)
    theirs = load_checkpoint(made["draft"], made["target"])
    assert theirs.target.layers == 5
    assert torch.equal(ours.teacher_head, theirs.teacher_head)
    assert torch.equal(ours.embeddings["target"], theirs.embeddings["target"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vocab_size": "x"}, "`vocab_size` must be a positive whole number, found: 'x'"),
        ({"vocab_size": 7}, "`vocab_size` is 7, its lm_head.weight has another number of rows: 40"),
        ({"num_hidden_layers": -1}, "`num_hidden_layers` must be a positive whole number, found: -1"),
        ({"num_hidden_layers": 9}, "`num_hidden_layers` is 9, its model.safetensors.index.json lists fewer layers: 8"),
        ({"num_hidden_layers": 3}, "`num_hidden_layers` is 3, its model.safetensors.index.json lists more layers: 8"),
        ({"architectures": 7}, "`architectures` must be a list of class names"),
    ],
)
def test_a_target_whose_config_contradicts_its_tensors(made, change, says):
    names = [*target_tensors(Tiny()), *(f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(8))]
    index = {"weight_map": dict.fromkeys([*names, "vision.layers.40.x"], "model.safetensors")}
    (made["target"] / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    reconfigure(made["target"], num_hidden_layers=8)
    assert load_checkpoint(made["draft"], made["target"]).warnings == ()
    reconfigure(made["target"], **change)
    (warning,) = load_checkpoint(made["draft"], made["target"]).warnings
    assert warning.startswith(f"the target's config.json: {says}")


def test_tied_target_lends_its_embedding_as_head(made):
    tensors = target_tensors(Tiny())
    del tensors["lm_head.weight"]
    write_model(made["target"], {"architectures": ["X"], "tie_word_embeddings": True}, tensors)
    head = load_checkpoint(made["draft"], made["target"]).teacher_head
    assert torch.equal(head, tensors["model.embed_tokens.weight"])


def test_vocabularies_that_disagree(made):
    reconfigure(made["draft"], vocab_size=41)
    rewrite(made["draft"], lambda tensors: tensors.pop("t2d"))
    failure = failure_of(made)
    assert "[41, 16]" in failure.message
    assert "[40, 16]" in failure.message


def test_quantised_head_is_named(made):
    rewrite(made["target"], lambda tensors: tensors.update({"lm_head.weight": torch.zeros(40, 16, dtype=torch.int8)}))
    assert "quantised I8" in failure_of(made).message


def test_own_embedding_gives_way_to_the_targets_as_in_sglang(made):
    rewrite(made["draft"], lambda tensors: tensors.update({"embed_tokens.weight": torch.zeros(40, 16)}))
    checkpoint = load_checkpoint(made["draft"], made["target"])
    assert torch.equal(checkpoint.embeddings["target"], target_tensors(Tiny())["model.embed_tokens.weight"])
    assert any("embed_tokens differs" in warning for warning in checkpoint.warnings)
    (fact,) = (fact for fact in checkpoint.facts.tensors if fact.name == "embed_tokens.weight")
    assert fact.source == "target"


def test_borrowed_head_and_a_norm_that_is_left_at_ones(made):
    def change(tensors):
        del tensors["lm_head.weight"], tensors["norm.weight"]

    rewrite(made["draft"], change)
    checkpoint = load_checkpoint(made["draft"], made["target"])
    target = target_tensors(Tiny())
    assert torch.equal(checkpoint.weights["lm_head.weight"], target["lm_head.weight"][16:])  # the last 24 tokens of 40
    assert torch.equal(checkpoint.weights["norm.weight"], torch.ones(16))
    assert [(item.problem, item.name) for item in checkpoint.facts.problems] == [("missing", "norm.weight")]
    assert len(checkpoint.warnings) == 2


def test_whole_vocabulary_needs_no_map(tmp_path, made):
    tiny = Tiny(draft_vocab=40)
    draft = write_drafter(tmp_path / "whole", tiny)
    rewrite(draft, lambda tensors: (tensors.pop("d2t"), tensors.pop("t2d")))
    assert load_checkpoint(draft, made["target"]).target_ids.tolist() == list(range(40))


def test_only_the_needed_shards_of_a_target_need_be_there(made):
    tensors = target_tensors(Tiny())
    del tensors["model.layers.0.embed_tokens.weight"]
    (made["target"] / "model.safetensors").unlink()
    save_file(tensors, made["target"] / "model-00001-of-00002.safetensors")
    weight_map = dict.fromkeys(tensors, "model-00001-of-00002.safetensors")
    weight_map["model.layers.0.embed_tokens.weight"] = "model-00002-of-00002.safetensors"
    index = made["target"] / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    assert torch.equal(load_checkpoint(made["draft"], made["target"]).teacher_head, tensors["lm_head.weight"])
    weight_map["lm_head.weight"] = "model-00002-of-00002.safetensors"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    assert failure_of(made).details == ("model-00002-of-00002.safetensors",)


def test_norm_of_another_part_of_the_model_is_not_taken(made):
    nested = {f"language_model.{name}": tensor for name, tensor in target_tensors(Tiny()).items()}
    others = {f"{part}.norm.weight": torch.zeros(16) for part in ("vision_tower", "model.visual", "mtp")}
    write_model(made["target"], {"architectures": ["X"]}, nested | others)
    norm = load_checkpoint(made["draft"], made["target"]).target_norm
    assert torch.equal(norm, target_tensors(Tiny())["model.norm.weight"])


def test_target_folder_is_named(made, tmp_path):
    assert "the target's folder does not exist" in failure_of(made, target=tmp_path / "nowhere").message
    (made["target"] / "model.safetensors").unlink()
    assert "the target's folder has no *.safetensors" in failure_of(made).message


def test_random_values_are_only_promised_where_a_tensor_is_missing(tmp_path):
    scene = Scene(tmp_path)
    hints = []
    for changed, without in (({}, ["fc.weight"]), ({"fc.weight": scene.drawn(16, 40)}, []),
                             ({"fc.weight": torch.full((16, 48), float("nan"))}, [])):  # fmt: skip
        with pytest.raises(JobFailure) as refused:
            scene.load(changed, without)
        hints.append(refused.value.failure.hint)
    assert ["random values" in hint for hint in hints] == [True, False, False]
    assert "nonsense" in hints[2]
