"""Ids spelled for the very SGLang that is installed: candidates held against its own source, none merely looked up."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.diagnosis.effective_capture import Effective, names, resolve
from orchestrator.diagnosis.sglang_config import eagle_block
from orchestrator.diagnosis.sglang_ids import Spelling, block_order, spell
from remote_payload.schema.capture_rule import CaptureRule

EMBEDDING = "before layer 0 there is no residual"
"""How `resolve` begins to say that a server cannot take the embedding output."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The deciding pieces of the SGLang that is installed, by which ids are spelled for it."""

    rule: CaptureRule
    target_config: str | None
    """Text of the target's config.json; None = it was not read."""
    pipeline_stages: int = 1
    """Over which the server spreads the target's layers."""


@dataclass(frozen=True, kw_only=True)
class InstalledIds:
    """What the installed source makes of the ids that were tried."""

    version: str
    """e.g. `SGLang 0.5.12, as installed`."""
    ids: tuple[int, ...] | None
    """Those that feed just the wanted states; with `needs`, those that would once it is there; None = none would."""
    needs: str | None = None
    """Which change of this SGLang is needed first; None = the ids work as it is."""


def spelling_for(
    states: tuple[int, ...], target_class: str | None, target_layers: int | None, source: Source | None
) -> Spelling:
    """THE ids for `states`, in the order of the drafter's fc: by the installed source where one was read and tells.

    Else by the table (`sglang_ids.spell`), which names the versions that it was made of.
    """
    table = spell(states, target_class, target_layers)
    ordered = tuple(sorted(states))
    found = None if source is None else spell_installed(source, ordered, table)
    if found is None:
        return table
    return Spelling(
        ids=found.ids,
        rule="of its source",
        valid_for=found.version,
        block_order=None if found.ids is None else block_order(states),
        problem=found.needs if found.ids is None else None,
        needs=None if found.ids is None else found.needs,
        installed=True,
    )


def spell_installed(source: Source, states: tuple[int, ...], table: Spelling) -> InstalledIds | None:
    """Ids that feed `states` (in layer order) by the installed source; None where it does not tell.

    `table` names the ids that are tried first, and a version that could do it where this one cannot.
    """
    rule = source.rule
    if rule.path is None or rule.target_class is None:
        return None
    version = f"SGLang {rule.version or 'of unknown version'}"
    tried = [(ids, _followed(source, ids)) for ids in _candidates(states, table)]
    works = next((ids for ids, found in tried if found.states == states and found.problem is None), None)
    if works is not None:
        return InstalledIds(version=f"{version}, as installed", ids=works)
    if rule.found is None:
        needs = f"{version} has no model class {rule.target_class}: {_newer(table)}"
        return InstalledIds(version=version, ids=None, needs=needs)
    if any(found.states is None and not found.fails for _, found in tried):
        return None
    meant = next((one for one in tried if _is_meant(states, one[1])), None)
    if meant is not None:
        return InstalledIds(version=f"{version} with that change", ids=meant[0], needs=_patch(rule, version, table))
    problem = tried[0][1].problem or f"none of the ids that were tried feeds {names(states)}"
    return InstalledIds(version=version, ids=None, needs=f"{version}, as installed: {problem}; {_newer(table)}")


def _candidates(states: tuple[int, ...], table: Spelling) -> Iterator[tuple[int, ...]]:
    """The table's ids, then one below the states and the states themselves, each also not begun with its first."""
    seen: set[tuple[int, ...]] = set()
    plain = [tuple(state - shift for state in states) for shift in (1, 0, 2)]
    turned = [(*ids[1:2], ids[0], *ids[2:]) for ids in plain]
    for ids in (*([] if table.ids is None else [table.ids]), *plain, *turned):
        if ids not in seen:
            seen.add(ids)
            yield ids


def _followed(source: Source, ids: tuple[int, ...]) -> Effective:
    config = json.dumps({"eagle_config": eagle_block(ids)})
    return resolve(source.rule, config, source.target_config, pipeline_stages=source.pipeline_stages)


def _is_meant(states: tuple[int, ...], found: Effective) -> bool:
    """Whether it is told to capture just these, and fails for the embedding output alone."""
    told = f"captures before layers {list(states)}"
    fails = (found.problem or "").startswith(EMBEDDING)
    return fails and any(line.endswith(told) for line in found.reasoning)


def _patch(rule: CaptureRule, version: str, table: Spelling) -> str:
    """The change that lets this source take the embedding output."""
    piece = rule.forward
    where = "its layer loop" if piece is None else f"{piece.owner} ({piece.file})"
    return (
        f"{version}, as installed, cannot capture the embedding output: {where} adds a residual that is not there "
        f"before layer 0, and the server ends at its warm-up; patch it to take `hidden_states` alone where "
        f"`residual is None`, or {_newer(table)}"
    )


def _newer(table: Spelling) -> str:
    """What the table knows of other versions."""
    if table.ids is None:
        return "no version is known that can"
    return f"{table.valid_for} with ids {list(table.ids)} (by table, not read on host)"
