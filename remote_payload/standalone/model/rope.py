"""Rotary position embedding of the drafter: angles for positions 0.., by the kinds that drafters declare.

Formulas: Su et al. 2021 (default), linear interpolation, Llama 3.1's frequency split, YaRN (Peng et al. 2023).
"""

import math

import torch

from remote_payload.standalone.checkpoint.rope_config import Rope


def rope_tables(rope: Rope, head_dim: int, positions: int, max_positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Angles: cos and sin, each (positions, head_dim / 2) float32 on the CPU.

    `max_positions` stands in for yarn's original length where the config does not give it.
    """
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    frequency = rope.theta**-exponent  # (head_dim / 2,)
    factor = rope.scaling.get("factor", 1.0)
    amplitude = 1.0
    if rope.kind == "linear":
        frequency = frequency / factor
    elif rope.kind == "llama3":
        frequency = _llama3(frequency, rope, factor)
    elif rope.kind == "yarn":
        original = rope.scaling.get("original_max_position_embeddings", max_positions)
        frequency = _yarn(frequency, rope, factor, original)
        amplitude = _yarn_amplitude(rope, factor)
    angle = torch.outer(torch.arange(positions, dtype=torch.float64), frequency)
    return (angle.cos() * amplitude).float(), (angle.sin() * amplitude).float()


def rotate(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate (..., P, heads, head_dim) by per-position angles (P, head_dim / 2), halves paired as in Llama."""
    first, second = vectors.chunk(2, dim=-1)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _llama3(frequency: torch.Tensor, rope: Rope, factor: float) -> torch.Tensor:
    low = rope.scaling.get("low_freq_factor", 1.0)
    high = rope.scaling.get("high_freq_factor", 4.0)
    original = rope.scaling.get("original_max_position_embeddings", 8192)
    turns = original * frequency / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return frequency * (keep + (1 - keep) / factor)


def _yarn(frequency: torch.Tensor, rope: Rope, factor: float, original: float) -> torch.Tensor:
    half = frequency.numel()

    def dimension_of(turns: float) -> float:
        return half * math.log(original / (turns * 2 * math.pi)) / math.log(rope.theta)

    low = max(math.floor(dimension_of(rope.scaling.get("beta_fast", 32.0))), 0)
    high = min(math.ceil(dimension_of(rope.scaling.get("beta_slow", 1.0))), 2 * half - 1)
    ramp = ((torch.arange(half, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0.0, 1.0)
    return frequency * (1 - ramp) + frequency / factor * ramp


def _yarn_amplitude(rope: Rope, factor: float) -> float:
    stated = rope.scaling.get("attention_factor")
    if stated is not None:
        return stated
    return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
