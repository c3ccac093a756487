"""`gc --local`: which runs of this laptop may go, and taking them away; by the rules that hold on a host."""

import dataclasses
import time

from orchestrator.errors import Eagle3Error
from orchestrator.store.groups import forget_group
from orchestrator.store.store import Store
from orchestrator.store.things import Thing, things_of
from remote_payload.schema.housekeeping import GcItem, GcRules, GcTotals


def make_room(store: Store, rules: GcRules, *, apply: bool) -> tuple[tuple[GcItem, ...], GcTotals]:
    """What goes, newest first, and what became of it with `apply`; a sweep whole or not at all. Raises StoreError."""
    now_s = time.time()
    things = sorted(things_of(store, rules), key=lambda thing: -thing.ended_s)
    left_bytes = before_bytes = sum(thing.size_bytes for thing in things)
    items: list[GcItem] = []
    for place, thing in reversed(list(enumerate(things))):
        why, goes = _judged(thing, rules, now_s, left_bytes, is_newest=place < (rules.keep_newest or 0))
        problem = _remove(store, thing) if goes and apply else None
        left_bytes -= thing.size_bytes if goes else 0
        items.append(_item(thing, why, goes=goes, detail=problem or "", removed=goes and apply and problem is None))
    removed_bytes = sum(item.frees_bytes for item in items if item.removed)
    totals = GcTotals(
        root=str(store.home), before_bytes=before_bytes, removed_bytes=removed_bytes, disk_free_bytes=None
    )
    return tuple(reversed(items)), totals


def _judged(thing: Thing, rules: GcRules, now_s: float, left_bytes: int, *, is_newest: bool) -> tuple[str, bool]:
    if thing.keeps is not None:
        return thing.keeps, False
    if is_newest:
        return f"among the newest {rules.keep_newest}", False
    if rules.older_than_s is not None and now_s - thing.ended_s > rules.older_than_s:
        return "ended too long ago", True
    if rules.max_bytes is not None and left_bytes > rules.max_bytes:
        return "the oldest, while there is too much", True
    if rules.older_than_s is not None or rules.max_bytes is not None:
        return "within the limits", False
    if rules.keep_newest is not None:
        return f"not among the newest {rules.keep_newest}", True
    return "no limit was given", False


def _remove(store: Store, thing: Thing) -> str | None:
    """The sweep itself last, or the record of a group: what is left of a removal that broke is still one."""
    try:
        for run in reversed(thing.runs):
            store.remove(run.run_id)
        if thing.is_group:
            forget_group(store.home, thing.name)
    except Eagle3Error as error:
        return error.message
    return None


def _item(thing: Thing, why: str, **changes: object) -> GcItem:
    item = GcItem(
        kind=thing.kind,
        name=thing.name,
        runs=len(thing.runs) if not thing.is_group else 1 + sum(run.job_kind != "sweep" for run in thing.runs),
        ended_unix_s=thing.ended_s or None,
        size_bytes=thing.size_bytes,
        frees_bytes=thing.size_bytes,
        goes=False,
        reason=why,
    )
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type] # fields of GcItem
