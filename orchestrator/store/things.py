"""What of this laptop's runs goes or stays as one, and why it must stay: for `gc --local`.

A run; a sweep with its units; a sweep over several hosts with its shares, their units and its record; the stages of a
diagnosis. What is said of a run is not lost by the way: what carries a note or a tag stays, and so does what a baseline
means. Tags that a sweep, a group or a diagnosis gives to its own runs say nothing.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.records import read_record
from orchestrator.records.group import SweepGroup
from orchestrator.store.files import read_text
from orchestrator.store.groups import group_ids, group_size, load_group
from orchestrator.store.homecoming import is_home
from orchestrator.store.layout import ATTEMPTS
from orchestrator.store.store import Store
from orchestrator.store.summary import RunSummary
from remote_payload.schema import TERMINAL_PHASES, SweepAttempt
from remote_payload.schema.housekeeping import GcKind, GcRules

UNIT = re.compile(r"(.+)\.u[0-9]+\.[0-9]+")
GOES_ON_WITH = re.compile(r'"(?:adopt|run_id)": ?"([a-z0-9][a-z0-9._-]{0,99})"')
"""In a sweep's job."""
BLOCK_BYTES = 512


@dataclass(frozen=True, kw_only=True)
class Thing:
    """What goes or stays as one."""

    name: str
    runs: tuple[RunSummary, ...]
    """What the others belong to before them."""
    keeps: str | None
    """Why it must stay, whatever the limits."""
    size_bytes: int
    created_s: float = 0.0
    """Of a group's record."""
    is_group: bool = False

    @property
    def kind(self) -> GcKind:
        """A group is a sweep, too."""
        return "sweep" if self.is_group or self.runs[0].job_kind == "sweep" else "run"

    @property
    def ended_s(self) -> float:
        """The last of its runs; an imported one when it was measured."""
        return max((run.finished_unix_s or run.created_unix_s or 0.0 for run in self.runs), default=self.created_s)


@dataclass(kw_only=True)
class _Family:
    """Runs on their way to a thing."""

    runs: list[RunSummary] = field(default_factory=list)
    group: SweepGroup | None = None
    problem: str | None = None


def things_of(store: Store, rules: GcRules) -> Iterator[Thing]:
    """Everything that this laptop knows, each run in one of them. Raises StoreError."""
    needed = {item.current.run_id: "a baseline means it" for item in store.baselines() if item.current.run_id}
    gone_on = _gone_on_with(store)
    for name, family in _families(store).items():
        ids = {run.run_id for run in family.runs}
        keeps = family.problem or _keeps(family.runs, rules, needed, is_group=family.group is not None)
        if keeps is None and any(gone_on.get(run_id, set()) - ids for run_id in ids):
            keeps = "another sweep goes on with it"
        if keeps is None and family.group is not None:
            keeps = not_collected(family.group, store)
        size = sum(_size(store.run_dir(run_id).path) for run_id in ids)
        yield Thing(
            name=name,
            runs=tuple(family.runs),
            keeps=keeps,
            size_bytes=size + (group_size(store.home, name) if family.group is not None or family.problem else 0),
            created_s=0.0 if family.group is None else family.group.created_unix_s,
            is_group=family.group is not None or family.problem is not None,
        )


def _families(store: Store) -> dict[str, _Family]:
    """By name: of a group, of a diagnosis, else of the run that the others belong to."""
    known = {run.run_id: run for run in store.list()}
    families: dict[str, _Family] = {}
    owner: dict[str, str] = {}
    for group_id in group_ids(store.home):
        families[group_id] = family = _Family()
        try:
            family.group = load_group(store.home, group_id)
        except StoreError:
            family.problem = "cannot be read"
            owner |= {run_id: group_id for run_id in known if run_id.startswith(f"{group_id}.h")}
        else:
            owner |= {share.share_id: group_id for share in family.group.shares}
    for run in sorted(known.values(), key=lambda run: run.job_kind != "sweep"):  # a sweep before its units
        unit = UNIT.fullmatch(run.run_id)
        sweep = known.get(unit[1]) if unit is not None else None
        head = run.run_id if sweep is None or sweep.job_kind != "sweep" else sweep.run_id
        name = owner.get(head) or _diagnosis(run, known) or head
        families.setdefault(name, _Family()).runs.append(run)
    return families


def _diagnosis(run: RunSummary, known: Mapping[str, RunSummary]) -> str | None:
    """The diagnosis that a run is a stage of: it carries its name as a tag, and begins with it."""
    return next((tag for tag in run.tags if run.run_id.startswith(f"{tag}.") and tag not in known), None)


def _gone_on_with(store: Store) -> dict[str, set[str]]:
    """Runs of earlier sweeps that are in the table of a later one, with the later ones."""
    found: dict[str, set[str]] = {}
    for run in store.list():
        if run.job_kind == "sweep" and run.problem is None:
            for earlier in GOES_ON_WITH.findall(store.load_exact(run.run_id).spec.job_json):
                found.setdefault(earlier, set()).add(run.run_id)
    return found


def _keeps(runs: Sequence[RunSummary], rules: GcRules, needed: Mapping[str, str], *, is_group: bool) -> str | None:
    """Why it must stay whatever its age. A sweep's units carry a note from their sweep."""
    kind = "sweep" if is_group or runs[0].job_kind == "sweep" else "run"
    if kind not in rules.kinds:
        return f"{kind}s are not asked for"
    if any(run.problem is not None for run in runs):
        return "cannot be read"
    if any(run.phase not in TERMINAL_PHASES and run.phase != "imported" for run in runs):
        return "is not over, by what was seen last"
    for run in runs:
        if run.run_id in needed:
            return needed[run.run_id]
    heads = [run for run in runs if kind == "run" or run.job_kind == "sweep"]
    said = any(run.note or any(not run.run_id.startswith(f"{tag}.") for tag in run.tags) for run in heads)
    return "carries a note or a tag" if said else None


def not_collected(group: SweepGroup, store: Store) -> str | None:
    """Shares that may still measure, or of which something is on their hosts alone; not of hosts that are dead."""
    for share in group.shares:
        if not share.is_launched or share.is_dead:
            continue
        if not _is_here(share.share_id, store):
            return "a share of it is not over, or not at home"
        path = store.run_dir(share.share_id).path / ATTEMPTS
        for line in read_text(path).splitlines() if path.is_file() else ():
            attempt = read_record(SweepAttempt, line, where=str(path), error=StoreError)
            is_measured = any(outcome.end == "measured" for outcome in attempt.points)
            if is_measured and not _is_here(attempt.run_id, store):
                return "a share of it is not over, or not at home"
    return None


def _is_here(run_id: str, store: Store) -> bool:
    run = store.run_dir(run_id)
    return run.path.is_dir() and is_home(run, store.load_exact(run_id))


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
