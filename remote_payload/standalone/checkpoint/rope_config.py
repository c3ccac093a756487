"""The rotary embedding that a config.json asks for, refused by name where this test computes another.

Keys are read as transformers 5 reads them, which SGLang 0.5.23, SpecForge 0.2 and speculators 0.9 build on:
`rope_scaling`, where it is given, stands for all of `rope_parameters`; a theta inside wins over `rope_theta` beside it.
Differing spellings are told by `rope_conflicts`.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from remote_payload.failure import checkpoint_failure
from remote_payload.standalone.checkpoint.config_values import is_one, number, told

RopeKind = Literal["default", "linear", "llama3", "yarn", "dynamic"]
ROPE_KINDS: dict[str, RopeKind] = {
    "default": "default",
    "linear": "linear",
    "llama3": "llama3",
    "yarn": "yarn",
    "deepseek_yarn": "yarn",
    "dynamic": "dynamic",
    "mrope": "default",
}
"""On text all sections of a multimodal rope hold the same position, so `mrope` is the default one."""
ROPE_NUMBERS = (
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "low_freq_factor",
    "mscale",
    "mscale_all_dim",
    "original_max_position_embeddings",
)
NEEDED: dict[RopeKind, tuple[str, ...]] = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
"""What transformers and SGLang read without a value of their own."""
MAY_BE_ZERO = ("mscale", "mscale_all_dim")
"""DeepSeek's code takes 0 as `not there`."""
HARMLESS = (
    "rope_type",
    "type",
    "rope_theta",
    "mrope_section",
    "mrope_interleaved",
    "finetuned",
    "partial_rotary_factor",
    *ROPE_NUMBERS,
)
"""Keys that are followed, or that change nothing."""
LARGEST = 1e12
DEFAULT_THETA = 10000.0


@dataclass(frozen=True, kw_only=True)
class Rope:
    """A rotary embedding; `scaling` keeps the numbers of `rope_scaling` or `rope_parameters`."""

    kind: RopeKind
    theta: float
    scaling: dict[str, float] = field(default_factory=dict, hash=False)
    interleaved: bool = False
    """Pairs are neighbours (2i, 2i+1), as in DeepSeek's MLA, instead of halves (i, i + d/2)."""
    rotary_dim: int | None = None
    """How many leading numbers of a head are turned (`partial_rotary_factor`); None = all."""
    label: str = field(default="declared", compare=False)
    """What readings call it."""


def read_rope(
    value: dict[str, Any],
    *,
    head_dim: int | None = None,
    interleaved: bool = False,
    whose: str = "drafter",
    label: str = "declared",
) -> Rope:
    """The rotary embedding of a flat config; `head_dim` is what `partial_rotary_factor` is a part of.

    Raises JobFailure(checkpoint).
    """
    scaling = _parameters(value, whose)
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if not isinstance(kind, str) or kind not in ROPE_KINDS:
        raise checkpoint_failure(
            f"the {whose}'s rotary embedding must be one of {', '.join(ROPE_KINDS)}, found: {told(kind)}",
            hint="the test would place positions wrongly, so it is refused",
        )
    _refuse_others(scaling, whose)
    numbers = {key: number(scaling, key, 1.0, LARGEST) for key in ROPE_NUMBERS if _given(scaling, key)}
    if value.get("original_max_position_embeddings") is not None and ROPE_KINDS[kind] in ("llama3", "yarn"):
        key = "original_max_position_embeddings"  # beside the dict it wins, as in Phi-3's configs
        numbers[key] = number(value, key, 1.0, LARGEST)
    lacking = [key for key in NEEDED.get(ROPE_KINDS[kind], ()) if key not in numbers]
    if lacking:
        raise checkpoint_failure(
            f"the {whose}'s rotary embedding `{kind}` needs {', '.join(f'`{key}`' for key in lacking)} in config.json, "
            "found: nothing",
            hint="engines fail without, or take a value of their own; write down those of training",
        )
    theta = number(scaling, "rope_theta", number(value, "rope_theta", DEFAULT_THETA, LARGEST), LARGEST)
    if theta <= 1:
        raise checkpoint_failure(f"the {whose}'s config.json needs a `rope_theta` above 1, found: {theta:g}")
    if ROPE_KINDS[kind] == "llama3" and numbers.get("low_freq_factor", 1.0) == numbers.get("high_freq_factor", 4.0):
        raise checkpoint_failure(
            f"the {whose}'s config.json needs a `high_freq_factor` other than `low_freq_factor`, found: "
            f"{numbers.get('low_freq_factor', 1.0):g}"
        )
    return Rope(
        kind=ROPE_KINDS[kind],
        theta=theta,
        scaling=numbers if ROPE_KINDS[kind] != "default" else {},
        interleaved=interleaved,
        rotary_dim=_rotary_dim(value, scaling, head_dim, whose),
        label=label,
    )


