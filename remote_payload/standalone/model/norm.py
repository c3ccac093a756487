"""RMS norm."""

import torch


def rms_norm(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """As Llama does it: statistics in float32, weights in the values' dtype; torch.rms_norm came after torch 2.3."""
    wide = values.float()
    wide = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return wide.to(values.dtype) * weight
