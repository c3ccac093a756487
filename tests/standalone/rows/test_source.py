"""What the first rows say about all: how many states they hold, and which of them is the target's embedding output."""

import json

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.rows.embedding_slots import embedding_slots
from tests.standalone.running import DATA, run_job
from tests.standalone.test_job import BUNDLE
from tests.support.tiny import Tiny, row_tensors, target_tensors, write_model, write_row, write_rows

TINY = Tiny()
TARGET_CONFIG = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": TINY.layers, "vocab_size": TINY.vocab}
TABLE = target_tensors(TINY)["model.embed_tokens.weight"]


def write_embedded(folder, slot):
    """Three rows whose captured state `slot` is the target's embedding output."""
    for number, tokens in enumerate((20, 17, 23)):
        row = row_tensors(TINY, tokens, tokens // 3, salt=number)
        row["aux_hidden_state"][0, :, slot * 16 : slot * 16 + 16] = TABLE[row["input_ids"]]
        write_row(folder, number, row)
    return folder


@pytest.mark.parametrize("states", [None, (1, 2, 4, 5)])
@pytest.mark.parametrize("odd", [0, 2, 5])
def test_one_odd_row_does_not_decide_for_the_others(tmp_path, made, states, odd):
    rows = write_rows(tmp_path / "rows", TINY, lengths=(20,) * 6)
    write_row(rows, odd, row_tensors(Tiny(captured=3), 20, 6))
    facts = run_job(tmp_path / "out", **(made | {"rows": rows}), states=states, steps=1).result.rows
    assert (facts.used, facts.captured_states) == (5, 4)
    assert [(row.name, row.reason) for row in facts.skipped] == [
        (f"rows_0-2000/data_{odd}.ckpt", "it holds 3 captured states, expected: 4")
    ]


def test_labels_decide_how_many_states_a_row_holds(tmp_path, made):
    rows = write_rows(tmp_path / "rows", Tiny(captured=3), lengths=(20, 20))
    write_row(rows, 2, row_tensors(TINY, 20, 6))
    job = made | {"rows": rows, "steps": 1}
    assert run_job(tmp_path / "a", **job, states=(1, 2, 4, 5)).result.rows.used == 1
    assert run_job(tmp_path / "b", **job, states=(1, 2, 4)).result.rows.used == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_embedding_output_is_recognised_in_any_dtype_and_scale(dtype, scale):
    row = row_tensors(TINY, 30, 6)
    states = row["aux_hidden_state"][0].view(30, 4, 16).to(dtype)
    states[:, 2] = (scale * TABLE[row["input_ids"]]).to(dtype)
    assert embedding_slots(states, row["input_ids"], TABLE) == (2,)
    states[:14, 2] = 1  # image tokens
    assert embedding_slots(states, row["input_ids"], TABLE) == (2,)
    assert embedding_slots(states.roll(1, dims=0), row["input_ids"], TABLE) == ()


@pytest.mark.parametrize("states", [None, (0, 2, 4, 5)])
def test_the_embedding_slot_is_kept_in_the_result(tmp_path, states):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", states=states, max_rows=2)
    assert out.result.rows.embedding_slots == (0,)
    told = ["the captured state in slot 0 is the target's embedding output (`embed`)"]
    assert [event.message for event in out.events if event.name == "embedding_slot"] == (told if states is None else [])
    assert list(out.result.warnings) == []  # it is how such rows are, and no fault


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ((2, 4, 5, 0), "slot 3 is labelled `embed`, but the target's embedding output is in slot: 0"),
        ((1, 2, 4, 5), "no slot is labelled `embed`, but the target's embedding output is in slot: 0"),
    ],
)
def test_labels_that_the_rows_contradict(tmp_path, made, states, says):
    rows = write_embedded(tmp_path / "embedded", 0)
    with pytest.raises(JobFailure) as caught:
        run_job(tmp_path / "out", **(made | {"rows": rows}), states=states)
    assert caught.value.failure.kind == "rows"
    assert caught.value.failure.message == f"`states` contradicts the rows: {says}"


