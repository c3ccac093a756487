"""A chain's draft tokens as SGLang sets them, so that one server is not measured under several names. Pure."""

from collections.abc import Mapping
from typing import Any

CHAINED = ("EAGLE", "EAGLE3")
"""Algorithms of which a server at topk 1 drafts `num_steps + 1` tokens, whatever is asked (SGLang 0.4.8 and later)."""
ALIASES = {"NEXTN": "EAGLE"}
"""As SGLang resolves them before anything else."""


def algorithm_of(name: str) -> str:
    """An algorithm as the server calls it, which takes any case."""
    upper = name.upper()
    return ALIASES.get(upper, upper)


def as_called(settings: dict[str, Any]) -> dict[str, Any]:
    """A job's settings, or a point's, with the algorithm as the server calls it."""
    name = settings.get("algorithm")
    return {**settings, "algorithm": algorithm_of(name)} if isinstance(name, str) else settings


def is_chained(algorithm: str) -> bool:
    """Whether a server of this algorithm at topk 1 drafts a chain."""
    return algorithm_of(algorithm) in CHAINED


def as_served(changes: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """What a point sets over `base`, algorithm and `num_draft_tokens` of a chain put right; all else as it was."""
    settings = {**base, **changes}
    if settings.get("attach_url") is not None:
        return changes
    changes = as_called(changes)
    steps, tokens = settings.get("num_steps"), settings.get("num_draft_tokens")
    is_chain = is_chained(str(settings.get("algorithm", ""))) and settings.get("eagle_topk") == 1
    if not is_chain or not isinstance(steps, int) or not isinstance(tokens, int) or tokens == steps + 1:
        return changes
    return {**changes, "num_draft_tokens": steps + 1}
