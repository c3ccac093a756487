"""What this host was told of sweeps over several hosts, `groups/<id>.jsonl`, and which of it may go."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from remote_payload.housekeeping.choice import Thing
from remote_payload.housekeeping.inventory import Found, Other, Reason
from remote_payload.housekeeping.sizes import owner, weigh
from remote_payload.schema.housekeeping import GcRules, HomeGroup

TOLD = re.compile(r"([a-z0-9][a-z0-9._-]{0,99})\.jsonl")
GROUP_OF = re.compile(r'"share": ?\{[^{}]*"group_id": ?"([a-z0-9][a-z0-9._-]{0,99})"')
"""Of a sweep's job that is a share, or goes on with one: the sweep over several hosts."""


def told_below(root: Path, tick: Callable[[], None]) -> list[Other]:
    """Every file of `groups`, each with the moment when something of it was told last; none where that is a link."""
    folder = root / "groups"
    if folder.is_symlink() or not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        match = TOLD.fullmatch(path.name)
        if match is None or path.is_symlink() or not path.is_file():
            continue
        weight = weigh(path, root.stat().st_dev, tick)
        try:
            told = path.stat()
        except FileNotFoundError:  # another `gc` was quicker
            continue
        if os.geteuid() not in (0, told.st_uid):
            weight.problem = weight.problem or f"belongs to {owner(told.st_uid)}"
        found.append(Other(kind="group", name=match[1], paths=(path,), since_unix_s=told.st_mtime, weight=weight))
    return found


def group_things(
    told: Iterable[Other], runs: Mapping[str, Found], known: Iterable[HomeGroup], rules: GcRules
) -> list[Thing]:
    """Each with the reason why it must stay, if there is one: while anything of it is here, or may go on anywhere.

    A run that goes just now is noted there, so that who asks for it does not take it for one that never began.
    """
    here: dict[str, str] = {}
    for run in runs.values():
        for group_id in GROUP_OF.findall(run.spec.job_json) if run.is_sweep and run.spec is not None else ():
            here.setdefault(group_id, run.run_id)
    over = {one.group_id: one.is_over for one in known}
    return [
        Thing(
            kind="group",
            name=one.name,
            other=one,
            since_unix_s=one.since_unix_s,
            keeps=_keeps(one, here.get(one.name), over.get(one.name), rules),
        )
        for one in told
    ]


def _keeps(one: Other, run_here: str | None, is_over: bool | None, rules: GcRules) -> Reason | None:
    if "sweep" not in rules.kinds:
        return Reason(words="sweeps are not asked for")
    if run_here is not None:
        return Reason(words="a share of it is here", detail=run_here)
    if is_over is False:
        return Reason(words="it goes on, or is not at home, by what this laptop saw last")
    if is_over is None and not rules.uncollected:
        return Reason(words="not known to this laptop to be over; --uncollected takes it all the same")
    return None if one.weight.problem is None else Reason(words="cannot be taken away", detail=one.weight.problem)
