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
from orchestrator.diagnosis.fix import drafter_fix
from orchestrator.diagnosis.installed_ids import InstalledIds, spell_installed
from orchestrator.diagnosis.sglang_config import eagle_block
from orchestrator.diagnosis.sglang_ids import Spelling, spell

_SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
WIRING = ("fed other states", "fed other states, beside broken files", "mis-fed by the rule", "mis-read")
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
    barred = known.disputed is not None or any(row.bars_fix for row in rows)
    own = _drafters(known) if names & set(WIRING) and not barred else None
    server = tuple(_server_edits(known)) if names & set(ARGUMENTS) else ()
    if own is None:
        return Fix(config={}, server=server) if server else None
    return replace(own, server=server)


def _drafters(known: Known) -> Fix | None:
    """The standalone test's own fix; without one, ids for what the trainer says it was trained on."""
    if known.offline is None:
        return _of_capture(known)
    wiring = known.offline.wiring
    spelling, states = wiring.spelling, wiring.best.facts.states
    installed = (
        None if spelling is None or states is None else installed_spelling(known, tuple(sorted(states)), spelling)
    )
    if spelling is not None and installed is not None:
        blocks = spelling.block_order if spelling.ids is not None else _block_order(states or ())
        own = replace(spelling, ids=installed.ids, block_order=blocks, problem=installed.needs)
        wiring = replace(wiring, spelling=own)
    found = drafter_fix(known.offline.measured.result, wiring)
    if found is None:
        return _of_capture(known)
    if installed is not None:
        return _as_installed(found.patch, installed, tuple(line for line in found.by_hand if line != installed.needs))
    sglang = None
    if spelling is not None and spelling.ids is None:
        sglang = _beyond(spelling.problem)
    elif found.valid_for is not None:
        sglang = _too_old(known, found.valid_for)
    return Fix(config=found.patch, by_hand=found.by_hand, sglang=sglang, valid_for=_by_table(found.valid_for))


def _of_capture(known: Known) -> Fix | None:
    """From what was served and what was trained alone; None where the trainer did not say."""
    if known.fed is None or known.fed.trained is None or known.fed.states == known.fed.trained:
        return None
    found = spell(known.fed.trained, *known.target)
    installed = installed_spelling(known, tuple(sorted(known.fed.trained)), found)
    if installed is None and found.ids is None:
        return Fix(config={}, sglang=_beyond(found.problem)) if known.target[0] is not None else None
    blocks = _block_order(known.fed.trained)
    if blocks is not None:
        order = f"SGLang joins states in layer order: re-order fc's column blocks to {list(blocks)} as well"
        return Fix(config={}, by_hand=(order,), sglang=None if installed is None else installed.needs)
    if installed is not None:
        return _as_installed({} if installed.ids is None else {"eagle_config": eagle_block(installed.ids)}, installed)
    assert found.ids is not None
    sglang = _too_old(known, found.valid_for)
    valid = _by_table(found.valid_for)
    return Fix(config={"eagle_config": eagle_block(found.ids)}, sglang=sglang, valid_for=valid)


def installed_spelling(known: Known, states: tuple[int, ...], table: Spelling) -> InstalledIds | None:
    """What the source that was read makes of it; None = none was read, or it does not tell."""
    read = known.source
    return None if read is None else spell_installed(read.rule, read.target_config, states, table)


def _as_installed(patch: Mapping[str, Any], installed: InstalledIds, by_hand: tuple[str, ...] = ()) -> Fix:
    valid = installed.version if patch and installed.ids is not None else None
    return Fix(config=patch, by_hand=by_hand, sglang=installed.needs, valid_for=valid)


def _block_order(states: tuple[int, ...]) -> tuple[int, ...] | None:
    """The block of fc's columns to put at each place; None where they stand in layer order."""
    ordered = sorted(states)
    return None if list(states) == ordered else tuple(states.index(state) for state in ordered)


def _by_table(valid_for: str | None) -> str | None:
    """Versions by this tool's own table, said as such."""
    return None if valid_for is None else f"{valid_for}, by table, not read on host"


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
