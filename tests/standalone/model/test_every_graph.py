"""Every computation a drafter may mean, on every kind of layer, against the slow reference."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import Graph, GroupedAttention, LatentAttention, Reading
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.drafter import Drafter
from tests.standalone.model import reference
from tests.standalone.model.made import GROUPED, PLAIN, Made, make, make_row

CPU = torch.device("cpu")
SMALLEST = Budget(logit_bytes=1, score_bytes=1, reading_bytes=1, projection_bytes=0)
LATENT = LatentAttention(heads=3, q_lora_rank=7, kv_lora_rank=5, nope_head_dim=4, rope_head_dim=6, value_head_dim=3)
YARN = Rope(
    kind="yarn",
    theta=1000.0,
    scaling={"factor": 4.0, "original_max_position_embeddings": 16.0, "beta_fast": 2.0, "mscale": 1.0},
)
DEEPSEEK = replace(YARN, scaling=YARN.scaling | {"mscale": 0.7, "mscale_all_dim": 1.3}, interleaved=True)
DYNAMIC = Rope(kind="dynamic", theta=10000.0, scaling={"factor": 2.0})
LINEAR = Rope(kind="linear", theta=500.0, scaling={"factor": 3.0}, interleaved=True)
KINDS = {
    "plain": Made(),
    "biases": Made(bias=True, attention=replace(GROUPED, bias=True)),
    "qk-norm": Made(attention=replace(GROUPED, qk_norm=True), seed=1),
    "window": Made(attention=replace(GROUPED, windows=(4,)), seed=2),
    "window of one": Made(attention=replace(GROUPED, windows=(1,)), seed=3),
    "layers": Made(layers=3, seed=4),
    "layers with windows": Made(layers=2, attention=replace(GROUPED, windows=(None, 3), bias=True), bias=True, seed=5),
    "layers of mla": Made(layers=2, attention=LATENT, rope=replace(PLAIN, interleaved=True), seed=6),
    "mla": Made(attention=LATENT, rope=DEEPSEEK, seed=7),
    "mla without q rank": Made(attention=replace(LATENT, q_lora_rank=None), bias=True, seed=8),
    "wide target": Made(target_hidden=10, slots=2, seed=9),
    "partial rotary": Made(rope=replace(PLAIN, rotary_dim=4), seed=10),
    "yarn": Made(rope=YARN, seed=11),
    "dynamic, short": Made(rope=DYNAMIC, seed=12),
    "dynamic, long": Made(rope=DYNAMIC, max_positions=8, seed=13),
    "linear, interleaved": Made(rope=LINEAR, seed=14),
}
CHANGES = {
    "own": {},
    "joint": {"input_norm": "joint"},
    "per slot": {"input_norm": "per_slot"},
    "residual": {"residual": "normed"},
    "feedback": {"feedback": "normed"},
    "no final norm": {"final_norm": "none"},
    "embedding": {"embedding": "draft"},
    "rope": {"rope": replace(PLAIN, theta=77.0)},
    "position": {"position_start": 1},
    "zeroed": {"states": "zeroed"},
    "shuffled": {"states": "shuffled"},
    "earlier": {"states": "earlier"},
    "later": {"states": "later"},
    "final state": {"input": "final_state"},
    "final state, shuffled": {"input": "final_state", "states": "shuffled", "residual": "normed"},
    "three at once": {"input_norm": "joint", "residual": "normed", "feedback": "normed"},
    "joint, shuffled": {"input_norm": "joint", "states": "shuffled"},
}
POSITIONS = [1, 2, 5, 6, 11]


def compare(made, readings, budget=None, tokens=13, steps=4, self_fed=False):
    """Outputs within 1e-4 and the same drafts, wherever the reference's best two logits are not all but equal."""
    checkpoint, row = make(made), make_row(made, tokens)
    drafter = Drafter(checkpoint, CPU, torch.float32, budget)
    inputs = drafter.prepare(row.tokens, row.states, torch.tensor(POSITIONS), row.final)
    drafts = drafter.draft(inputs, readings, steps, self_fed=self_fed)
    outputs = None if self_fed else torch.stack(drafter.outputs(inputs, readings, steps), dim=2)  # (R, P, K, H)
    assert drafts.shape == (len(readings), len(POSITIONS), steps)
    judged = 0
    for index, reading in enumerate(readings):
        slow = reference.Slow(checkpoint, (row.tokens, row.states, row.final), reading, POSITIONS[-1])
        prefix = slow.prefix()
        for place, start in enumerate(POSITIONS):
            for step, (hidden, logits) in enumerate(slow.chain(start, steps, prefix, self_fed=self_fed)):
                where = (reading.name, start, step)
                if outputs is not None:
                    error = (outputs[index, place, step].double() - hidden).abs().max() / hidden.abs().max()
                    assert error < 1e-4, where
                best = logits.topk(2).values
                if best[0] - best[1] < 1e-4:
                    break  # a tie in float32; with its own tokens fed, the chain may rightly go another way from here
                assert drafts[index, place, step] == logits.argmax(), where
                judged += 1
    assert judged > 0.6 * drafts.numel()


