"""Values that the peers' own code gave, on weights that are formulas, so that nothing but numbers had to be kept.

transformers 5.8.1 `DeepseekV3Attention` (eager), and speculators 0.9.0: two layers of its qwen3 kind (q/k-norm) with
norm_before_residual, norm_before_fc and norm_output, three teacher-forced steps.
"""

import math
from dataclasses import replace

import pytest
import torch

from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import Graph, GroupedAttention, LatentAttention, Reading
from remote_payload.standalone.model.attention import Chain, Prefix, Rule, attend
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.model.latent import Latent
from remote_payload.standalone.model.rope import Angles, rope_tables
from remote_payload.standalone.model.weights import Weights
from tests.standalone.model.made import PLAIN, Made, attention_shapes, make, shapes

CPU = torch.device("cpu")
DEEPSEEK_ROWS = {
    6: [
        [-0.69075, 1.12863, 0.55581, -1.19508, -0.41293],
        [-0.76698, 0.49035, 0.70836, -0.57503, -0.63961],
        [-1.04097, 0.31679, 1.00309, -0.43672, -0.95088],
        [-1.17906, 0.15991, 1.15995, -0.29859, -1.12425],
        [-0.99018, -0.15568, 1.00879, 0.03507, -1.01299],
        [-0.68746, -2.01815, 0.92874, 1.90711, -1.15675],
        [-0.60046, -1.87518, 0.82465, 1.77659, -1.03706],
    ],
    None: [
        [-0.69075, 1.12863, 0.55581, -1.19508, -0.41293],
        [-0.94166, 0.33225, 0.90193, -0.44008, -0.84932],
        [-1.10171, -0.38148, 1.14732, 0.24431, -1.17652],
        [-1.11, -0.82063, 1.20811, 0.6762, -1.28896],
        [-0.96728, -0.99618, 1.08638, 0.8663, -1.18995],
        [-0.74813, -1.05763, 0.87458, 0.95307, -0.98853],
        [-0.38724, -0.98117, 0.50455, 0.92085, -0.61464],
    ],
}
SPECULATORS_STEPS = [
    [
        [3.27495, -5.50007, 3.52124, -1.83118],
        [-1.49845, 0.88239, 1.65992, -0.72088],
        [2.61698, -0.9914, 0.45459, -1.85492],
        [-0.74497, -2.34817, 2.5307, -0.81133],
    ],
    [
        [2.83505, -4.21835, 3.03786, -1.67242],
        [-2.60643, 1.68735, 1.58448, -0.94675],
        [2.84818, -1.71636, 1.30194, -1.67967],
        [-0.19805, -2.48634, 2.58125, -1.60309],
    ],
    [
        [2.27315, -2.76524, 1.89274, -0.87225],
        [-2.13443, 0.37215, 3.05967, -2.4532],
        [2.2102, -0.91271, 0.47843, -0.52059],
        [0.14669, -2.60071, 2.6034, -1.81088],
    ],
]


def wave(*shape, salt):
    """Numbers that are the same everywhere: a sine sampled too coarsely to look like one."""
    index = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(index * 0.7371 * (1 + salt * 0.013) + salt).reshape(shape).float()


@pytest.mark.parametrize(("q_rank", "every", "scale"), [(6, 1.0, 0.461417129), (None, 0.5, 0.385403964)])
def test_latent_attention_is_deepseeks(q_rank, every, scale):
    kind = LatentAttention(
        heads=2, q_lora_rank=q_rank, kv_lora_rank=5, nope_head_dim=4, rope_head_dim=6, value_head_dim=3
    )
    stored = {}
    for salt, (name, shape) in enumerate(sorted(attention_shapes(Made(attention=kind, hidden=16), 16).items()), 1):
        drawn = wave(*shape, salt=salt)
        stored[name] = drawn * shape[1] ** -0.5 * 1.7 if len(shape) == 2 else 1 + 0.3 * drawn
    numbers = {"factor": 8.0, "original_max_position_embeddings": 16.0, "beta_fast": 4.0, "beta_slow": 1.0}
    numbers |= {"mscale": 0.707, "mscale_all_dim": every}
    rope = Rope(kind="yarn", theta=1000.0, scaling=numbers, interleaved=True)
    tokens = 7
    cos, sin = rope_tables(rope, 6, tokens, 4096)
    angles = Angles(cos=cos, sin=sin, interleaved=True)
    weights = Weights(stored, CPU, torch.float32)
    latent = Latent(weights, kind, 1e-6)
    flat = weights.joined(latent.projection)(wave(1, tokens, 16, salt=50) * 1.5)
    queries = latent.queries(flat[..., : latent.query_width], angles)
    keys, values = latent.keys_values(flat[..., latent.query_width :], angles)
    assert latent.scale(rope) == pytest.approx(scale, abs=1e-8)
    attended = attend(
        queries,
        Prefix(keys=keys.transpose(1, 2), values=values.transpose(1, 2)),
        Chain(at=torch.arange(tokens)),
        Rule(scale=latent.scale(rope), window=None, score_bytes=1 << 20),
    )
    assert torch.allclose(latent.out(attended)[0, :, :5], torch.tensor(DEEPSEEK_ROWS[q_rank]), atol=2e-5)


def test_later_layers_and_flags_are_speculators():
    kind = GroupedAttention(heads=4, kv_heads=2, head_dim=6, qk_norm=True)
    made = Made(attention=kind, layers=2)
    stored = {}
    for salt, name in enumerate(sorted(name for name in shapes(made) if not name.startswith("fc_norm"))):
        shape = shapes(made)[name]
        drawn = wave(*shape, salt=salt)
        stored[name] = drawn * 1.5 * shape[1] ** -0.5 if len(shape) == 2 else 1 + 0.2 * drawn
    checkpoint = replace(make(made), weights=stored, embeddings={"target": wave(30, 12, salt=60)})
    tokens = (torch.arange(9) * 7 + 3) % 30
    states = (wave(9, 36, salt=61) * 2).view(9, 3, 12)
    graph = Graph(rope=PLAIN, input_norm="joint", residual="normed", feedback="normed", position_start=1)
    reading = Reading(slots=(0, 1, 2), token_offset=1, graph=graph)
    drafter = Drafter(checkpoint, CPU, torch.float32)
    inputs = drafter.prepare(tokens, states, torch.arange(5))
    outputs = drafter.outputs(inputs, [reading], 3)
    for ours, theirs in zip(outputs, SPECULATORS_STEPS, strict=True):
        assert torch.allclose(ours[0, :4, :4], torch.tensor(theirs), atol=3e-5)
    drafted = drafter.draft(inputs, [reading], 3)[0].T.tolist()
    assert drafted == [[15, 13, 10, 15, 4], [0, 6, 2, 7, 4], [13, 8, 12, 15, 12]]
