"""What each part of a drafter's computation may be, for one checkpoint, and what need not be tried, with the reason."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from remote_payload.schema.standalone import SkippedReading
from remote_payload.standalone.checkpoint.draft_vocabulary import SENSIBLE_SHARE
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.graph import Graph, GroupedAttention

THETAS = (1e4, 5e5, 1e6)
"""Rotary bases of the common targets; the reference trainer knows 10000 alone, whatever config.json says."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The values that each part of `Graph` may take; the checkpoint's own is among them."""

    own: Graph
    values: Mapping[str, tuple[Any, ...]]
    """Field of Graph -> values; fields left out stay as they are."""
    skipped: tuple[SkippedReading, ...]

    def changed(self, base: Graph) -> list[Graph]:
        """Every graph that differs from `base` in one part."""
        return [
            replace(base, **{name: value})
            for name, values in self.values.items()
            for value in values
            if value != getattr(base, name)
        ]

    def computable(self, missing: Callable[[Graph], str | None]) -> "Choices":
        """Those alone that the drafter has all it takes for; `missing` says what it lacks for a graph."""
        values, skipped = {}, list(self.skipped)
        for name, all_values in self.values.items():
            lacking = {value: missing(replace(self.own, **{name: value})) for value in all_values}
            skipped += [
                SkippedReading(name=f"{name}={getattr(value, 'label', value)}", reason=f"the checkpoint lacks {what}")
                for value, what in lacking.items()
                if what is not None
            ]
            values[name] = tuple(value for value, what in lacking.items() if what is None)
        return Choices(own=self.own, values=values, skipped=tuple(skipped))

    def controls(self, base: Graph) -> list[Graph]:
        """Without its states, or with those of the token beside: never a candidate, a measure of the rest."""
        return [
            replace(base, states="zeroed"),
            replace(base, states="shuffled"),
            replace(base, states="earlier"),
            replace(base, states="later"),
        ]


def choices(checkpoint: Checkpoint, steps: int) -> Choices:
    """The parts of this checkpoint's computation that can be read in more than one way."""
    found, skipped = _Found(checkpoint.graph), []
    names = {fact.name for fact in checkpoint.facts.tensors}
    found.among("residual", ("raw", "normed"), "" if _fed(checkpoint) else "there is no hidden_norm to apply")
    found.among("feedback", ("raw", "normed"), "" if steps > 1 else "a chain of one step feeds nothing back")
    _input_norms(found, checkpoint, names)
    found.among("final_norm", ("applied", "none"), "")
    if isinstance(checkpoint.config.attention, GroupedAttention) and any(checkpoint.config.attention.windows):
        found.among("windows", ("kept", "none"), "")
    found.among("embedding", ("target", "draft"), "", available=checkpoint.embeddings)
    mended = ("mended",) if "mended" in checkpoint.vocabularies else ()
    found.among(
        "vocabulary",
        ("offset", "absolute", "identity", *mended),
        "",
        available=checkpoint.vocabularies,
        lacking=lambda reading: _no_vocabulary(reading, checkpoint),
    )
    _ropes(found, checkpoint)
    relative = "rotary angles are relative, another start turns queries and keys alike: it cannot change anything"
    found.among("position_start", (0, 1), "" if checkpoint.graph.rope.kind == "dynamic" else relative)
    skipped += found.skipped
    return Choices(own=checkpoint.graph, values=found.values, skipped=tuple(skipped))


class _Found:
    """Collects values and what was left out."""

    def __init__(self, own: Graph) -> None:
        self.own = own
        self.values: dict[str, tuple[Any, ...]] = {}
        self.skipped: list[SkippedReading] = []

    def among(
        self,
        name: str,
        values: tuple[Any, ...],
        against: str,
        *,
        available: Container[str] | None = None,
        lacking: Callable[[str], str] = lambda _: "there is no other one, or it is the same",
    ) -> None:
        """Values of one field; all but the own are skipped for the reason `against`, or where not `available`."""
        own = getattr(self.own, name)
        kept = [own]
        for value in values:
            if value == own:
                continue
            missing = available is not None and value not in available
            if against or missing:
                self.skip(f"{name}={value}", against or lacking(str(value)))
            else:
                kept.append(value)
        if len(kept) > 1:
            self.values[name] = tuple(kept)

    def skip(self, name: str, reason: str) -> None:
        self.skipped.append(SkippedReading(name=name, reason=reason))


def _fed(checkpoint: Checkpoint) -> bool:
    return any(fact.name == "layers.0.hidden_norm.weight" for fact in checkpoint.facts.tensors)


def _no_vocabulary(reading: str, checkpoint: Checkpoint) -> str:
    """Why d2t is not read so: it leads to too few tokens, or to those of the checkpoint's own reading."""
    facts = checkpoint.facts.vocabulary
    known = () if facts is None else facts.readings
    found = next((item for item in known if item.reading == reading), None)
    if facts is None or found is None:
        return "there is no d2t"
    if found.distinct < SENSIBLE_SHARE * facts.draft_vocab_size:
        return f"d2t read so leads to {found.distinct} different tokens of {facts.draft_vocab_size}: no vocabulary"
    return "d2t read so leads to the same tokens"


def _input_norms(found: _Found, checkpoint: Checkpoint, names: set[str]) -> None:
    if checkpoint.graph.input != "states":
        return found.among("input_norm", ("none", "joint", "per_slot"), "no captured states are joined")
    stored = {"none"}
    if "input_norm.weight" in names:
        stored.add("joint")
    if "fc_norm.0.weight" in names:
        stored.add("per_slot")
    return found.among(
        "input_norm",
        ("none", "joint", "per_slot"),
        "",
        available=stored,
        lacking=lambda _: "the checkpoint has no such tensor",
    )


def _ropes(found: _Found, checkpoint: Checkpoint) -> None:
    """Other bases, whole heads, without scaling, as the target has it; those that turn as the own one are no other."""
    own, target = checkpoint.graph.rope, checkpoint.target.rope
    ropes = [replace(own, theta=theta, label=f"theta {theta:g}") for theta in THETAS]
    ropes.append(replace(own, interleaved=not own.interleaved, label="halves" if own.interleaved else "interleaved"))
    if own.rotary_dim is not None:
        ropes.append(replace(own, rotary_dim=None, label="full"))
    if own.kind == "default":
        found.skip("rope=unscaled", "the checkpoint's own is not scaled")
    else:
        ropes.append(replace(own, kind="default", scaling={}, label="unscaled"))
    if target is None:
        found.skip("rope=target's", "the target's rotary embedding is not known")
    else:
        ropes.append(replace(target, interleaved=own.interleaved, rotary_dim=own.rotary_dim, label="target's"))
    kept: list[Rope] = [own]
    for rope in ropes:
        twin = next((other for other in kept if other == rope), None)
        if twin is None:
            kept.append(rope)
        else:
            what = "the checkpoint's own" if twin is own else f"`{twin.label}`"
            found.skip(f"rope={rope.label}", f"it is {what}")
    found.values["rope"] = tuple(kept)
