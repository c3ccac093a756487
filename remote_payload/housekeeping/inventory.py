"""What lies under the root: runs, sweeps with their units, payloads, leftovers; and what forbids to touch each."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from remote_payload import heartbeat
from remote_payload.housekeeping.living import Living
from remote_payload.housekeeping.removal import leftover_of, trash
from remote_payload.housekeeping.sizes import Weight, owner, weigh
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.rundir import RUN_ID_PATTERN, RunDir
from remote_payload.runstate import read_spec
from remote_payload.schema import RunSpec, RunState
from remote_payload.schema.housekeeping import GcKind

TAKES_OVER = re.compile(r'\\*"resume\\*": ?\\*"([a-z0-9][a-z0-9._-]{0,99})\\*"')
"""Whose rows a job takes over, while it is on its way; in a sweep's job it stands in a text within the text."""
GOES_ON_WITH = re.compile(r'"(?:adopt|run_id|resumes)": ?"([a-z0-9][a-z0-9._-]{0,99})"')
"""Of a sweep's job: runs of earlier sweeps that it waits for or counts among its own, and the sweep that it goes on
with, whose folder says that it is gone on with: without it a second one would measure the same points."""
UNIT = re.compile(r"(.+)\.u[0-9]+\.[0-9]+")
"""The run of a sweep's unit: the sweep, the unit, the attempt."""
PAYLOAD = re.compile(r"([0-9a-f]{64})\.[A-Za-z0-9_-]+")
"""A payload, or what was compiled of it."""
SLURM_S = 5.0
"""How long a Slurm may be asked after a run; one that does not answer leaves the run as not over."""
STRAY_AGE_S = 86400.0
"""A half-shipped payload that is older than this belongs to nobody."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why something stays or goes: `words` alike for all of whom it holds, `detail` of this one alone."""

    words: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """One folder of `runs/`."""

    run_id: str
    path: Path
    weight: Weight
    spec: RunSpec | None = None
    state: RunState | None = None
    keeps: Reason | None = None
    """Why it must not be touched, whatever is asked."""
    needs: frozenset[str] = frozenset()
    """Runs that must not go before it does; of a run on its way, before it is over."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state is not None and self.state.is_terminal

    @property
    def is_sweep(self) -> bool:
        """Whether it is a sweep's own run."""
        return self.spec is not None and self.spec.job_kind == "sweep"


@dataclass(frozen=True, kw_only=True)
class Other:
    """A payload with what was compiled of it, or a leftover: `paths` go together, the first first."""

    kind: GcKind
    name: str
    paths: tuple[Path, ...]
    since_unix_s: float
    weight: Weight


def runs_below(root: Path, living: Living, tick: Callable[[], None]) -> dict[str, Found]:
    """Every run folder by its id. Raises Refusal where `runs` is a link: what lies behind it is not the root's."""
    folder = _own_folder(root, "runs")
    names = sorted(name for name in _names(folder) if RUN_ID_PATTERN.fullmatch(name))
    device = root.stat().st_dev if names else 0
    found = (_found(RunDir(folder / name), device, living, tick) for name in names)
    return {one.run_id: one for one in found if one is not None}


def _found(run: RunDir, device: int, living: Living, tick: Callable[[], None]) -> Found | None:
    """None = it is gone by now: another `gc` was quicker."""
    tick()
    try:
        run_id, keeps = run.path.name, _not_ours(run.path)
    except FileNotFoundError:
        return None
    if keeps is not None:
        return Found(run_id=run_id, path=run.path, weight=Weight(), keeps=keeps)
    weight = weigh(run.path, device, tick)
    spec = state = None
    try:
        spec = read_spec(run)
        state = current_state(run, SLURM_S)
        keeps = _alive(run, state, living)
    except FileNotFoundError:
        if not run.path.is_dir():
            return None
        keeps = Reason(words="claimed and never started", detail="`cancel` settles it")
    except (OSError, Refusal) as error:
        keeps = Reason(words="cannot be read", detail=str(error))
    if keeps is None and weight.problem is not None:
        keeps = Reason(words="cannot be taken away whole", detail=weight.problem)
    needs = _needs(spec, is_over=state is not None and state.is_terminal) if spec is not None else frozenset()
    return Found(run_id=run_id, path=run.path, weight=weight, spec=spec, state=state, keeps=keeps, needs=needs)


