"""A chain's draft tokens as SGLang sets them, so that one server is not measured under several names. Pure."""

from collections.abc import Mapping
from typing import Any

CHAINED = ("EAGLE", "EAGLE3")
"""Algorithms of which a server at topk 1 drafts `num_steps + 1` tokens, whatever is asked (SGLang 0.4.8 and later)."""


def as_served(changes: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """What a point sets over `base`, the `num_draft_tokens` of a chain put right; all else as it was."""
    settings = {**base, **changes}
    steps, tokens = settings.get("num_steps"), settings.get("num_draft_tokens")
    is_eagle = str(settings.get("algorithm", "")).upper() in CHAINED and settings.get("attach_url") is None
    if not is_eagle or settings.get("eagle_topk") != 1 or not isinstance(steps, int) or not isinstance(tokens, int):
        return changes
    return changes if tokens == steps + 1 else {**changes, "num_draft_tokens": steps + 1}
