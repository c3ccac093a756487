"""The rotary embedding that a drafter's config.json asks for, refused by name where this test computes another."""

from dataclasses import dataclass, field
from typing import Any, Literal

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import is_one, number, told

RopeKind = Literal["default", "linear", "llama3", "yarn"]
ROPE_KINDS: dict[str, RopeKind] = {"default": "default", "linear": "linear", "llama3": "llama3", "yarn": "yarn"}
ROPE_NUMBERS = (
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "low_freq_factor",
    "original_max_position_embeddings",
)
HARMLESS = ("rope_type", "type", "rope_theta", "mrope_section", "mrope_interleaved", *ROPE_NUMBERS)
"""Keys that are followed, or that change nothing: on text, all sections of a multimodal rope hold the same position."""
LARGEST = 1e12


@dataclass(frozen=True, kw_only=True)
class Rope:
    """Rotary embedding of a drafter; `scaling` keeps the numbers of `rope_scaling` or `rope_parameters`."""

    kind: RopeKind
    theta: float
    scaling: dict[str, float] = field(default_factory=dict, hash=False)
    interleaved: bool = False
    """Pairs are neighbours (2i, 2i+1), as in DeepSeek's MLA, instead of halves (i, i + d/2)."""
    rotary_dim: int | None = None
    """How many leading numbers of a head are turned (`partial_rotary_factor`); None = all."""
    label: str = field(default="declared", compare=False)
    """What readings call it."""


def read_rope(value: dict[str, Any]) -> Rope:
    """Transformers 5 writes `rope_parameters` (with rope_theta), transformers 4 `rope_theta` and `rope_scaling`.

    Raises JobFailure(checkpoint).
    """
    scaling: dict[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        found = value.get(key) or {}
        if not isinstance(found, dict):
            raise checkpoint_failure(f"the drafter's config.json needs an object `{key}`, found: {told(found)}")
        scaling |= found
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if not isinstance(kind, str) or kind not in ROPE_KINDS:
        raise checkpoint_failure(
            f"the drafter's rotary embedding must be one of {', '.join(ROPE_KINDS)}, found: {told(kind)}",
            hint="the test would place positions wrongly, so it is refused",
        )
    _refuse_others(value, scaling)
    numbers = {key: number(scaling, key, 1.0, LARGEST) for key in ROPE_NUMBERS if scaling.get(key) is not None}
    theta = number(value, "rope_theta", number(scaling, "rope_theta", 10000.0, LARGEST), LARGEST)
    if theta <= 1:
        raise checkpoint_failure(f"the drafter's config.json needs a `rope_theta` above 1, found: {theta:g}")
    if ROPE_KINDS[kind] == "llama3" and numbers.get("low_freq_factor", 1.0) == numbers.get("high_freq_factor", 4.0):
        raise checkpoint_failure(
            "the drafter's config.json needs a `high_freq_factor` other than `low_freq_factor`, found: "
            f"{numbers.get('low_freq_factor', 1.0):g}"
        )
    return Rope(kind=ROPE_KINDS[kind], theta=theta, scaling=numbers)


def _refuse_others(value: dict[str, Any], scaling: dict[str, Any]) -> None:
    """Never approximate: yarn's mscale, a part of the dimensions rotated, and whatever is new."""
    others = [
        f"{key}: {told(found)}" for key, found in scaling.items() if key not in HARMLESS and not _idle(key, found)
    ]
    if not is_one(value.get("partial_rotary_factor")):
        others.append(f"partial_rotary_factor: {told(value['partial_rotary_factor'])}")
    if others:
        raise checkpoint_failure(
            "the drafter's config.json asks for a rotary embedding this test does not follow yet: "
            f"{', '.join(others[:5])}",
            hint="the test would place positions wrongly, so it is refused",
        )


def _idle(key: str, found: object) -> bool:
    """Whether a key that is not followed has the value at which it changes nothing."""
    if key == "partial_rotary_factor":
        return is_one(found)
    return found is None or (key == "truncate" and found is True)
