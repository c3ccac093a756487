"""What mends the named causes, as data: a patch of the drafter's config.json, server arguments, or SGLang itself.

Only what is proven goes into the patch: ids of a reading that is surely ahead, and flags of the computation that are
surely worth something. Everything else stays in words, beside its finding.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.compare.served import effective_int
from orchestrator.diagnosis.decision.fed_axis import layers
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.table import Row
from orchestrator.diagnosis.sglang_config import NESTED, eagle_block
from orchestrator.diagnosis.sglang_ids import Spelling, spell
from orchestrator.diagnosis.verdict import Effect

_SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
_FLAGS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("residual", "raw"): {"norm_before_residual": False},
    ("feedback", "normed"): {"norm_output": True},
    ("feedback", "raw"): {"norm_output": None},
    ("input_norm", "joint"): {"norm_before_fc": True},
    ("input_norm", "per_slot"): {"fc_norm": True},
    ("input_norm", "none"): {"norm_before_fc": False, "fc_norm": False},
    ("rope", "unscaled"): {"rope_scaling": None},
}
"""Config lines of each choice that SGLang reads; null deletes a key."""


@dataclass(frozen=True, kw_only=True)
class ServerEdit:
    """One server argument, by its name in `/server_info`."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Fix:
    """What to change. Any part may be empty, not all of them."""

    config: Mapping[str, Any]
    """JSON merge patch (RFC 7396) of the drafter's config.json; null deletes a key. Empty = nothing there."""
    server: tuple[ServerEdit, ...] = ()
    block_order: tuple[int, ...] | None = None
    """Set where fc's blocks of columns must be re-ordered as well: the block to put at each place."""
    sglang: str | None = None
    """What SGLang must be able to do first, in words; None = it can."""
    valid_for: str | None = None
    """Versions of SGLang for which the ids are spelled."""

    @property
    def patch_json(self) -> str:
        """The patch as the host's `correct` takes it."""
        return json.dumps(self.config)

    @property
    def can_be_applied(self) -> bool:
        """Whether a folder with another config.json is enough."""
        return bool(self.config) and self.block_order is None and self.sglang is None


def fix_for(known: Known, rows: Sequence[Row]) -> Fix | None:
    """The fix of what these rows name; None where there is none that is data."""
    names = {row.name for row in rows if row.kind == "fault"}
    config: dict[str, Any] = {}
    spelling, sglang = None, None
    if {"fed other states", "mis-fed by the rule"} & names:
        spelling, sglang = _spelling(known)
        if spelling is not None and spelling.ids is not None:
            config["eagle_config"] = dict(eagle_block(spelling.ids))
    if "mis-read" in names and known.offline is not None:
        for effect in known.offline.wiring.misread:
            config |= _flags(effect)
    if known.offline is not None and _is_nested(known.offline.measured.result.checkpoint.config_json):
        config = {}  # speculators' nested config is written anew as a whole, which the wiring's own lines hold
    server = tuple(_server_edits(known)) if "arguments changed" in names else ()
    order = None if spelling is None else spelling.block_order
    if not (config or server or sglang or order):
        return None
    valid = None if spelling is None or spelling.ids is None else spelling.valid_for
    return Fix(config=config, server=server, block_order=order, sglang=sglang, valid_for=valid)


def _spelling(known: Known) -> tuple[Spelling | None, str | None]:
    """Ids that feed the trained states, and what SGLang would have to be able to do first."""
    own = None if known.offline is None else known.offline.wiring.spelling
    trained = known.trained
    if own is None and trained is not None and known.fed is not None and known.fed.trained is not None:
        own = spell(trained, *known.target)
    if own is None:
        return None, None
    if own.ids is None:
        what = "the trained states" if trained is None else layers(trained)
        return own, f"SGLang must be able to capture {what}: {own.problem}"
    version = known.sglang_version
    if version is not None and is_outside(version, own.valid_for):
        return own, f"{own.valid_for} reads these ids as meant; installed is {version}: another version, or a patch"
    return own, None


def is_outside(version: str, valid_for: str) -> bool:
    """Whether `0.5.14` is surely not in words such as `SGLang 0.5.15 to 0.5.23`: below the first, that is.

    Versions newer than those that were looked at are taken to be like the newest.
    """
    since = re.search(r"SGLang (\d+(?:\.\d+)*)", valid_for)
    own = re.match(r"\d+(?:\.\d+)*", version)
    if since is None or own is None:
        return False
    return [int(part) for part in own.group().split(".")] < [int(part) for part in since.group(1).split(".")]


def _flags(effect: Effect) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, best in zip(effect.keys, effect.best, strict=True):
        found |= _FLAGS.get((key, best), {})
        if key == "rope" and best.startswith("theta "):
            try:
                found["rope_theta"] = float(best.removeprefix("theta "))
            except ValueError:
                continue
    return found


def _is_nested(config_json: str) -> bool:
    try:
        value = json.loads(config_json)
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get(NESTED), dict)


def _server_edits(known: Known) -> list[ServerEdit]:
    """The shape that the server runs anyway, asked for in so many words, so that before and after do the same work."""
    servers = () if known.served is None else known.served.result.servers
    server = next((item for item in servers if item.side == "spec"), None)
    if server is None:
        return []
    found = []
    for name in _SHAPE:
        value = effective_int(server, name)
        asked = next((fact.requested for fact in server.arguments if fact.name == name), None)
        if value is not None and asked is not None and asked != str(value):
            found.append(ServerEdit(name=name, value=str(value), why=f"asked for {asked}, runs with {value} anyway"))
    return found