def _needs(spec: RunSpec, *, is_over: bool) -> frozenset[str]:
    named = set(GOES_ON_WITH.findall(spec.job_json)) if spec.job_kind == "sweep" else set()
    if not is_over:
        named |= {*TAKES_OVER.findall(spec.job_json), *(spec.waiting.after if spec.waiting is not None else ())}
    return frozenset(named - {spec.run_id})


def _alive(run: RunDir, state: RunState | None, living: Living) -> Reason | None:
    if state is None:
        return Reason(words="claimed and never started", detail="`cancel` settles it")
    if not state.is_terminal:
        return Reason(words="is not over", detail=state.phase)
    if str(run.path) in living.run_dirs or heartbeat.is_held(run.heartbeat):
        return Reason(words="processes of it are alive", detail="`cancel` ends them")
    return None


def _not_ours(path: Path) -> Reason | None:
    found = path.lstat()
    if path.is_symlink():
        return Reason(words="is a link, and what it leads to is not the root's")
    if os.geteuid() not in (0, found.st_uid):
        return Reason(words="belongs to another user", detail=owner(found.st_uid))
    return None if path.is_dir() else Reason(words="cannot be read", detail="no folder")


def payloads_below(root: Path, now_s: float, tick: Callable[[], None]) -> list[Other]:
    """Payloads by their hash, and what was half shipped long ago. Raises Refusal where the folder is a link."""
    folder = _own_folder(root, "payloads")
    groups: dict[str, list[Path]] = {}
    strays: list[Path] = []
    for name in sorted(_names(folder), reverse=True):  # the file before the folders compiled of it
        match = PAYLOAD.fullmatch(name)
        if match is not None:
            groups.setdefault(match[1], []).append(folder / name)
        elif name.startswith(".") and leftover_of(name) is None and _age_s(folder / name, now_s) > STRAY_AGE_S:
            strays.append(folder / name)
    found = [_other("payload", name, tuple(paths), root, tick) for name, paths in sorted(groups.items())]
    return found + [_other("leftover", path.name, (path,), root, tick) for path in strays]


def leftovers_below(root: Path, tick: Callable[[], None]) -> list[Other]:
    """What a `gc` that broke has set aside: in the trash, or hidden where it was."""
    found = []
    for folder in (_own_folder(root, "trash"), root / "runs", root / "payloads"):
        for name in sorted(_names(folder)):
            told = leftover_of(name)
            if told is not None or folder == trash(root):
                found.append(_other("leftover", told[1] if told else name, (folder / name,), root, tick))
    return found


def _other(kind: GcKind, name: str, paths: tuple[Path, ...], root: Path, tick: Callable[[], None]) -> Other:
    weight = Weight()
    since_s = 0.0
    device = root.stat().st_dev
    for path in paths:
        try:
            since_s = max(since_s, path.lstat().st_mtime)
        except FileNotFoundError:  # another `gc` was quicker
            continue
        weight.add(weigh(path, device, tick))
    return Other(kind=kind, name=name, paths=paths, since_unix_s=since_s, weight=weight)


def _own_folder(root: Path, name: str) -> Path:
    folder = root / name
    if folder.is_symlink():
        raise Refusal(
            "root_not_writable",
            f"`{name}` under the root is a link, and what lies behind it is not the root's: {folder}",
            "set `root` for this host in eagle3.toml to the folder that it leads to",
        )
    return folder


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Refusal("root_not_writable", f"cannot be looked into: {error}") from None


def _age_s(path: Path, now_s: float) -> float:
    try:
        return now_s - path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0