@pytest.mark.parametrize(
    ("filled", "states", "says"),
    [
        (slice(0, 1), (0, 2, 4, 5), "slot 0 is labelled `embed`, but holds one and the same vector for every token"),
        (slice(None), None, "all 4 captured states hold one and the same vector for every token"),
    ],
)
def test_states_that_were_never_written(tmp_path, made, filled, states, says):
    rows = write_embedded(tmp_path / "dead", 0)
    for path in rows.rglob("*.ckpt"):
        row = torch.load(path, weights_only=True)
        row["aux_hidden_state"].view(-1, 4, 16)[:, filled] = 0
        torch.save(row, path)
    with pytest.raises(JobFailure, match=f"{says}.*the capture wrote nothing"):
        run_job(tmp_path / "out", **(made | {"rows": rows}), states=states)


def test_an_embedding_that_no_row_holds(tmp_path, made):
    with pytest.raises(JobFailure, match="slot 1 is labelled `embed`, but no captured state is the embedding output"):
        run_job(tmp_path / "out", **made, states=(2, 0, 4, 5))


def test_progress_is_true_and_ends_complete(tmp_path, made):
    out = run_job(tmp_path / "out", **made, max_rows=2, search_rows=4)
    told = [event for event in out.events if event.kind == "progress"]
    ends = {(event.name, event.message): (event.done, event.total) for event in told}
    stages = [ends[name, stage] for name, stage in ends if name == "wirings"]
    assert len(stages) >= 3
    assert stages == [(2, 2)] * len(stages)
    assert {event.total for event in told} == {2}
    assert (told[-1].name, told[-1].done) == ("rows", 2)


def test_many_skipped_rows_are_told_by_five_and_a_count(tmp_path, made):
    rows = write_rows(tmp_path / "rows", TINY, lengths=(20,) * 3 + (2,) * 9)
    out = run_job(tmp_path / "out", **(made | {"rows": rows}), steps=2)
    told = [event.message for event in out.events if event.name == "row_skipped"]
    assert [text.partition(":")[0] for text in told] == [f"rows_0-2000/data_{i}.ckpt" for i in range(3, 8)] + ["4 more"]
    assert len(out.result.rows.skipped) == 9

    bad = write_rows(tmp_path / "bad", TINY, lengths=(2,) * 9)
    with pytest.raises(JobFailure, match="none of the 9 rows") as caught:
        run_job(tmp_path / "none", **(made | {"rows": bad}))
    assert (len(caught.value.failure.details), caught.value.failure.details[-1]) == (6, "and 4 more")


def test_the_dialect_of_most_rows_is_the_rows(tmp_path, made):
    rows = write_rows(tmp_path / "rows", TINY, lengths=(20,) * 4)
    odd = row_tensors(TINY, 20, 6)
    write_row(rows, 1, {f"{name}s" if name.endswith("state") else name: value for name, value in odd.items()})
    facts = run_job(tmp_path / "out", **(made | {"rows": rows}), steps=1).result.rows
    assert (facts.used, facts.dialect.name) == (3, "specforge")
    assert [(row.name, row.reason) for row in facts.skipped] == [
        ("rows_0-2000/data_1.ckpt", "it is a row of torchspec, most rows are of: specforge")
    ]


@pytest.mark.parametrize("split", ["rows", "heldout"])
def test_rows_of_another_target_end_the_job_with_both_widths(tmp_path, made, split):
    other = write_rows(tmp_path / "other", Tiny(target_hidden=17))
    with pytest.raises(JobFailure) as caught:
        run_job(tmp_path / "out", **(made | {split: other}), steps=1)
    failure = caught.value.failure
    assert failure.kind == "rows"
    assert "n * 16 wide (the drafter's target), found: 68" in failure.message
    assert str(other) in (failure.hint or "")


def test_final_states_before_a_norm_that_is_not_there(tmp_path, made):
    """speculators stores them so; without the norm no one knows what the target would say."""
    write_model(made["target"], TARGET_CONFIG, {k: v for k, v in target_tensors(TINY).items() if "norm" not in k})
    rows = tmp_path / "listed"
    rows.mkdir()
    for number in range(2):
        row = row_tensors(TINY, 20, 6, salt=number)
        layers = [*row.pop("aux_hidden_state")[0].view(20, 4, 16).unbind(1), row.pop("hidden_state")[0]]
        torch.save(row | {"hidden_states": layers}, rows / f"data_{number}.pt")
    with pytest.raises(JobFailure, match="before the target's final norm, which was not found") as caught:
        run_job(tmp_path / "out", **(made | {"rows": rows}), steps=1)
    assert caught.value.failure.kind == "rows"