def rope_conflicts(value: dict[str, Any]) -> list[str]:
    """Spellings of the rotary embedding that contradict each other, in words."""
    conflicts = []
    parameters, scaling = value.get("rope_parameters"), value.get("rope_scaling")
    if isinstance(parameters, dict) and isinstance(scaling, dict) and parameters and scaling:
        theirs, ours = (_comparable(found) for found in (parameters, scaling))
        if theirs != ours:
            conflicts.append(f"`rope_scaling: {told(scaling)}` against `rope_parameters: {told(parameters)}`")
    theta = value.get("rope_theta")
    for key, found in (("rope_parameters", parameters), ("rope_scaling", scaling)):
        inside = found.get("rope_theta") if isinstance(found, dict) else None
        if theta is not None and inside is not None and inside != theta:
            conflicts.append(f"`rope_theta: {told(theta)}` against `{key}.rope_theta: {told(inside)}`")
    return conflicts


def words_of(rope: Rope) -> str:
    """A rotary embedding in words: `theta 10000`, `theta 50000 yarn factor 64`."""
    words = [f"theta {rope.theta:g}"]
    if rope.kind != "default":
        words.append(f"{rope.kind} factor {rope.scaling.get('factor', 1.0):g}")
    if rope.interleaved:
        words.append("interleaved")
    if rope.rotary_dim is not None:
        words.append(f"first {rope.rotary_dim} of a head")
    return " ".join(words)


def _comparable(found: dict[str, Any]) -> dict[str, Any]:
    kind = found.get("rope_type") or found.get("type")
    return {key: item for key, item in found.items() if key not in ("rope_theta", "type")} | {"rope_type": kind}


def _parameters(value: dict[str, Any], whose: str) -> dict[str, Any]:
    for key in ("rope_scaling", "rope_parameters"):
        found = value.get(key)
        if found is not None and not isinstance(found, dict):
            raise checkpoint_failure(f"the {whose}'s config.json needs an object `{key}`, found: {told(found)}")
    chosen = value.get("rope_scaling") or value.get("rope_parameters") or {}
    kinds = [inner for inner in chosen.values() if isinstance(inner, dict)]
    if not kinds:
        return dict(chosen)
    named = [chosen[kind] for kind in dict.fromkeys(_layer_types(value)) if isinstance(chosen.get(kind), dict)]
    first = (named or kinds)[0]
    if any(other != first for other in named or kinds):
        raise checkpoint_failure(
            f"the {whose}'s layers must share one rotary embedding, found one a layer type: {told(chosen)}",
            hint="the test would place positions wrongly, so it is refused",
        )
    return dict(first)


def _layer_types(value: dict[str, Any]) -> list[str]:
    found = value.get("layer_types")
    return [kind for kind in found if isinstance(kind, str)] if isinstance(found, list) else []


def _refuse_others(scaling: dict[str, Any], whose: str) -> None:
    """Never approximate: whatever is new."""
    others = [
        f"{key}: {told(found)}" for key, found in scaling.items() if key not in HARMLESS and not _idle(key, found)
    ]
    if others:
        raise checkpoint_failure(
            f"the {whose}'s config.json asks for a rotary embedding this test does not follow yet: "
            f"{', '.join(others[:5])}",
            hint="the test would place positions wrongly, so it is refused",
        )


def _idle(key: str, found: object) -> bool:
    """Whether a key that is not followed has the value at which it changes nothing."""
    if key in ("attn_factor", "extrapolation_factor"):
        return is_one(found)
    return found is None or (key in ("truncate", "apply_yarn_scaling") and found is True)


def _given(scaling: dict[str, Any], key: str) -> bool:
    found = scaling.get(key)
    return found is not None and not (key in MAY_BE_ZERO and found == 0)


def _rotary_dim(value: dict[str, Any], scaling: dict[str, Any], head_dim: int | None, whose: str) -> int | None:
    part = number(scaling, "partial_rotary_factor", number(value, "partial_rotary_factor", 1.0, 1.0), 1.0)
    if part == 1 or head_dim is None:
        return None
    size = int(head_dim * part)
    if size < 2 or size % 2:
        raise checkpoint_failure(
            f"the {whose}'s `partial_rotary_factor` must leave an even number of a head's {head_dim} numbers to turn, "
            f"found: {part:g}"
        )
    return size
