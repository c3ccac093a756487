"""The fast path against slow obvious code, on random drafters of many shapes."""

import itertools

import pytest
import torch

from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.model import drafter as model
from remote_payload.standalone.model.budget import Budget
from tests.standalone.model import reference
from tests.standalone.running import run_job
from tests.support.tiny import (
    Tiny,
    drafter_config,
    drafter_tensors,
    row_tensors,
    target_tensors,
    write_model,
    write_row,
    write_target,
)

SHAPES = [
    Tiny(),
    Tiny(heads=4, kv_heads=4, head_dim=4, seed=1),
    Tiny(heads=6, kv_heads=1, head_dim=10, inner=7, seed=2),
    Tiny(slots=1, captured=3, seed=3),
    Tiny(slots=2, captured=2, hidden=24, target_hidden=12, seed=4),
    Tiny(draft_vocab=40, seed=5),
]


def write_all(folder, tiny):
    tensors = drafter_tensors(tiny)
    embedding = target_tensors(tiny)["model.embed_tokens.weight"]
    if tiny.hidden != tiny.target_hidden:  # such a drafter brings its own embedding
        embedding = tiny.draw(tiny.vocab, tiny.hidden, salt=77)
        tensors["embed_tokens.weight"] = embedding
    write_model(folder / "draft", drafter_config(tiny), tensors)
    write_target(folder / "target", tiny)
    rows = [row_tensors(tiny, tokens, prompt, salt=tokens) for tokens, prompt in ((14, 4), (11, 1), (19, 15))]
    rows[0]["loss_mask"][7:10] = 0  # two separate responses
    for number, row in enumerate(rows):
        write_row(folder / "rows", number, row, compress=number == 1)
    return tensors, target_tensors(tiny) | {"model.embed_tokens.weight": embedding}, rows


def check(folder, tiny, steps):
    _, target, rows = write_all(folder, tiny)
    settings = {name: folder / name for name in ("draft", "target", "rows")}
    out = run_job(folder / "out", **settings, steps=steps)
    checkpoint = load_checkpoint(folder / "draft", folder / "target")
    assert len(out.hits) == len(out.full()) * len(rows) > 0
    for (name, row), hits in out.hits.items():
        told = next(reading for reading in out.result.readings if reading.name == name)
        if told.changes:
            continue  # other graphs are held to the reference in test_every_graph
        reading = Reading(slots=told.slots, token_offset=told.token_offset)
        assert hits == reference.hits(checkpoint, target["lm_head.weight"], rows[row], reading, steps), (name, row)


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("tiny", SHAPES, ids=range(len(SHAPES)))
def test_hits_equal_the_reference(tmp_path, tiny, steps):
    check(tmp_path, tiny, steps)


@pytest.mark.parametrize("tiny", SHAPES, ids=range(len(SHAPES)))
def test_drafted_tokens_equal_the_reference(tmp_path, tiny):
    _, _, rows = write_all(tmp_path, tiny)
    checkpoint = load_checkpoint(tmp_path / "draft", tmp_path / "target")
    drafter = model.Drafter(checkpoint, torch.device("cpu"), torch.float32)
    tokens = rows[0]["input_ids"]
    states = rows[0]["aux_hidden_state"][0].view(len(tokens), tiny.captured, -1)
    slots = tuple(reversed(range(tiny.captured)))[: tiny.slots]
    positions = list(range(len(tokens)))
    inputs = drafter.prepare(tokens, states, torch.tensor(positions))
    for offset in (-1, 0, 1, 2):
        reading = Reading(slots=slots, token_offset=offset)
        told = reference.drafted(checkpoint, (tokens, states, None), reading, positions, 5)
        assert drafter.draft(inputs, [reading], 5)[0].tolist() == told


def test_more_than_eight_steps_take_two_bytes(tmp_path):
    check(tmp_path, SHAPES[0], 8 + 1)


def test_pieces_change_nothing(tmp_path):
    tiny = SHAPES[0]
    write_all(tmp_path, tiny)
    checkpoint = load_checkpoint(tmp_path / "draft", tmp_path / "target")
    smallest = Budget(logit_bytes=1, score_bytes=1, reading_bytes=1, projection_bytes=0)
    row = row_tensors(tiny, 30, 5)
    states = row["aux_hidden_state"][0].view(30, tiny.captured, -1)
    readings = [Reading(slots=slots, token_offset=1) for slots in itertools.permutations(range(4), 3)]
    drafted = []
    for budget in (None, smallest):
        drafter = model.Drafter(checkpoint, torch.device("cpu"), torch.float32, budget)
        inputs = drafter.prepare(row["input_ids"], states, torch.arange(4, 27))
        drafted.append(drafter.draft(inputs, readings, 3))
    assert torch.equal(*drafted)


def test_readings_together_equal_readings_alone(tmp_path):
    tiny = SHAPES[0]
    write_all(tmp_path, tiny)
    checkpoint = load_checkpoint(tmp_path / "draft", tmp_path / "target")
    drafter = model.Drafter(checkpoint, torch.device("cpu"), torch.float32)
    row = row_tensors(tiny, 30, 5)
    states = row["aux_hidden_state"][0].view(30, tiny.captured, -1)
    readings = [
        Reading(slots=slots, token_offset=offset)
        for slots in itertools.permutations(range(4), 3)
        for offset in (1, 0, 2)
    ]
    positions = torch.tensor([2, 3, 9, 20, 29])
    together = drafter.draft(drafter.prepare(row["input_ids"], states, positions), readings, 3)
    for index, reading in enumerate(readings):
        alone = drafter.draft(drafter.prepare(row["input_ids"], states, positions), [reading], 3)
        assert torch.equal(together[index], alone[0])
    assert len({tuple(drafted.flatten().tolist()) for drafted in together}) > len(readings) // 2
