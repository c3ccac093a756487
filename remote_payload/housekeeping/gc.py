"""`gc`: look at all that lies under the root, say what may go and why the rest stays, and with `apply` take it away.

Nothing is decided by what an earlier look said: a removal looks again at the run itself, under its claim.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.housekeeping import inventory, living
from remote_payload.housekeeping.choice import Thing, chosen, payload_things, things_of
from remote_payload.housekeeping.groups import group_things, told_below
from remote_payload.housekeeping.inventory import UNIT, Found, Reason
from remote_payload.housekeeping.removal import delete, leftover_of, set_aside, set_run_aside
from remote_payload.housekeeping.sizes import together
from remote_payload.refusal import Refusal
from remote_payload.rundir import RunDir
from remote_payload.schema import EndFrame, PulseFrame
from remote_payload.schema.frames import GcFrame
from remote_payload.schema.housekeeping import GcItem, GcRequest, GcTotals
from remote_payload.sweep.group_ledger import note_gone, take_away

PULSE_S = 2.0
A_FRAME = 200
"""Items a frame: some 400 bytes each."""


def collect_garbage(request: GcRequest, send: Send, archive: Path) -> None:
    """Answer with GcFrames, the last with the totals; `archive` is the payload that answers. Raises Refusal."""
    root = absolute_root(request.root)
    if not root.is_dir():
        totals = GcTotals(root=str(root), before_bytes=0, removed_bytes=0, disk_free_bytes=None)
        send(GcFrame(items=(), totals=totals))
        send(EndFrame())
        return
    round_ = _Round(request, root, archive, send)
    things = round_.things()
    for first in range(0, len(things), A_FRAME):
        items = tuple(round_.settle(thing) for thing in things[first : first + A_FRAME])
        send(GcFrame(items=items))
    send(GcFrame(items=(), totals=round_.totals(things)))
    send(EndFrame())


class _Round:
    """One `gc` on its way."""

    def __init__(self, request: GcRequest, root: Path, archive: Path, send: Send) -> None:
        self._request, self._root, self._archive, self._send = request, root, archive, send
        self._told_s = time.monotonic()
        self._removed_bytes = 0
        self._before_bytes = 0

    def tick(self) -> None:
        """The link is alive, however long a folder takes."""
        if time.monotonic() - self._told_s > PULSE_S:
            self._told_s = time.monotonic()
            self._send(PulseFrame())

    def things(self) -> list[Thing]:
        """All there is, each with what becomes of it."""
        request, root, now_s = self._request, self._root, time.time()
        alive = living.look()
        runs = inventory.runs_below(root, alive, self.tick)
        left = list(self._leftovers(runs))
        going_on = {run.run_id for thing in left for run in thing.runs}
        rest = {name: run for name, run in runs.items() if name not in going_on}
        others = payload_things(
            inventory.payloads_below(root, now_s, self.tick), request.rules, self._in_use(runs, alive), now_s
        )
        found = things_of(rest, request.home, request.rules)
        found += group_things(told_below(root, self.tick), runs, request.groups, request.rules)
        self._before_bytes = together(thing.weight for thing in (*found, *left, *others)).size_bytes
        gone_bytes = sum(thing.weight.frees_bytes for thing in (*left, *others) if thing.goes is not None)
        return [*left, *chosen(found, request.rules, now_s, self._before_bytes - gone_bytes), *others]

    def _leftovers(self, runs: dict[str, Found]) -> Iterator[Thing]:
        """What a broken `gc` left; of a sweep also the units that it did not come to."""
        needed = {name for run in runs.values() for name in run.needs}
        goes = Reason(words="a `gc` that broke left it")
        for one in inventory.leftovers_below(self._root, self.tick):
            told = leftover_of(one.paths[0].name)
            units: list[Found] = []
            if told is not None and told[0] == "sweep" and told[1] not in runs:
                mine = (run for run in runs.values() if (unit := UNIT.fullmatch(run.run_id)) and unit[1] == told[1])
                units = [run for run in mine if run.is_over and run.keeps is None and run.run_id not in needed]
            yield Thing(kind="leftover", name=one.name, runs=tuple(units), other=one, goes=goes)

    def _in_use(self, runs: dict[str, Found], alive: living.Living) -> dict[str, str]:
        """Which payloads are needed, and by whom."""
        needed: dict[str, str] = {}
        try:
            needed |= dict.fromkeys(living.scheduled(self._root), "a schedule")
        except OSError as error:
            every = inventory.payloads_below(self._root, 0.0, self.tick)
            return dict.fromkeys((one.name for one in every), f"the schedules cannot be read: {error}")
        for run in runs.values():
            if not run.is_over:
                names = [run.spec.payload_sha256] if run.spec is not None else _hashes(run)
                needed |= dict.fromkeys(names, f"run {run.run_id}")
        needed |= dict.fromkeys(alive.payloads, "a process")
        needed[self._archive.stem] = "this version of the tool"
        return needed

    def settle(self, thing: Thing) -> GcItem:
        """What became of it: removed with `apply`, else as it was judged."""
        self.tick()
        problem, removed = None, False
        if thing.goes is not None and self._request.apply:
            problem = self._remove(thing)
            removed = problem is None
            self._removed_bytes += thing.weight.frees_bytes if removed else 0
        why = thing.goes or thing.keeps or Reason(words="")
        weight = thing.weight
        return GcItem(
            kind=thing.kind,
            name=thing.name,
            runs=len(thing.runs),
            ended_unix_s=thing.since_unix_s,
            size_bytes=weight.size_bytes,
            frees_bytes=weight.frees_bytes,
            goes=thing.goes is not None,
            reason=why.words,
            detail=problem or why.detail,
            removed=removed,
        )

    def _remove(self, thing: Thing) -> str | None:
        """Set everything aside, then delete it; why that did not end well, None = it did."""
        put: list[Path] = []
        try:
            if thing.kind == "leftover" and thing.other is not None:
                put += self._units(thing.runs)
                put += thing.other.paths
            elif thing.kind == "group" and thing.other is not None:
                take_away(self._root, thing.name, thing.other.since_unix_s)
            elif thing.other is not None:
                put += self._payload(thing)
            else:
                self._note_shares(thing.runs)
                put += self._units(thing.runs, thing.kind)
        except OSError as error:
            return f"{error.strerror}: {error.filename}"
        except Refusal as refusal:
            return refusal.message
        problems = [problem for path in reversed(put) if (problem := delete(path, self.tick)) is not None]
        return problems[0] if problems else None

    def _note_shares(self, runs: Sequence[Found]) -> None:
        """Who is asked for a share of a sweep over several hosts must not say that it never began."""
        for run in runs:
            if run.is_sweep and run.spec is not None:
                with suppress(Refusal):  # a full disk must not keep `gc` from making room
                    note_gone(run.spec, self._root / "runs")

    def _units(self, runs: Sequence[Found], kind: str = "run") -> list[Path]:
        """Runs out of every listing. A sweep's own run is the first: what it leaves names all that is to follow."""
        put = []
        for run in runs:
            self.tick()
            path = set_run_aside(self._root, RunDir(run.path), kind)
            put += [] if path is None else [path]
            kind = "run"
        return put

    def _payload(self, thing: Thing) -> list[Path]:
        """The file, then what was compiled of it; back again where somebody started from it in that moment."""
        assert thing.other is not None
        put = []
        for path in thing.other.paths:
            gone = set_aside(self._root, path, "payload")
            if gone is not None and thing.name in living.look().payloads:
                gone.rename(path)
                raise Refusal("bad_request", "somebody uses it now")
            put += [] if gone is None else [gone]
        return put

    def totals(self, things: Sequence[Thing]) -> GcTotals:
        """After everything was settled."""
        disk_free_bytes = None
        try:
            numbers = os.statvfs(self._root)
            disk_free_bytes = numbers.f_bavail * numbers.f_frsize
        except OSError:
            pass
        return GcTotals(
            root=str(self._root),
            before_bytes=self._before_bytes,
            removed_bytes=self._removed_bytes,
            disk_free_bytes=disk_free_bytes,
        )


def _hashes(run: Found) -> list[str]:
    """Of a run whose spec cannot be read as one."""
    try:
        return living.HASH.findall((run.path / "spec.json").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []
