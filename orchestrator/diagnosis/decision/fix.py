"""What mends the named causes, as data: a patch of the drafter's config.json, server arguments, or SGLang itself.

The drafter's part is the standalone test's own (`diagnosis.fix`). Without one, a capture's word for what is fed and the
trainer's for what was trained on are enough for the ids.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.compare.served import effective_int
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.row import Row
from orchestrator.diagnosis.decision.rule_axis import is_stale
from orchestrator.diagnosis.decision.state_words import layers
from orchestrator.diagnosis.fix import drafter_fix, names_already
from orchestrator.diagnosis.installed_ids import spelling_for
from orchestrator.diagnosis.sglang_config import eagle_block
from orchestrator.diagnosis.sglang_ids import Spelling

_SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
WIRING = (
    "fed other states",
    "fed other states, by the trainer's word alone",
    "fed other states, beside broken files",
    "mis-fed by the rule",
    "mis-fed as trained",
    "mis-read",
)
"""Rows of the table that a change of config.json may mend."""
ARGUMENTS = ("arguments changed", "arguments that will be changed")
"""Rows of the table that a change of the server's flags mends."""


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
    by_hand: tuple[str, ...] = ()
    """What needs other weights, another engine or another training, a line each."""
    server: tuple[ServerEdit, ...] = ()
    sglang: str | None = None
    """What SGLang must be able to do first, in words; None = it can."""
    valid_for: str | None = None
    """Versions of SGLang for which the ids are spelled."""
    rests_on: str | None = None
    """What names the states that the ids are for, in words, where nobody measured that it reads them better."""

    @property
    def patch_json(self) -> str:
        """The patch as the host's `correct` takes it."""
        return json.dumps(self.config)

    @property
    def can_be_applied(self) -> bool:
        """Whether a folder with another config.json is enough."""
        return bool(self.config) and self.sglang is None


def fix_for(known: Known, rows: Sequence[Row]) -> Fix | None:
    """The fix of what these rows name; None where there is none, or where two proofs speak against each other."""
    names = {row.name for row in rows if row.kind == "fault"}
    refuted = is_stale(known) and known.source is None  # ids by a table that the server's own states have refuted
    barred = refuted or known.disputed is not None or any(row.bars_fix for row in rows)
    own = _drafters(known) if names & set(WIRING) and not barred else None
    server = tuple(_server_edits(known)) if names & set(ARGUMENTS) else ()
    if own is None:
        return Fix(config={}, server=server) if server else None
    return replace(own, server=server)


def _drafters(known: Known) -> Fix | None:
    """The standalone test's own fix; without one, ids for what the drafter was trained on."""
    if known.offline is None:
        return _of_trained(known)
    wiring = known.offline.wiring
    found = drafter_fix(known.offline.measured.result, wiring)
    return _of_trained(known) if found is None else _spelled(known, found.patch, wiring.spelling, found.by_hand)


def _of_trained(known: Known) -> Fix | None:
    """From what was served and what it was trained on; None where that is not known, or the ids are there already."""
    if known.fed is None or known.trained is None or known.fed.states == known.trained:
        return None
    found, rests_on = spelling_for(known.trained, *known.target, known.source), _rests_on(known)
    if found.ids is None:
        unknown = known.target[0] is None and not found.installed
        return None if unknown else replace(_spelled(known, {}, found), rests_on=rests_on)
    if found.block_order is not None:
        order = f"SGLang joins states in layer order: re-order fc's column blocks to {list(found.block_order)} as well"
        return Fix(config={}, by_hand=(order,), sglang=found.needs, rests_on=rests_on)
    if known.offline is not None and names_already(known.offline.measured.result, found.ids):
        return None
    return replace(_spelled(known, {"eagle_config": eagle_block(found.ids)}, found), rests_on=rests_on)


def _rests_on(known: Known) -> str | None:
    """Whose word names the trained states where no reading does; None = they were read, and surely best."""
    trained, found = known.trained, None if known.offline is None else known.offline.contest
    if trained is None or (found is not None and trained == found.best):
        return None
    if found is not None:
        return f"the trainer's word for {layers(trained)}: {layers(found.best)} read as well on these rows"
    return f"the trainer's word for {layers(trained)} alone: no reading shows that the drafter reads them better"


def _spelled(known: Known, patch: Mapping[str, Any], spelling: Spelling | None, by_hand: tuple[str, ...] = ()) -> Fix:
    """The fix with what its ids, if it names any, need and are valid for."""
    named = spelling is not None and spelling.ids is not None and spelling.block_order is None
    if spelling is None:
        return Fix(config=patch, by_hand=by_hand)
    if spelling.installed:
        lack = spelling.needs or spelling.problem
        others = tuple(line for line in by_hand if line != lack)
        return Fix(config=patch, by_hand=others, sglang=lack, valid_for=spelling.valid_for if named else None)
    valid = f"{spelling.valid_for}, by table, not read on host" if named else None
    sglang = _beyond(spelling.problem) if spelling.ids is None else _too_old(known, spelling.valid_for)
    return Fix(config=patch, by_hand=by_hand, sglang=sglang if named or spelling.ids is None else None, valid_for=valid)


def _beyond(problem: str | None) -> str:
    return f"SGLang must be able to capture the trained states: {problem or 'no ids are known that serve them'}"


def _too_old(known: Known, valid_for: str) -> str | None:
    version = known.sglang_version
    if version is None or not is_outside(version, valid_for):
        return None
    return f"{valid_for} reads these ids as meant, installed is {version}: a newer version, or a patch of it"


def is_outside(version: str, valid_for: str) -> bool:
    """Whether `0.5.14` is surely not in words such as `SGLang 0.5.15 to 0.5.23`: below the first, that is.

    Versions newer than those that were looked at are taken to be like the newest.
    """
    since = re.search(r"SGLang (\d+(?:\.\d+)*)", valid_for)
    own = re.match(r"\d+(?:\.\d+)*", version)
    if since is None or own is None:
        return False
    return [int(part) for part in own.group().split(".")] < [int(part) for part in since.group(1).split(".")]


def _server_edits(known: Known) -> list[ServerEdit]:
    """The shape that the server runs anyway, asked for in so many words, so that before and after do the same work."""
    servers = () if known.served is None else known.served.result.servers
    server = next((item for item in servers if item.side == "spec"), None)
    if server is None:
        return _foreseen_edits(known)
    found = []
    for name in _SHAPE:
        value = effective_int(server, name)
        asked = next((fact.requested for fact in server.arguments if fact.name == name), None)
        if value is not None and asked is not None and asked != str(value):
            found.append(ServerEdit(name=name, value=str(value), why=f"asked for {asked}, runs with {value} anyway"))
    return found


def _foreseen_edits(known: Known) -> list[ServerEdit]:
    planned = known.planned
    if planned is None or planned.num_steps is None:
        return []
    value = planned.num_steps + 1
    why = f"asked for {planned.num_draft_tokens}, would run with {value} anyway"
    return [ServerEdit(name="speculative_num_draft_tokens", value=str(value), why=why)]
