"""Rotary angles against the formulas written out number by number."""

import math

import pytest

from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.model.rope import rope_tables

DIM, POSITIONS = 16, 50


def angles(kind, **scaling):
    cos, sin = rope_tables(Rope(kind=kind, theta=10000.0, scaling=scaling), DIM, POSITIONS, 2048)
    return cos, sin


def plain(index):
    return 10000.0 ** (-2 * index / DIM)


def check(cos, sin, frequency, amplitude=1.0):
    for position in (0, 1, 49):
        for index in range(DIM // 2):
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
