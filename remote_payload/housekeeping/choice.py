"""What may go: the rules, what lives, what is at home and who needs whom in; what goes and stays out. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from remote_payload.housekeeping.inventory import UNIT, Found, Other, Reason
from remote_payload.housekeeping.sizes import Weight, together
from remote_payload.schema.housekeeping import GcKind, GcRules, HomeRun

SHIPPED_S = 3600.0
"""A payload this young may be on its way to its first launch."""


@dataclass(frozen=True, kw_only=True)
class Thing:
    """What goes or stays as one; of a sweep the sweep's own run first."""

    kind: GcKind
    name: str
    runs: tuple[Found, ...] = ()
    other: Other | None = None
    since_unix_s: float | None = None
    """When it ended, or was shipped; None = it goes on, or unknown."""
    keeps: Reason | None = None
    goes: Reason | None = None

    @property
    def weight(self) -> Weight:
        """On the disk."""
        return self.other.weight if self.other is not None else together(run.weight for run in self.runs)


def things_of(runs: Mapping[str, Found], home: Iterable[HomeRun], rules: GcRules) -> list[Thing]:
    """Runs and sweeps, each with the reason why it must stay, if there is one."""
    known = {one.run_id: one for one in home}
    needed = {name: run.run_id for run in runs.values() if not run.is_over for name in run.needs}
    units: dict[str, list[Found]] = {}
    alone: list[Found] = []
    for run in runs.values():
        unit = UNIT.fullmatch(run.run_id)
        sweep = runs.get(unit[1]) if unit is not None else None
        if sweep is not None and sweep.is_sweep:
            units.setdefault(sweep.run_id, []).append(run)
        elif run.is_sweep:
            units.setdefault(run.run_id, [])
        else:
            alone.append(run)
    found = [_run(run, needed, known, rules) for run in alone]
    for sweep_id, below in units.items():
        held = [unit for unit in below if unit.run_id in needed]
        found += [_run(unit, needed, known, rules) for unit in held]
        found.append(_sweep((runs[sweep_id], *(unit for unit in below if unit not in held)), needed, known, rules))
    return found


def _run(run: Found, needed: Mapping[str, str], known: Mapping[str, HomeRun], rules: GcRules) -> Thing:
    keeps = _keeps(run, needed) or _not_home(run, known, rules)
    keeps = keeps or (None if "run" in rules.kinds else Reason(words="runs are not asked for"))
    return Thing(kind="run", name=run.run_id, runs=(run,), since_unix_s=_ended(run), keeps=keeps)


def _sweep(runs: tuple[Found, ...], needed: Mapping[str, str], known: Mapping[str, HomeRun], rules: GcRules) -> Thing:
    """Whole or not at all: what keeps one of its runs keeps all."""
    keeps = None if "sweep" in rules.kinds else Reason(words="sweeps are not asked for")
    for look in (_keeps, lambda run, _: _not_home(run, known, rules)):
        for run in runs:
            why = look(run, needed)
            if keeps is None and why is not None:
                keeps = why if run is runs[0] else replace(why, detail=f"its unit {run.run_id}")
    ends = [end for run in runs if (end := _ended(run)) is not None]
    since_s = max(ends) if len(ends) == len(runs) else None
    return Thing(kind="sweep", name=runs[0].run_id, runs=runs, since_unix_s=since_s, keeps=keeps)


def _keeps(run: Found, needed: Mapping[str, str]) -> Reason | None:
    if run.keeps is not None:
        return run.keeps
    by = needed.get(run.run_id)
    return None if by is None else Reason(words="a run that is not over needs it", detail=by)


def _not_home(run: Found, known: Mapping[str, HomeRun], rules: GcRules) -> Reason | None:
    one = known.get(run.run_id)
    is_same = one is not None and run.spec is not None and one.created_unix_s == run.spec.created_unix_s
    has_result = (run.path / "result" / "manifest.json").is_file()
    is_home = one is not None and is_same and (one.whole or not has_result)
    words = "not brought home by this laptop; --uncollected takes it all the same"
    return None if is_home or rules.uncollected else Reason(words=words)


def _ended(run: Found) -> float | None:
    return run.state.finished_unix_s if run.state is not None and run.is_over else None


