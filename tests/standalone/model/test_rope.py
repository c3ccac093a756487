"""Rotary angles against the formulas written out number by number, and against the values of transformers."""

import math

import pytest
import torch

from remote_payload.failure import JobFailure
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.model.rope import Angles, rope_tables, rotate

DIM, POSITIONS = 16, 50
TRANSFORMERS = {
    "linear": (
        Rope(kind="linear", theta=10000.0, scaling={"factor": 4.0}),
        None,
        [0.25, 0.07905694, 0.025, 0.007905695, 0.0025, 0.0007905695, 0.00025, 7.905695e-05],
        1.0,
    ),
    "llama3": (
        Rope(
            kind="llama3",
            theta=10000.0,
            scaling={
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64.0,
            },
        ),
        None,
        [1.0, 0.2443846, 0.01304226, 0.003952847, 0.00125, 0.0003952847, 0.000125, 3.952847e-05],
        1.0,
    ),
    "dynamic short": (
        Rope(kind="dynamic", theta=10000.0, scaling={"factor": 2.0}),
        100,
        [1.0, 0.3162278, 0.1, 0.03162278, 0.01, 0.003162278, 0.001, 0.0003162278],
        1.0,
    ),
    "dynamic long": (
        Rope(kind="dynamic", theta=10000.0, scaling={"factor": 2.0}),
        5000,
        [1.0, 0.2605171, 0.06786916, 0.01768108, 0.004606222, 0.0012, 0.0003126204, 8.144297e-05],
        1.0,
    ),
    "yarn": (
        Rope(kind="yarn", theta=10000.0, scaling={"factor": 4.0, "original_max_position_embeddings": 1024.0}),
        None,
        [1.0, 0.3162278, 0.08125, 0.01976424, 0.004375, 0.0007905695, 0.00025, 7.905695e-05],
        1.138629436,
    ),
    "yarn mscale": (
        Rope(
            kind="yarn",
            theta=50000.0,
            scaling={
                "factor": 64.0,
                "original_max_position_embeddings": 4096.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 0.707,
                "mscale_all_dim": 1.0,
            },
        ),
        None,
        [1.0, 0.2586001, 0.06687403, 0.01161916, 0.001537297, 1.807023e-05, 4.672965e-06, 1.208429e-06],
        0.913937227,
    ),
    "yarn beta_fast 1": (
        Rope(
            kind="yarn",
            theta=50000.0,
            scaling={
                "factor": 64.0,
                "original_max_position_embeddings": 4096.0,
                "beta_fast": 1.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
        ),
        None,
        [1.0, 0.2586001, 0.06687403, 0.01729363, 0.004472136, 1.807023e-05, 4.672965e-06, 1.208429e-06],
        1.0,
    ),
    "yarn attention_factor": (
        Rope(
            kind="yarn",
            theta=1000000.0,
            scaling={"factor": 8.0, "original_max_position_embeddings": 256.0, "attention_factor": 1.25},
        ),
        None,
        [1.0, 0.1259615, 0.01317616, 0.0007029267, 0.000125, 2.222849e-05, 3.952847e-06, 7.029267e-07],
        1.25,
    ),
    "yarn tiny original": (
        Rope(kind="yarn", theta=10000.0, scaling={"factor": 8.0, "original_max_position_embeddings": 4.0}),
        None,
        [1.0, 0.03952847, 0.0125, 0.003952847, 0.00125, 0.0003952847, 0.000125, 3.952847e-05],
        1.207944154,
    ),
    "linear partial": (
        Rope(kind="linear", theta=10000.0, scaling={"factor": 2.0}, rotary_dim=8),
        None,
        [0.5, 0.05, 0.005, 0.0005],
        1.0,
    ),
}
"""Rope, sequence length, and what transformers 5.8.1 `ROPE_INIT_FUNCTIONS` gives: turns a position, amplitude."""


def angles(kind, **scaling):
    cos, sin = rope_tables(Rope(kind=kind, theta=10000.0, scaling=scaling), DIM, POSITIONS, 2048)
    return cos, sin


def plain(index):
    return 10000.0 ** (-2 * index / DIM)


def check(cos, sin, frequency, amplitude=1.0):
    for position in (0, 1, 49):
        for index in range(cos.shape[1]):
            assert cos[position, index].item() == pytest.approx(
                amplitude * math.cos(position * frequency(index)), abs=1e-5
            )
            assert sin[position, index].item() == pytest.approx(
                amplitude * math.sin(position * frequency(index)), abs=1e-5
            )


def test_default():
    check(*angles("default"), plain)


def test_linear():
    check(*angles("linear", factor=4.0), lambda index: plain(index) / 4)


def test_llama3():
    def frequency(index):
        wavelength = 2 * math.pi / plain(index)
        if wavelength < 64 / 4:
            return plain(index)
        if wavelength > 64 / 1:
            return plain(index) / 8
        smooth = (64 / wavelength - 1) / (4 - 1)
        return (1 - smooth) * plain(index) / 8 + smooth * plain(index)

    scaling = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    check(*angles("llama3", factor=8.0, **scaling), frequency)


def test_yarn():
    def turns_to_index(turns):
        return DIM * math.log(1024 / (turns * 2 * math.pi)) / (2 * math.log(10000.0))

    low, high = math.floor(turns_to_index(32)), math.ceil(turns_to_index(1))

    def frequency(index):
        ramp = min(max((index - low) / (high - low), 0), 1)
        return plain(index) / 4 * ramp + plain(index) * (1 - ramp)

    assert 0 < low < high < DIM
    amplitude = 0.1 * math.log(4.0) + 1
    check(*angles("yarn", factor=4.0, original_max_position_embeddings=1024), frequency, amplitude)


@pytest.mark.parametrize(("rope", "length", "turns", "amplitude"), TRANSFORMERS.values(), ids=TRANSFORMERS.keys())
def test_values_of_transformers(rope, length, turns, amplitude):
    cos, sin = rope_tables(rope, DIM, POSITIONS, 2048, length)
    assert cos.shape == (POSITIONS, len(turns))
    assert cos[0].tolist() == pytest.approx([amplitude] * len(turns), abs=1e-6)
    assert torch.atan2(sin[1], cos[1]).tolist() == pytest.approx(turns, rel=1e-5)
    check(cos, sin, turns.__getitem__, amplitude)


def test_a_lone_mscale_is_refused_where_the_peers_differ():
    numbers = {"factor": 64.0, "original_max_position_embeddings": 4096.0}
    for lone in ({"mscale": 0.7}, {"mscale_all_dim": 1.0}):
        with pytest.raises(JobFailure, match="both `mscale` and `mscale_all_dim`"):
            rope_tables(Rope(kind="yarn", theta=10000.0, scaling=numbers | lone), DIM, 3, 2048)
    same = rope_tables(Rope(kind="yarn", theta=10000.0, scaling=numbers | {"mscale": 1.0}), DIM, 3, 2048)
    assert torch.equal(same[0], rope_tables(Rope(kind="yarn", theta=10000.0, scaling=numbers), DIM, 3, 2048)[0])


def test_neighbours_are_halves_in_another_order():
    vectors = torch.randn(5, 3, 10, generator=torch.Generator().manual_seed(0))  # 8 of 10 numbers are turned
    cos, sin = rope_tables(Rope(kind="default", theta=50.0), 8, 5, 2048)
    order = [0, 2, 4, 6, 1, 3, 5, 7, 8, 9]
    halves = rotate(vectors[..., order], Angles(cos=cos, sin=sin))
    neighbours = rotate(vectors, Angles(cos=cos, sin=sin, interleaved=True))
    assert torch.allclose(halves, neighbours[..., order])
    assert torch.equal(neighbours[..., 8:], vectors[..., 8:])
