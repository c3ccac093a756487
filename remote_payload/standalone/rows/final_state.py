"""Whether a captured final state already went through the target's final norm.

After an RMS norm with weights w, the root mean square of f / w is 1 at every token, whatever the model said; before it,
the value is the size of the residual stream. So the states themselves tell, without running the target.
"""

from typing import Literal

import torch

NEAR_ONE = 0.05
"""bfloat16 rounding moves the root mean square by about 0.1 %, real residual streams are off by far more."""


def final_state_kind(final: torch.Tensor, norm: torch.Tensor) -> Literal["post_norm", "pre_norm"]:
    """Judge final states (T, Ht) by the target's norm weights (Ht,), also in Gemma's form (times 1 + w)."""
    for weight in (norm.float(), norm.float() + 1):
        usable = weight.abs() > 1e-3  # a dead channel says nothing
        size = (final.float()[:, usable] / weight[usable]).square().mean(dim=1).sqrt()  # (T,)
        if float((size - 1).abs().median()) < NEAR_ONE:
            return "post_norm"
    return "pre_norm"