@pytest.mark.parametrize("split", ["rows", "heldout"])
def test_fewer_captured_states_than_the_drafter_joins(tmp_path, made, split):
    narrow = write_rows(tmp_path / "narrow", Tiny(captured=2))
    with pytest.raises(JobFailure, match="joins 3 states, the rows hold only: 2"):
        run_job(tmp_path / "out", **(made | {split: narrow}), steps=1)


def as_dialect(folder, dialect, number, row):
    """One SpecForge row written as another program writes it."""
    folder.mkdir(exist_ok=True)
    states, final = row["aux_hidden_state"][0], row["hidden_state"][0]
    two = {"input_ids": row["input_ids"], "loss_mask": row["loss_mask"]}
    if dialect == "modelopt":
        value = two | {"aux_hidden_states": states, "hidden_states": final, "conversation_id": str(number)}
    elif dialect == "speculators_old_v0":
        value = two | {"hidden_state": states, "target": final}
    else:
        value = two | {"hidden_states": [*states.view(len(states), 4, 16).unbind(1), final]}
    torch.save(value, folder / f"{number}.pt")


@pytest.mark.parametrize("dialect", ["modelopt", "speculators_old_v0", "speculators_old_v1"])
def test_the_same_rows_give_the_same_hits_in_any_dialect(tmp_path, made, dialect):
    for number, tokens in enumerate((20, 17, 23)):  # as `made` has them
        as_dialect(tmp_path / "other", dialect, number, row_tensors(TINY, tokens, tokens // 3, salt=number))
    plain = run_job(tmp_path / "plain", **made, sweep="wiring")
    other = run_job(tmp_path / "out", **(made | {"rows": tmp_path / "other"}), sweep="wiring")
    assert other.result.rows.dialect.name == dialect
    assert other.result.rows.final_state == "post_norm"
    assert other.hits == plain.hits
    assert len(other.hits) >= 3


def test_rows_with_answers_are_judged_by_them(tmp_path, made):
    """Automodel's cache of the same rows: within the mask, hits are those that the final states give."""
    head = target_tensors(TINY)["lm_head.weight"]
    drafted = torch.arange(TINY.vocab - TINY.draft_vocab, TINY.vocab)
    held = {}
    for number in range(2):
        row = row_tensors(TINY, 20, 6, salt=number)
        write_row(tmp_path / "plain", number, row)
        answers = (row["hidden_state"][0] @ head.T).argmax(-1)
        probabilities = torch.zeros(20, len(drafted)).scatter(1, (answers - drafted[0]).clamp(min=0)[:, None], 1.0)
        known = torch.isin(answers, drafted) & row["loss_mask"].bool()
        moved = {
            "input_ids": row["input_ids"],
            "loss_mask": row["loss_mask"],
            "position_mask": known[:, None],
            "target_probs": probabilities,
        }
        sample = {name: torch.cat((value[1:], torch.zeros_like(value[:1]))) for name, value in moved.items()}
        sample |= {
            "attention_mask": torch.ones(20, dtype=torch.int64),
            "aux_hidden_states": row["aux_hidden_state"][0],
        }
        for name, value in sample.items():
            held.setdefault(name, []).append(value)
    cache = tmp_path / "cache"
    cache.mkdir()
    save_file({name: torch.stack(values) for name, values in held.items()}, cache / "shard-000000.safetensors")
    manifest = {"format_version": 2, "selected_token_ids": drafted.tolist()}
    (cache / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    job = made | {"sweep": "wiring", "steps": 1}
    plain = run_job(tmp_path / "a", **(job | {"rows": tmp_path / "plain"}))
    other = run_job(tmp_path / "b", **(job | {"rows": cache}))
    facts = other.result.rows
    assert (facts.final_state, facts.dialect.name, facts.used) == ("answers", "automodel", 2)
    for reading, row in plain.hits.keys() & other.hits.keys():
        ours, theirs = other.hits[reading, row], plain.hits[reading, row]
        assert {at: ours[at] for at in range(5, 18)} == {at: theirs[at] for at in range(5, 18)}
    assert plain.hits.keys() & other.hits.keys()
