"""A server that is still to be started: how it is asked for, and what its steps cost the last time."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The server as it is going to be asked for, beside what the host's SGLang makes of that; nothing was run."""

    num_steps: int | None
    eagle_topk: int | None
    num_draft_tokens: int | None
    is_chain: bool
    """Whether it drafts a chain, of which SGLang 0.4.8 and later makes `num_steps + 1` tokens, whatever is asked."""
    sglang_version: str | None = None
    forces_draft_tokens: bool | None = None
    """Whether the installed source makes a chain's draft tokens num_steps + 1; None = it was not read."""
    draft_config: str | None = None
    """Text of the drafter's config.json; None = it was not read."""
    target_config: str | None = None
    fc_shape: tuple[int, int] | None = None
    """Rows and columns of the drafter's fc.weight; None = not read, or not found."""


@dataclass(frozen=True, kw_only=True)
class EarlierCost:
    """What a speculative step of this pair cost on this host in an earlier benchmark, at one number of steps."""

    run_id: str
    steps: int
    ratio: float
    """r: accept length over speed-up."""
    low: float
    high: float
    """Ends of its 95 % interval."""