def payload_things(payloads: Iterable[Other], rules: GcRules, in_use: Mapping[str, str], now_s: float) -> list[Thing]:
    """Payloads by their hash; `in_use` says of each that is needed who needs it."""
    found = []
    for one in payloads:
        keeps = goes = None
        age_s = now_s - one.since_unix_s
        if one.kind == "leftover":
            goes = Reason(words="was never shipped whole")
        elif "payload" not in rules.kinds:
            keeps = Reason(words="payloads are not asked for")
        elif one.name in in_use:
            keeps = Reason(words="is needed", detail=in_use[one.name])
        elif one.weight.problem is not None:
            keeps = Reason(words="cannot be taken away whole", detail=one.weight.problem)
        elif age_s < max(SHIPPED_S, rules.older_than_s or 0.0):
            keeps = Reason(words="was shipped too short a while ago")
        else:
            goes = Reason(words="no run on its way needs it")
        found.append(
            Thing(kind=one.kind, name=one.name, other=one, since_unix_s=one.since_unix_s, keeps=keeps, goes=goes)
        )
    return found


def chosen(things: Iterable[Thing], rules: GcRules, now_s: float, total_bytes: int) -> list[Thing]:
    """Runs and sweeps, newest first, each with why it goes or stays; `total_bytes`: what is there but for what goes.

    What ended too long ago goes; then, while there is more than `max_bytes`, the oldest; never the `keep_newest`.
    """
    ordered = sorted(things, key=lambda thing: -(thing.since_unix_s or now_s))
    over = [thing for thing in ordered if thing.since_unix_s is not None]
    newest = {id(thing) for thing in [one for one in over if one.kind != "group"][: rules.keep_newest or 0]}
    judged: list[Thing] = []
    left_bytes = total_bytes
    for thing in reversed(ordered):
        why = _judged(thing, rules, now_s, left_bytes, is_newest=id(thing) in newest)
        if why.goes is not None:
            left_bytes -= why.weight.frees_bytes
        judged.append(why)
    return _without_needed(judged[::-1])


def _judged(thing: Thing, rules: GcRules, now_s: float, left_bytes: int, *, is_newest: bool) -> Thing:
    if thing.keeps is not None:
        return thing
    if is_newest:
        return replace(thing, keeps=Reason(words=f"among the newest {rules.keep_newest}"))
    if thing.since_unix_s is None:
        return replace(thing, keeps=Reason(words="does not tell when it ended"))
    age_s = now_s - thing.since_unix_s
    if rules.older_than_s is not None and age_s > rules.older_than_s:
        return replace(thing, goes=Reason(words="ended too long ago"))
    if rules.max_bytes is not None and left_bytes > rules.max_bytes:
        return replace(thing, goes=Reason(words="the oldest, while there is too much"))
    if rules.keep_newest is not None and rules.older_than_s is None and rules.max_bytes is None:
        return replace(thing, goes=Reason(words=f"not among the newest {rules.keep_newest}"))
    if rules.older_than_s is None and rules.max_bytes is None:
        return replace(thing, keeps=Reason(words="no limit was given"))
    return replace(thing, keeps=Reason(words="within the limits"))


def _without_needed(things: list[Thing]) -> list[Thing]:
    """A sweep that stays keeps the runs of earlier sweeps that it goes on with; what keeps those stays for it, too."""
    while True:
        needed = {
            name: thing.name for thing in things if thing.goes is None for run in thing.runs for name in run.needs
        }
        again: list[Thing] = []
        for thing in things:
            held = [run for run in thing.runs if thing.goes is not None and run.run_id in needed]
            again += _split(thing, held, needed) if held else [thing]
        if len(again) == len(things) and all(a.goes == b.goes for a, b in zip(again, things, strict=True)):
            return things
        things = again


def _split(thing: Thing, held: list[Found], needed: Mapping[str, str]) -> list[Thing]:
    def why(run: Found) -> Reason:
        return Reason(words="a sweep that stays goes on with it", detail=needed[run.run_id])

    def staying(run: Found) -> Thing:
        return Thing(kind="run", name=run.run_id, runs=(run,), since_unix_s=_ended(run), keeps=why(run))

    if thing.kind == "sweep" and thing.runs[0] in held:
        return [replace(thing, goes=None, keeps=why(thing.runs[0]))]
    rest = tuple(run for run in thing.runs if run not in held)
    if not rest or thing.kind == "run":
        return [staying(run) for run in held]
    return [*(staying(run) for run in held), replace(thing, runs=rest)]
