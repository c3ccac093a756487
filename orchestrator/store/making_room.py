"""`gc --local`: which runs of this laptop may go, and taking them away; by the rules that hold on a host.

What is said of a run is not lost by the way: what carries a note or a tag stays, and so does what a baseline means.
"""

import dataclasses
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Eagle3Error
from orchestrator.store.store import Store
from orchestrator.store.summary import RunSummary
from remote_payload.schema import TERMINAL_PHASES
from remote_payload.schema.housekeeping import GcItem, GcRules, GcTotals

UNIT = re.compile(r"(.+)\.u[0-9]+\.[0-9]+")
GOES_ON_WITH = re.compile(r'"(?:adopt|run_id)": ?"([a-z0-9][a-z0-9._-]{0,99})"')
"""In a sweep's job."""
BLOCK_BYTES = 512


@dataclass(frozen=True, kw_only=True)
class _Thing:
    """A run, or a sweep with its units: what goes or stays as one."""

    runs: tuple[RunSummary, ...]
    keeps: str | None
    size_bytes: int

    @property
    def ended_s(self) -> float:
        """The last of them; an imported one when it was measured."""
        return max(run.finished_unix_s or run.created_unix_s or 0.0 for run in self.runs)


def make_room(store: Store, rules: GcRules, *, apply: bool) -> tuple[tuple[GcItem, ...], GcTotals]:
    """What goes, newest first, and what became of it with `apply`; a sweep whole or not at all. Raises StoreError."""
    now_s = time.time()
    needed = {item.current.run_id: "a baseline means it" for item in store.baselines() if item.current.run_id}
    needed |= _gone_on_with(store)
    things = sorted(_things(store, rules, needed), key=lambda thing: -thing.ended_s)
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


def _things(store: Store, rules: GcRules, needed: Mapping[str, str]) -> Iterable[_Thing]:
    known = {run.run_id: run for run in store.list()}
    groups: dict[str, list[RunSummary]] = {}
    for run in sorted(known.values(), key=lambda run: run.job_kind != "sweep"):  # a sweep before its units
        unit = UNIT.fullmatch(run.run_id)
        sweep = known.get(unit[1]) if unit is not None else None
        groups.setdefault(run.run_id if sweep is None or sweep.job_kind != "sweep" else sweep.run_id, []).append(run)
    for runs in groups.values():
        size = sum(_size(store.run_dir(run.run_id).path) for run in runs)
        yield _Thing(runs=tuple(runs), keeps=_keeps(runs, rules, needed), size_bytes=size)


def _gone_on_with(store: Store) -> dict[str, str]:
    """Runs of earlier sweeps that are in the table of a later one."""
    found: set[str] = set()
    for run in store.list():
        if run.job_kind == "sweep" and run.problem is None:
            found.update(GOES_ON_WITH.findall(store.load_exact(run.run_id).spec.job_json))
    return dict.fromkeys(found, "another sweep goes on with it")


def _keeps(runs: Sequence[RunSummary], rules: GcRules, needed: Mapping[str, str]) -> str | None:
    """Why it must stay whatever its age. A sweep's units carry its id as a tag, and a note, from their sweep."""
    kind = "sweep" if runs[0].job_kind == "sweep" else "run"
    if kind not in rules.kinds:
        return f"{kind}s are not asked for"
    if any(run.problem is not None for run in runs):
        return "cannot be read"
    if any(run.phase not in TERMINAL_PHASES and run.phase != "imported" for run in runs):
        return "is not over, by what was seen last"
    for run in runs:
        if run.run_id in needed:
            return needed[run.run_id]
    said = [run for run in runs if run.note or run.tags]
    return "carries a note or a tag" if runs[0] in said else None


def _judged(thing: _Thing, rules: GcRules, now_s: float, left_bytes: int, *, is_newest: bool) -> tuple[str, bool]:
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


def _remove(store: Store, thing: _Thing) -> str | None:
    """The sweep itself last: what is left of a removal that broke is still a sweep."""
    for run in reversed(thing.runs):
        try:
            store.remove(run.run_id)
        except Eagle3Error as error:
            return error.message
    return None


def _item(thing: _Thing, why: str, **changes: object) -> GcItem:
    first = thing.runs[0]
    item = GcItem(
        kind="sweep" if first.job_kind == "sweep" else "run",
        name=first.run_id,
        runs=len(thing.runs),
        ended_unix_s=thing.ended_s or None,
        size_bytes=thing.size_bytes,
        frees_bytes=thing.size_bytes,
        goes=False,
        reason=why,
    )
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type] # fields of GcItem


def _size(folder: Path) -> int:
    """Bytes allocated below it; on a system that does not tell, of the files' lengths."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in (".", *names):
            try:
                found = os.lstat(os.path.join(path, name))  # noqa: PTH118 - thousands of them
            except OSError:
                continue
            total += found.st_blocks * BLOCK_BYTES if hasattr(found, "st_blocks") else found.st_size
    return total
