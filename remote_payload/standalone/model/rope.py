"""Rotary position embedding of the drafter: angles for positions 0.., by the kinds that drafters declare.

Formulas: Su et al. 2021 (default), linear interpolation, Llama 3.1's frequency split, YaRN (Peng et al. 2023) with
DeepSeek's mscale, NTK-aware scaling by length; held to transformers' `ROPE_INIT_FUNCTIONS` (5.8) in the tests.

`dynamic` has two meanings in the field. transformers, and SpecForge after it, keep plain angles up to
`max_position_embeddings` and widen the base by the length of the sequence beyond: that is what a drafter was trained
with and what is computed here, by the length of the whole row. SGLang widens it once, for `factor` times that length,
and so turns short sequences otherwise too.
"""

import math
from dataclasses import dataclass, replace

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.rope_config import Rope


@dataclass(frozen=True, kw_only=True)
class Angles:
    """Cosines and sines of a range of positions."""

    cos: torch.Tensor  # (positions, rotary_dim / 2)
    sin: torch.Tensor  # (positions, rotary_dim / 2)
    interleaved: bool = False

    def at(self, positions: torch.Tensor) -> "Angles":
        """Those of some positions (P,)."""
        return replace(self, cos=self.cos[positions], sin=self.sin[positions])


def rope_tables(
    rope: Rope, head_dim: int, positions: int, max_positions: int, length: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Angles: cos and sin, each (positions, rotary_dim / 2) float32 on the CPU.

    `max_positions` stands in for yarn's original length where the config does not give it; `length` is the sequence's
    length, which only a dynamic rope looks at (default: `positions`). Raises JobFailure(checkpoint) where yarn's mscale
    means two different things.
    """
    dim = rope.rotary_dim or head_dim
    exponent = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    theta = rope.theta
    factor = rope.scaling.get("factor", 1.0)
    if rope.kind == "dynamic":
        theta = dynamic_theta(rope, dim, length or positions, max_positions)
    frequency = theta**-exponent  # (dim / 2,)
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


def rotate(vectors: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Rotate (..., P, heads, d) by the angles of P positions; numbers behind the rotary dimensions stay."""
    cos, sin = angles.cos.unsqueeze(-2), angles.sin.unsqueeze(-2)  # (P, 1, rotary_dim / 2)
    turned = 2 * cos.shape[-1]
    rest = vectors[..., turned:]
    if angles.interleaved:
        first, second = vectors[..., 0:turned:2], vectors[..., 1:turned:2]
        pairs = torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return torch.cat((pairs.flatten(-2), rest), dim=-1)
    first, second = vectors[..., :turned].chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)


def dynamic_theta(rope: Rope, rotary_dim: int, length: int, max_positions: int) -> float:
    """The base of a dynamic rope for a sequence of `length` tokens (transformers' rule)."""
    factor = rope.scaling.get("factor", 1.0)
    stretch = factor * max(length, max_positions) / max_positions - (factor - 1)
    return rope.theta * math.pow(stretch, rotary_dim / (rotary_dim - 2))


def softmax_factor(rope: Rope) -> float:
    """What DeepSeek's attention scales its scores by on top of 1 / sqrt(d): mscale_all_dim's amplitude, squared."""
    every = rope.scaling.get("mscale_all_dim", 0.0)
    if rope.kind != "yarn" or not every:
        return 1.0
    return _mscale(rope.scaling.get("factor", 1.0), every) ** 2


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
    ramp = ((torch.arange(half, dtype=torch.float64) - low) / ((high - low) or 0.001)).clamp(0.0, 1.0)
    return frequency * (1 - ramp) + frequency / factor * ramp


def _yarn_amplitude(rope: Rope, factor: float) -> float:
    """By transformers' rule; the code of DeepSeek (and SpecForge's, SGLang's MLA) reads a lone mscale otherwise."""
    stated = rope.scaling.get("attention_factor")
    if stated is not None:
        return stated
    one, every = rope.scaling.get("mscale"), rope.scaling.get("mscale_all_dim")
    deepseek = _mscale(factor, 1.0 if one is None else one) / _mscale(factor, every or 0.0)
    if one and every:
        return deepseek
    transformers = _mscale(factor, 1.0)
    if abs(deepseek - transformers) > 1e-9:
        raise checkpoint_failure(
            "the drafter's yarn rope needs both `mscale` and `mscale_all_dim`, or neither: with one alone transformers "
            f"scales by {transformers:.4f} and DeepSeek's code by {deepseek:.4f}, found: mscale {one}, "
            f"mscale_all_dim {every}",
            hint="write the one that is missing into config.json as the trainer had it (DeepSeek's defaults: 1 and 0)",
        )
    return transformers


def _mscale(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0