def readings_of(made, changes, offsets=(1,)):
    graph = replace(Graph(rope=made.rope), **changes)
    slots = tuple(reversed(range(made.captured)))[: made.slots]
    return [Reading(slots=slots, token_offset=offset, graph=graph, changes=("changed",)) for offset in offsets]


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_layer(made):
    compare(made, readings_of(made, {}, (1, 0)))


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_every_graph(changes):
    made = Made(bias=True)
    compare(made, readings_of(made, changes, (1, -1, 2)))


def test_windows_that_a_server_ignores():
    compare(KINDS["layers with windows"], readings_of(KINDS["layers with windows"], {"windows": "none"}, (1, 0)))


@pytest.mark.parametrize("kind", ["plain", "window", "layers with windows", "mla"])
def test_smallest_pieces(kind):
    compare(KINDS[kind], readings_of(KINDS[kind], {"input_norm": "joint"}, (1, 0)), budget=SMALLEST)


@pytest.mark.parametrize("vocabulary", ["offset", "identity"])
def test_fed_with_its_own_tokens(vocabulary):
    made = Made(bias=True)
    compare(made, readings_of(made, {"vocabulary": vocabulary, "embedding": "draft"}), self_fed=True)


def test_graphs_of_one_call_may_differ():
    made = Made(bias=True)
    mixed = [reading for changes in CHANGES.values() for reading in readings_of(made, changes, (0, 1))]
    mixed = mixed[::2] + mixed[1::2] + [Reading(slots=(0, 1, 2), token_offset=1)]
    compare(made, mixed, steps=2)


FLAGS = st.fixed_dictionaries(
    {
        "input": st.sampled_from(["states", "states", "final_state"]),
        "input_norm": st.sampled_from(["none", "joint", "per_slot"]),
        "residual": st.sampled_from(["raw", "normed"]),
        "feedback": st.sampled_from(["raw", "normed"]),
        "final_norm": st.sampled_from(["applied", "none"]),
        "embedding": st.sampled_from(["target", "draft"]),
        "rope": st.sampled_from([PLAIN, YARN, LINEAR, DYNAMIC, DEEPSEEK]),
        "position_start": st.sampled_from([0, 1]),
        "states": st.sampled_from(["captured", "captured", "zeroed", "shuffled", "earlier", "later"]),
    }
)
GROUPED_KINDS = st.builds(
    lambda kv, share, half, bias, qk, windows: GroupedAttention(
        heads=kv * share, kv_heads=kv, head_dim=2 * half, bias=bias, qk_norm=qk, windows=windows
    ),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(2, 4),
    st.booleans(),
    st.booleans(),
    st.tuples(st.sampled_from([None, 2, 5]), st.sampled_from([None, 3])),
)
LATENT_KINDS = st.builds(
    LatentAttention,
    heads=st.integers(1, 3),
    q_lora_rank=st.sampled_from([None, 4]),
    kv_lora_rank=st.integers(1, 5),
    nope_head_dim=st.integers(1, 4),
    rope_head_dim=st.sampled_from([4, 6]),
    value_head_dim=st.integers(1, 4),
)
DRAFTERS = st.builds(
    Made,
    attention=st.one_of(GROUPED_KINDS, LATENT_KINDS),
    layers=st.integers(1, 2),
    slots=st.integers(1, 4),
    max_positions=st.sampled_from([6, 64]),
    bias=st.booleans(),
    seed=st.integers(0, 20),
)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(made=DRAFTERS, changes=FLAGS, offset=st.integers(-1, 2), small=st.booleans(), self_fed=st.booleans())
def test_any_drafter_under_any_graph(made, changes, offset, small, self_fed):
    compare(made, readings_of(made, changes, (offset,)), SMALLEST if small else None, steps=3, self_fed=self_fed)


def test_a_graph_that_the_checkpoint_cannot_mean_is_refused_by_name():
    made = Made(target_hidden=10)
    checkpoint = make(made)
    for name in ("input_norm.weight", "fc_norm.1.weight"):
        del checkpoint.weights[name]
    del checkpoint.embeddings["draft"]
    drafter = Drafter(checkpoint, CPU, torch.float32)
    lacks = {
        "joint": "input_norm.weight",
        "per slot": "fc_norm.*.weight",
        "embedding": "the draft's embed_tokens",
        "final state": "final states of the drafter's size, 12",
    }
    row = make_row(made, 9)
    inputs = drafter.prepare(row.tokens, row.states, torch.tensor([3]))
    for change, lacking in lacks.items():
        readings = readings_of(made, CHANGES[change])
        assert drafter.missing(readings[0].graph) == lacking
        with pytest.raises(JobFailure) as caught:
            drafter.draft(inputs, readings, 1)
        assert lacking in caught.value.failure.message
    assert drafter.missing(checkpoint.graph) is None
